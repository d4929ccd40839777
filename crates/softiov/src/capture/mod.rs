//! `softiov capture`: prints captured frames, or writes them as pcapng to a file or a program. The host filters
//! frames.

mod blocks;
pub(crate) mod line;

use crate::output::{self, StdoutClosed};
use crate::target::HostSelectionOptions;
use anyhow::{Context, bail};
use blocks::{PcapngBlock, PcapngBlockBuffer};
use daemon::control::client::{self, CaptureQuery};
use daemon::control::status::PortStatus;
use line::FrameFormatter;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `softiov capture`.
#[derive(Debug, clap::Args)]
pub(crate) struct CaptureArgs {
    /// VFs such as pf0vf3, a port such as pf0, or `uplink`, all of one port (default: all of the first port).
    names: Vec<String>,
    /// Write pcapng to this file, or to standard output (`-`), as in `softiov capture -w - | wireshark -k -i -`.
    #[arg(long, short = 'w', value_name = "FILE|-")]
    write: Option<PathBuf>,
    /// Capture only frames that match a pcap-filter(7) expression, such as `tcp port 80` or `vlan 100 and arp`.
    #[arg(long, value_name = "EXPR", default_value = "")]
    filter: String,
    /// Capture only dropped frames, with the reason of each drop.
    #[arg(long)]
    drops: bool,
    /// Bytes to capture of each frame; the filter sees the whole frame.
    #[arg(long, short = 's', value_name = "BYTES")]
    snaplen: Option<usize>,
    /// Stop after this number of frames.
    #[arg(long, short, value_name = "FRAMES")]
    count: Option<u64>,
    #[command(flatten)]
    target: HostSelectionOptions,
}

/// Destination of captured frames: lines of text, a pcapng file, or pcapng on standard output.
enum CaptureDestination {
    Text(FrameFormatter),
    File(File),
    Stdout,
}

/// Captures frames until the count is reached, the host ends, or the user interrupts.
pub(crate) fn run(args: &CaptureArgs) -> anyhow::Result<ExitCode> {
    let socket = args.target.load()?.control_socket();
    let ports = client::ports(&socket)?;
    let (port, at) = choose(&ports, &args.names)?;
    let query =
        CaptureQuery { port, at, filter: args.filter.clone(), drops: args.drops, snaplen: args.snaplen };
    let mut sink = sink(args.write.as_ref())?;
    let (mut blocks, mut left) = (PcapngBlockBuffer::default(), args.count.unwrap_or(u64::MAX));
    let mut failed = None;
    let mut receive = |piece: &[u8]| {
        blocks.push(piece);
        match write_blocks(&mut blocks, &mut sink, &mut left) {
            Ok(()) if left > 0 => ControlFlow::Continue(()),
            Ok(()) => ControlFlow::Break(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let captured = client::capture(&socket, &query, &mut receive);
    if let Some(error) = failed {
        return Err(error);
    }
    captured?;
    if left > 0 {
        output::print_error(
            "softiov: the capture has ended: the host stopped or was replaced; run the command again",
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the name of the port that `names` belong to, and the functions to capture. An empty list of functions means
/// the whole port.
fn choose(ports: &[PortStatus], names: &[String]) -> anyhow::Result<(String, Vec<String>)> {
    let has = |port: &PortStatus, name: &str| port.name == name || port.vfs.iter().any(|vf| vf.name == name);
    let mut chosen: Option<&PortStatus> = None;
    for name in names.iter().filter(|name| *name != "uplink") {
        let Some(port) = ports.iter().find(|port| has(port, name)) else {
            let known: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
            bail!(
                "no port or VF is named {name:?}; ports: {}; `softiov vf list` shows the VFs",
                known.join(", ")
            );
        };
        if let Some(other) = chosen.filter(|other| other.name != port.name) {
            bail!("{name} is on port {}, not on {}: run one capture per port", port.name, other.name);
        }
        chosen = Some(port);
    }
    let Some(port) = chosen.or(ports.first()) else { bail!("the host has no ports") };
    if chosen.is_none() && !names.is_empty() && ports.len() > 1 {
        bail!(
            "the host has several uplinks: name the port too, as in `softiov capture {} uplink`",
            port.name
        );
    }
    // Beside other names a port's name only selects the port, unless a guest drives its PF.
    let at: Vec<_> = names.iter().filter(|name| **name != port.name || port.pf.is_some()).cloned().collect();
    Ok((port.name.clone(), at))
}

fn sink(file: Option<&PathBuf>) -> anyhow::Result<CaptureDestination> {
    match file {
        None => Ok(CaptureDestination::Text(FrameFormatter::default())),
        Some(file) if file.as_os_str() == "-" => {
            if io::stdout().is_terminal() {
                bail!(
                    "-w - writes binary pcapng, and standard output is a terminal: leave it out, or pipe it into a program"
                );
            }
            Ok(CaptureDestination::Stdout)
        }
        Some(file) => {
            let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file);
            Ok(CaptureDestination::File(opened.with_context(|| format!("cannot write {}", file.display()))?))
        }
    }
}

/// Writes whole pcapng blocks until `left` frames are written.
fn write_blocks(
    blocks: &mut PcapngBlockBuffer,
    sink: &mut CaptureDestination,
    left: &mut u64,
) -> anyhow::Result<()> {
    while *left > 0
        && let Some(PcapngBlock { is_packet, bytes }) = blocks.next()?
    {
        match sink {
            CaptureDestination::Text(lines) => output::print(&lines.format(&bytes))?,
            CaptureDestination::File(file) => file.write_all(&bytes).context("cannot write the capture")?,
            CaptureDestination::Stdout => match io::stdout().write_all(&bytes) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Err(StdoutClosed.into()),
                written => written.context("cannot write the capture")?,
            },
        }
        *left -= u64::from(is_packet);
    }
    if let CaptureDestination::Stdout = sink {
        io::stdout().flush().context("cannot write the capture")?;
    }
    Ok(())
}
