//! `softiov lspci`: runs pciutils' own program on the configuration spaces of a running host's functions. The spaces
//! are written as `lspci -xxxx` prints them, for `lspci -F` to read; so every option, name and word is lspci's. Each
//! port is a PCI domain: the first is 0000. A virtio VF is missing, because its PCI function is its VMM's.

use super::tool_exit::ToolExit;
use crate::output;
use crate::target::HostSelectionOptions;
use anyhow::Context;
use daemon::control::client::{self, ControlClientError};
use daemon::control::functions::PciFunction;
use daemon::control::protocol::{ControlAnswer, ControlRequest};
use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode};

/// Arguments of `softiov lspci`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct LspciArgs {
    #[command(flatten)]
    target: HostSelectionOptions,
    /// Print help.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// Words as pciutils takes them: -v, -vv, -vvv, -x, -xxx, -xxxx, -n, -nn, -D, -t, -m, -s SLOT, -d ID.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    words: Vec<String>,
}

/// Options of lspci that `softiov lspci` refuses: they select other devices, or use the network.
const UNSUPPORTED_OPTIONS: [char; 8] = ['A', 'F', 'G', 'H', 'M', 'O', 'Q', 'q'];

/// Runs the system's `lspci` on the configuration spaces of the host's functions.
pub(crate) fn run(args: &LspciArgs) -> anyhow::Result<ExitCode> {
    if let Some(word) = args.words.iter().find(|word| is_unsupported(word)) {
        let exit = ToolExit::new(
            format!("lspci: {word} is not supported: the functions are those of a running host"),
            1,
        );
        return Ok(exit.with_hint("for the machine's own functions use the system's lspci").report());
    }
    let socket = args.target.load()?.control_socket();
    let mut file = tempfile::NamedTempFile::new().context("cannot create a file for lspci")?;
    file.write_all(dump(&socket)?.as_bytes()).context("cannot write a file for lspci")?;
    let done = Command::new("lspci").arg("-F").arg(file.path()).args(&args.words).output();
    let done = match done {
        Ok(done) => done,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let exit = ToolExit::new("lspci: not found", 127);
            return Ok(exit
                .with_hint("install pciutils, whose lspci reads the host's configuration spaces")
                .report());
        }
        Err(error) => return Err(error).context("cannot run lspci"),
    };
    if !done.stderr.is_empty() {
        output::print_last_error(String::from_utf8_lossy(&done.stderr).trim_end().to_owned());
    }
    output::print(&String::from_utf8_lossy(&done.stdout))?;
    Ok(ExitCode::from(done.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// Returns true for a word with an lspci option that is not supported ([`UNSUPPORTED_OPTIONS`]). Letters after one dash
/// are options, up to -s, -d, -i or -o, which take a value.
fn is_unsupported(word: &str) -> bool {
    let Some(letters) = word.strip_prefix('-') else { return false };
    letters
        .chars()
        .take_while(|letter| !['s', 'd', 'i', 'o'].contains(letter))
        .any(|letter| UNSUPPORTED_OPTIONS.contains(&letter))
}

/// Returns the configuration spaces of all functions, as `lspci -xxxx` prints them.
fn dump(socket: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    for (domain, port) in client::ports(socket)?.iter().enumerate() {
        let asked = client::ask(socket, ControlRequest::PortFunctions { port: port.name.clone() })?;
        let ControlAnswer::Functions(found) = asked else {
            return Err(ControlClientError::OtherAnswer.into());
        };
        for function in found.functions.iter().filter(|function| !function.config.is_empty()) {
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
    use super::{is_unsupported, rows};
    use daemon::control::functions::PciFunction;

    #[test]
    fn pci_function_is_printed_as_lspci_prints_it() {
        let config = (0..0x120).map(|at| format!("{:02x}", at & 0xff)).collect();
        let (rx_rings, tx_rings) = (Vec::new(), Vec::new());
        let function = PciFunction { name: "pf0".into(), rid: "00:01.0".into(), config, rx_rings, tx_rings };
        let text = rows(&function);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "00: 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f");
        assert_eq!((lines[16].split(':').next(), lines.len()), (Some("100"), 18));
    }

    #[test]
    fn lspci_options_that_select_other_devices_are_refused() {
        for word in ["-F", "-vF", "-A", "-H1", "-qq"] {
            assert!(is_unsupported(word), "{word}");
        }
        for word in ["-vv", "-s", "-s0000:01:10.0", "-dF00F:", "-nn", "F", "-xxxx", "-t", "-Dv"] {
            assert!(!is_unsupported(word), "{word}");
        }
    }
}
