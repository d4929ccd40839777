//! `softiov serve`: the host, in the foreground, until it is asked to end.

use crate::log::Log;
use crate::place::Place;
use anyhow::Context;
use daemon::Host;
use host::poll::{Interest, Poller, Signals};
use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;

/// How the host is started.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
}

/// How often the host looks whether its threads still run.
const LOOK: Duration = Duration::from_secs(1);
/// How often it looks whether they have ended.
const STEP: Duration = Duration::from_millis(10);
/// How long the last lines of the log may take.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Runs the host. SIGTERM and SIGINT end it cleanly; SIGHUP does not, since guests would lose their VFs with the
/// terminal that the host was started from.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let log = start_log().context("cannot start the log")?;
    let outcome = serve(args);
    log.finish(LAST_LINES);
    outcome
}

fn serve(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.place.load()?;
    // Each client may hold dozens of descriptors: files of memory, eventfds, its socket.
    if let Err(error) = host::limits::raise_open_files() {
        tracing::warn!(%error, "the limit on open files stays as it is");
    }
    // Before any thread starts: none may be left that a signal could kill.
    let signals = Signals::install().context("cannot catch signals")?;
    let mut poller = Poller::new()?;
    poller.add(&signals, 0, Interest::READ)?;
    let host = Host::start(config.clone())?;
    for port in &config.ports {
        if let Some(socket) = &port.pf_socket {
            tracing::info!(pf = port.name, socket = %socket.display(), mac = %port.mac, "ready");
        }
    }
    for vf in config.ports.iter().flat_map(|port| &port.vfs) {
        tracing::info!(vf = vf.name, socket = %vf.socket.display(), mac = %vf.mac, "ready");
    }
    tracing::info!(control = %host.control_socket().display(), "serving");
    while host.is_whole() {
        poller.wait(Some(LOOK))?.for_each(drop);
        if signals.take().asks_to_end() {
            return end(host, &signals, &mut poller);
        }
    }
    host.stop();
    anyhow::bail!("a thread of the host has ended; see the log above")
}

/// Lets every client go so that its machine lives on; a second signal does not wait for that.
fn end(host: Host, signals: &Signals, poller: &mut Poller) -> anyhow::Result<ExitCode> {
    tracing::info!("ending; guests are told, and their machines live on");
    host.end();
    while !host.has_ended() {
        poller.wait(Some(STEP))?.for_each(drop);
        if signals.take().asks_to_end() {
            tracing::warn!("asked again: ending at once, whatever becomes of the machines");
            std::process::exit(1);
        }
    }
    host.stop();
    Ok(ExitCode::SUCCESS)
}

/// Log lines go to standard error; RUST_LOG chooses how many. So does the word of a thread that panics.
fn start_log() -> std::io::Result<Log> {
    // A descriptor of the log's own: whoever else writes to standard error must not wait for the log.
    let log = Log::start(File::from(std::io::stderr().as_fd().try_clone_to_owned()?))?;
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(log.clone())
        .with_ansi(colours)
        .with_target(false)
        .init();
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
    Ok(log)
}
