//! `softiov serve`: the host, in the foreground, until it is asked to end.

use crate::place::Place;
use anyhow::Context;
use daemon::{Host, confine};
use host::confine::{Enforced, Seccomp};
use host::poll::{Interest, Poller, Signals};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// How the host is started.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// Become this user before any guest is served, instead of what the configuration says. Names or numbers.
    #[arg(long, value_name = "USER[:GROUP]")]
    user: Option<String>,
    /// What is done about system calls that the host should not make: true, they end it; log, the kernel logs them;
    /// false, nothing. Default: what the configuration says, or true.
    #[arg(long, value_name = "true|false|log")]
    seccomp: Option<Seccomp>,
    /// Whether the host can reach only the files that it needs. Default: what the configuration says, or true.
    #[arg(long, value_name = "true|false")]
    landlock: Option<bool>,
}

/// How often the host looks whether its threads still run.
const LOOK: Duration = Duration::from_secs(1);

/// Runs the host. SIGTERM and SIGINT end it cleanly; SIGHUP does not, since guests would lose their VFs with the
/// terminal that the host was started from.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    start_log();
    let config = args.place.load_with(|file| {
        let keys = &mut file.confine;
        keys.user = args.user.clone().or(keys.user.take());
        keys.seccomp = args.seccomp.or(keys.seccomp);
        keys.landlock = args.landlock.or(keys.landlock);
    })?;
    // Each client may hold dozens of descriptors: files of memory, eventfds, its socket.
    if let Err(error) = host::limits::raise_open_files() {
        tracing::warn!(%error, "the limit on open files stays as it is");
    }
    // Before any thread starts: none may be left that a signal could kill.
    let signals = Signals::install().context("cannot catch signals")?;
    let mut poller = Poller::new()?;
    poller.add(&signals, 0, Interest::READ)?;
    match confine::begin(&config, &readable(args))? {
        Some(Enforced::Fully) | None => {}
        Some(how) => tracing::warn!(?how, "this kernel does not keep the host from all other files"),
    }
    let host = Host::start(config.clone())?;
    confine::first_thread(&config)?;
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
            tracing::info!("ending");
            host.stop();
            return Ok(ExitCode::SUCCESS);
        }
    }
    host.stop();
    anyhow::bail!("a thread of the host has ended; see the log above")
}

/// The configuration file's folder: an editor puts a new file in the place of the old one.
fn readable(args: &Args) -> Vec<PathBuf> {
    let file = args.place.config.as_deref();
    let folder = |file: &Path| match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    file.map(folder).into_iter().collect()
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
