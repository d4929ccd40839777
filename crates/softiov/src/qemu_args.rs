//! `softiov qemu-args`: what to add to a QEMU command line so that a guest has a VF, or a whole port.

use crate::place::Place;
use anyhow::Context;
use daemon::control::client::{ClientError, ask};
use daemon::control::protocol::{Answer, Request};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Which VF or port, and for what guest.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The VF, such as pf0vf0; or a port with pf = "guest", such as pf1.
    vf: String,
    /// The guest's memory, in QEMU's words: a number with M, G or T, or of MiB without.
    #[arg(long, default_value = "1G", value_name = "SIZE", value_parser = memory_size)]
    memory: String,
    #[command(flatten)]
    place: Place,
}

/// Prints the arguments, a line each option.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let socket = find_socket(args)?;
    crate::output::print(&arguments(&socket, &args.memory))?;
    Ok(ExitCode::SUCCESS)
}

/// The socket as the running host tells it, or where the configuration will put it.
fn find_socket(args: &Args) -> anyhow::Result<PathBuf> {
    let config = args.place.load()?;
    let pf = config.ports.iter().find(|port| port.name == args.vf).and_then(|port| port.pf_socket.clone());
    if let Some(socket) = pf {
        return Ok(socket);
    }
    match ask(&config.control_socket(), Request::VfShow { vf: args.vf.clone() }) {
        Ok(Answer::Vf(vf)) => Ok(vf.function.socket),
        Ok(Answer::Port(port)) => match port.pf {
            Some(pf) => Ok(pf.socket),
            None => anyhow::bail!(
                "{name} is a port whose VFs go to guests, not a function for one: name a VF, such as {name}vf0, or \
                 give the port to a guest with pf = \"guest\"",
                name = port.name
            ),
        },
        Ok(_) => anyhow::bail!("the host answered another question; are both of the same version?"),
        Err(ClientError::Unreachable { .. }) => {
            crate::output::tell("softiov: no host is running yet; start one with `softiov serve`");
            let mut vfs = config.ports.iter().flat_map(|port| &port.vfs);
            let vf = vfs.find(|vf| vf.name == args.vf);
            Ok(vf
                .with_context(|| format!("no VF is called {:?} in the configuration", args.vf))?
                .socket
                .clone())
        }
        Err(error) => Err(error.into()),
    }
}

/// A size as QEMU takes it: digits, and a unit behind them.
fn memory_size(text: &str) -> Result<String, String> {
    let digits = text.trim_end_matches(['K', 'M', 'G', 'T', 'k', 'm', 'g', 't']);
    let number = digits.parse::<u64>().ok().filter(|number| *number > 0);
    match number {
        Some(_) if text.len() - digits.len() <= 1 => Ok(text.to_owned()),
        _ => Err("not a size such as 512M or 2G".to_owned()),
    }
}

/// The options, quoted for a shell. QEMU needs memory that it shares with the card.
fn arguments(socket: &Path, memory: &str) -> String {
    let path = serde_json::Value::from(socket.to_string_lossy());
    let device = format!("{{\"driver\":\"vfio-user-pci\",\"socket\":{{\"path\":{path},\"type\":\"unix\"}}}}");
    format!(
        "-object memory-backend-memfd,id=mem0,size={memory},share=on \\\n\
         -machine q35,memory-backend=mem0 -m {memory} \\\n\
         -device '{}'\n",
        device.replace('\'', "'\\''")
    )
}

#[cfg(test)]
mod tests {
    use super::arguments;
    use std::path::Path;

    #[test]
    fn the_socket_is_given_as_qemu_10_wants_it() {
        let text = arguments(Path::new("/run/softiov/pf0vf3/vf.sock"), "2G");
        assert_eq!(
            text,
            "-object memory-backend-memfd,id=mem0,size=2G,share=on \\\n\
             -machine q35,memory-backend=mem0 -m 2G \\\n\
             -device '{\"driver\":\"vfio-user-pci\",\
             \"socket\":{\"path\":\"/run/softiov/pf0vf3/vf.sock\",\"type\":\"unix\"}}'\n"
        );
    }

    #[test]
    fn a_path_cannot_break_out_of_its_quotes() {
        let text = arguments(Path::new("/tmp/a'b\"c.sock"), "1G");
        assert!(text.contains(r#"/tmp/a'\''b\"c.sock"#), "{text}");
    }
}
