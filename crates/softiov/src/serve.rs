//! `softiov serve`: the host, in the foreground, until it is asked to end. Left out: what is done with a configuration
//! that is loaded again (`daemon`).

use crate::place::Place;
use anyhow::Context;
use daemon::Host;
use daemon::control::client;
use daemon::control::protocol::{Answer, Apply, Difference, Request};
use host::poll::{Interest, Poller, Signal, Signals};
use std::io::IsTerminal;
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

/// Runs the host. SIGTERM and SIGINT end it cleanly. SIGHUP has it load its configuration file again; it never ends the
/// host, since guests would lose their VFs with the terminal that the host was started from.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    start_log();
    let config = args.place.load()?.restore()?;
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
        let signals = signals.take();
        if signals.contains(Signal::HangUp) {
            reload(&host, &args.place);
        }
        if signals.asks_to_end() {
            tracing::info!("ending");
            host.stop();
            return Ok(ExitCode::SUCCESS);
        }
    }
    host.stop();
    anyhow::bail!("a thread of the host has ended; see the log above")
}

/// Has the host load its configuration file again. A file that it refuses changes nothing.
fn reload(host: &Host, place: &Place) {
    let Some(file) = place.config.clone() else {
        tracing::info!("SIGHUP: there is no configuration file to load again");
        return;
    };
    let (socket, place) = (host.control_socket().to_owned(), place.clone());
    // The answer may take seconds, and a signal to end must not wait for it.
    let thread = std::thread::Builder::new().name("reload".into()).spawn(move || {
        let asked = crate::apply::request(&file, &place, false)
            .map(|apply| Request::Apply(Apply { reload: true, ..apply }))
            .and_then(|request| Ok(client::ask(&socket, request)?));
        match asked {
            Ok(Answer::Difference(Difference { changes, .. })) => {
                tracing::info!(file = %file.display(), changes = changes.len(), "SIGHUP: the file was loaded again");
            }
            Ok(_) => tracing::error!("SIGHUP: the host answered another question"),
            Err(error) => tracing::error!(error = crate::output::explain(&error), "SIGHUP: nothing was changed"),
        }
    });
    if let Err(error) = thread {
        tracing::error!(%error, "SIGHUP: nothing was changed");
    }
}

/// Log lines go to standard error; RUST_LOG chooses how many.
fn start_log() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colours)
        .with_target(false)
        .init();
}
