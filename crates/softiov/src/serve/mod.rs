//! `softiov serve`: the host, in the foreground, until it is asked to end, and the keeper that starts it. Left out: what
//! is done with a configuration that is loaded again (`daemon`).

mod handover;
mod watchdog;

use crate::log::{Log, Records};
use crate::place::Place;
use anyhow::Context;
use daemon::config::Config;
use daemon::control::client::{self, ClientError};
use daemon::control::protocol::{Answer, Apply, Difference, Request};
use daemon::{Host, Order, confine};
use host::confine::{Enforced, Seccomp};
use host::keep::{Heritage, keeper};
use host::poll::{Interest, Poller, Signal, Signals};
use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// How the host is started.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// Start no keeper, which starts the host again with its guests when it dies: they lose their VFs then, and the host
    /// cannot be upgraded under them.
    #[arg(long)]
    no_keeper: bool,
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
/// How often it looks whether they have ended.
const STEP: Duration = Duration::from_millis(10);
/// How long the last lines of the log may take.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Runs the host. SIGTERM and SIGINT end it cleanly. SIGHUP has it load its configuration file again; it never ends the
/// host, since guests would lose their VFs with the terminal that the host was started from. SIGUSR2 has whoever keeps
/// its descriptors start it again.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if !args.no_keeper && !Heritage::is_left_by_ours() {
        return keep(args.seccomp.unwrap_or_default());
    }
    let log = collect_log();
    let prepared = prepare(args);
    // Not before: a thread that is there already would keep what the others give up.
    start_log(&log, prepared.as_ref().ok().map(|prepared| &prepared.config))
        .context("cannot start the log")?;
    let outcome = prepared.and_then(|prepared| serve(args, prepared));
    log.finish(LAST_LINES);
    outcome
}

/// What there is before any thread starts.
struct Prepared {
    config: Config,
    signals: Signals,
    poller: Poller,
}

/// Becomes the keeper of a host that is started with the same arguments. It does not read the configuration, so only a
/// `--seccomp` is for it too.
fn keep(seccomp: Seccomp) -> anyhow::Result<ExitCode> {
    let program = std::env::current_exe()?;
    // It holds what the host holds.
    let _ = host::limits::raise_open_files();
    let mut host = || {
        let mut command = Command::new(&program);
        command.args(std::env::args_os().skip(1));
        command
    };
    let status = keeper::keep(&mut host, seccomp).context("the keeper cannot begin")?;
    Ok(ExitCode::from(status))
}

/// Reads the configuration, and has the process give up what no thread needs.
fn prepare(args: &Args) -> anyhow::Result<Prepared> {
    let config = args.place.load_with(|file| {
        let keys = &mut file.confine;
        keys.user = args.user.clone().or(keys.user.take());
        keys.seccomp = args.seccomp.or(keys.seccomp);
        keys.landlock = args.landlock.or(keys.landlock);
    })?;
    let config = config.restore()?;
    // Each client may hold dozens of descriptors: files of memory, eventfds, its socket.
    if let Err(error) = host::limits::raise_open_files() {
        tracing::warn!(%error, "the limit on open files stays as it is");
    }
    // Before any thread starts: none may be left that a signal could kill.
    let signals = Signals::install().context("cannot catch signals")?;
    let poller = Poller::new()?;
    poller.add(&signals, 0, Interest::READ)?;
    match confine::begin(&config, &readable(args))? {
        Some(Enforced::Fully) | None => {}
        Some(how) => tracing::warn!(?how, "this kernel does not keep the host from all other files"),
    }
    Ok(Prepared { config, signals, poller })
}

fn serve(args: &Args, prepared: Prepared) -> anyhow::Result<ExitCode> {
    let Prepared { config, signals, mut poller } = prepared;
    let host = handover::take_over(config.clone())?;
    confine::first_thread(&config)?;
    watchdog::start(&host)?;
    poller.add(host.orders(), 1, Interest::READ)?;
    announce(&config, &host);
    while host.is_whole() {
        poller.wait(Some(LOOK))?.for_each(drop);
        let asked = signals.take();
        if asked.contains(Signal::HangUp) {
            reload(&host, &args.place);
        }
        if asked.asks_to_end() {
            return end(host, &signals, &mut poller);
        }
        if asked.contains(Signal::HandOver) && handover::set_aside(&host) {
            host.leave();
            return Ok(ExitCode::from(keeper::RESTART));
        }
        if let Some(Order::Upgrade(answer)) = host.order() {
            let outcome = handover::hand_over(&host);
            let done = outcome.is_ok();
            // Whoever asked may have given up waiting.
            let _ = answer.send(outcome.map_err(|error| crate::output::explain(&error)));
            if done {
                host.leave();
                return Ok(ExitCode::SUCCESS);
            }
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

/// Says where everything is.
fn announce(config: &Config, host: &Host) {
    for port in &config.ports {
        if let Some(socket) = &port.pf_socket {
            tracing::info!(pf = port.name, socket = %socket.display(), mac = %port.mac, "ready");
        }
    }
    for vf in config.ports.iter().flat_map(|port| &port.vfs) {
        tracing::info!(vf = vf.name, socket = %vf.socket.display(), mac = %vf.mac, "ready");
    }
    let (control, pid) = (host.control_socket().display(), std::process::id());
    tracing::info!(%control, pid, "serving");
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
            Ok(_) => tracing::error!(error = %ClientError::OtherAnswer, "SIGHUP: nothing was changed"),
            Err(error) => tracing::error!(error = crate::output::explain(&error), "SIGHUP: nothing was changed"),
        }
    });
    if let Err(error) = thread {
        tracing::error!(%error, "SIGHUP: nothing was changed");
    }
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

/// A log for the lines of this process; RUST_LOG chooses how many.
fn collect_log() -> Log {
    let log = Log::new();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let colours = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(log.clone())
        .with_ansi(colours)
        .with_target(false)
        .with_filter(filter);
    tracing_subscriber::registry().with(lines).with(Records.with_filter(LevelFilter::INFO)).init();
    log
}

/// Log lines go to standard error from now on. So does the word of a thread that panics.
fn start_log(log: &Log, config: Option<&Config>) -> anyhow::Result<()> {
    let gives_up = config.map(confine::helper).transpose()?;
    // A descriptor of the log's own: whoever else writes to standard error must not wait for the log.
    let out = File::from(std::io::stderr().as_fd().try_clone_to_owned()?);
    log.start(out, move || gives_up.map_or(Ok(()), |gives_up| Ok(gives_up.apply()?)))?;
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
    Ok(())
}
