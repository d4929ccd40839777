//! `softiov capture`: frames on a port as they happen, on the terminal, in a file, or into a program that reads pcapng. Left
//! out: filters, which the host has.

mod blocks;
pub(crate) mod line;

use crate::output::{self, ReaderGone};
use crate::place::Place;
use anyhow::{Context, bail};
use blocks::{Block, Blocks};
use daemon::control::client::{self, CaptureQuery};
use daemon::control::status::PortStatus;
use line::Lines;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::ExitCode;

/// What to capture.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// VFs such as pf0vf3, a port such as pf0, or `uplink`, of one port; without a name, all of the first port.
    names: Vec<String>,
    /// Write pcapng into this file, or to standard output (`-`), as in `softiov capture -w - | wireshark -k -i -`.
    #[arg(long, short = 'w', value_name = "FILE|-")]
    write: Option<PathBuf>,
    /// Capture only frames that a filter selects, in the language of pcap-filter(7): `tcp port 80`, `vlan 100 and arp`.
    #[arg(long, value_name = "EXPR", default_value = "")]
    filter: String,
    /// Only frames that are dropped, with the reason.
    #[arg(long)]
    drops: bool,
    /// Bytes captured of each frame. The filter sees the whole frame.
    #[arg(long, short = 's', value_name = "BYTES")]
    snaplen: Option<usize>,
    /// End after so many frames.
    #[arg(long, short, value_name = "FRAMES")]
    count: Option<u64>,
    #[command(flatten)]
    place: Place,
}

/// Where frames go.
enum Sink {
    Text(Lines),
    File(File),
    Stdout,
}

/// Captures until the count is reached, the host ends, or it is interrupted.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let socket = args.place.load()?.control_socket();
    let ports = client::ports(&socket)?;
    let (port, at) = choose(&ports, &args.names)?;
    let query =
        CaptureQuery { port, at, filter: args.filter.clone(), drops: args.drops, snaplen: args.snaplen };
    let mut sink = sink(args.write.as_ref())?;
    let (mut blocks, mut left) = (Blocks::default(), args.count.unwrap_or(u64::MAX));
    let mut failed = None;
    let mut take = |piece: &[u8]| {
        blocks.push(piece);
        match pass(&mut blocks, &mut sink, &mut left) {
            Ok(()) if left > 0 => ControlFlow::Continue(()),
            Ok(()) => ControlFlow::Break(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let captured = client::capture(&socket, &query, &mut take);
    if let Some(error) = failed {
        return Err(error);
    }
    captured?;
    if left > 0 {
        output::tell("softiov: the host ended, or another process serves it now; so ends the capture");
    }
    Ok(ExitCode::SUCCESS)
}

/// Which port, and what on it; nothing for all of it.
fn choose(ports: &[PortStatus], names: &[String]) -> anyhow::Result<(String, Vec<String>)> {
    let has = |port: &PortStatus, name: &str| port.name == name || port.vfs.iter().any(|vf| vf.name == name);
    let mut chosen: Option<&PortStatus> = None;
    for name in names.iter().filter(|name| *name != "uplink") {
        let Some(port) = ports.iter().find(|port| has(port, name)) else {
            let known: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
            bail!(
                "no port or VF {name:?}; the ports are {}, and `softiov vf list` has VFs",
                known.join(", ")
            );
        };
        if let Some(other) = chosen.filter(|other| other.name != port.name) {
            bail!("{name} is on {}, and {} is another port: capture them one by one", port.name, other.name);
        }
        chosen = Some(port);
    }
    let Some(port) = chosen.or(ports.first()) else { bail!("the host has no ports") };
    if chosen.is_none() && !names.is_empty() && ports.len() > 1 {
        bail!("which port's uplink? Name the port, too: `softiov capture {} uplink`", port.name);
    }
    // A port's name beside others only says whose they are, but for a port that is a guest's.
    let at: Vec<_> = names.iter().filter(|name| **name != port.name || port.pf.is_some()).cloned().collect();
    Ok((port.name.clone(), at))
}

fn sink(file: Option<&PathBuf>) -> anyhow::Result<Sink> {
    match file {
        None => Ok(Sink::Text(Lines::default())),
        Some(file) if file.as_os_str() == "-" => {
            if io::stdout().is_terminal() {
                bail!(
                    "-w - writes pcapng, which is not for a terminal; leave it out, or pipe it into a program"
                );
            }
            Ok(Sink::Stdout)
        }
        Some(file) => {
            let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file);
            Ok(Sink::File(opened.with_context(|| format!("cannot write {}", file.display()))?))
        }
    }
}

/// Passes whole blocks on, as long as frames are left to be captured.
fn pass(blocks: &mut Blocks, sink: &mut Sink, left: &mut u64) -> anyhow::Result<()> {
    while *left > 0
        && let Some(Block { is_packet, bytes }) = blocks.next()?
    {
        match sink {
            Sink::Text(lines) => output::print(&lines.of(&bytes))?,
            Sink::File(file) => file.write_all(&bytes).context("the capture cannot be written")?,
            Sink::Stdout => match io::stdout().write_all(&bytes) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Err(ReaderGone.into()),
                written => written.context("the capture cannot be written")?,
            },
        }
        *left -= u64::from(is_packet);
    }
    if let Sink::Stdout = sink {
        io::stdout().flush().context("the capture cannot be written")?;
    }
    Ok(())
}
