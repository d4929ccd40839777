//! `softiov lspci`: pciutils' own program, on the configuration spaces of a running host's functions. They are written as
//! `lspci -xxxx` prints them, and `lspci -F` reads that; so every option, name and word is lspci's. Each port is a domain of
//! its own: the first is 0000. Left out: where the bytes come from, which options would change.

use super::said::Said;
use crate::output;
use crate::place::Place;
use anyhow::Context;
use daemon::control::client::{self, ClientError};
use daemon::control::functions::PciFunction;
use daemon::control::protocol::{Answer, Request};
use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode};

/// What `lspci` is told.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// Print help.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// As pciutils takes them: -v, -vv, -vvv, -x, -xxx, -xxxx, -n, -nn, -D, -t, -m, -s SLOT, -d ID.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    words: Vec<String>,
}

/// Options that choose other devices than ours, or ask the network.
const OTHERS: [char; 8] = ['A', 'F', 'G', 'H', 'M', 'O', 'Q', 'q'];

/// Runs the system's `lspci`.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(word) = args.words.iter().find(|word| is_about_others(word)) {
        let said = Said::new(format!("lspci: {word}: the functions are those of a running host"), 1);
        return Ok(said.because("for the machine's own use the system's lspci").say());
    }
    let socket = args.place.load()?.control_socket();
    let mut file = tempfile::NamedTempFile::new().context("a file for lspci")?;
    file.write_all(dump(&socket)?.as_bytes()).context("a file for lspci")?;
    let done = Command::new("lspci").arg("-F").arg(file.path()).args(&args.words).output();
    let done = match done {
        Ok(done) => done,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let said = Said::new("lspci: not found", 127);
            return Ok(said.because("install pciutils, whose lspci reads what the host tells").say());
        }
        Err(error) => return Err(error).context("lspci"),
    };
    if !done.stderr.is_empty() {
        output::tell_briefly(String::from_utf8_lossy(&done.stderr).trim_end().to_owned());
    }
    output::print(&String::from_utf8_lossy(&done.stdout))?;
    Ok(ExitCode::from(done.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// Letters behind one dash are options; the values of -s, -d, -i and -o are words of their own, or end the word.
fn is_about_others(word: &str) -> bool {
    let Some(letters) = word.strip_prefix('-') else { return false };
    letters.chars().take_while(|letter| !['s', 'd', 'i', 'o'].contains(letter)).any(|it| OTHERS.contains(&it))
}

/// All functions, as `lspci -xxxx` prints them.
fn dump(socket: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    for (domain, port) in client::ports(socket)?.iter().enumerate() {
        let asked = client::ask(socket, Request::PortFunctions { port: port.name.clone() })?;
        let Answer::Functions(found) = asked else { return Err(ClientError::OtherAnswer.into()) };
        for function in &found.functions {
            let _ = writeln!(text, "{domain:04x}:{} {}\n{}", function.rid, function.name, rows(function));
        }
    }
    Ok(text)
}

fn rows(function: &PciFunction) -> String {
    let mut text = String::new();
    for (at, digits) in function.config.as_bytes().chunks(32).enumerate() {
        let _ = write!(text, "{:02x}:", 16 * at);
        for byte in digits.chunks(2) {
            let _ = write!(text, " {}", String::from_utf8_lossy(byte));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{is_about_others, rows};
    use daemon::control::functions::PciFunction;

    #[test]
    fn a_function_is_written_as_lspci_prints_it() {
        let config = (0..0x120).map(|at| format!("{:02x}", at & 0xff)).collect();
        let (rx_rings, tx_rings) = (Vec::new(), Vec::new());
        let function = PciFunction { name: "pf0".into(), rid: "00:01.0".into(), config, rx_rings, tx_rings };
        let text = rows(&function);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "00: 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f");
        assert_eq!((lines[16].split(':').next(), lines.len()), (Some("100"), 18));
    }

    #[test]
    fn options_that_choose_other_devices_are_refused_and_slots_are_not_options() {
        for word in ["-F", "-vF", "-A", "-H1", "-qq"] {
            assert!(is_about_others(word), "{word}");
        }
        for word in ["-vv", "-s", "-s0000:01:10.0", "-dF00F:", "-nn", "F", "-xxxx", "-t", "-Dv"] {
            assert!(!is_about_others(word), "{word}");
        }
    }
}
