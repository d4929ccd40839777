//! `softiov serve`: runs the host in the foreground until a signal ends it, under the keeper that starts it.

mod handover;
mod watchdog;

use crate::log::{EventRecordLayer, HostLog};
use crate::target::HostSelectionOptions;
use anyhow::Context;
use daemon::config::HostConfig;
use daemon::control::client::{self, ControlClientError};
use daemon::control::protocol::{ApplyRequest, ConfigDifference, ControlAnswer, ControlRequest};
use daemon::{MainThreadRequest, RunningHost, confine};
use handover::RestartPreparation;
use host::confine::{LandlockEnforcement, SeccompMode};
use host::poll::{PollInterest, Poller, ProcessSignal, SignalHandlers};
use keeper::{InheritedFileDescriptors, KeeperConfig};
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

/// Arguments of `softiov serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    target: HostSelectionOptions,
    /// Start no keeper. A keeper restarts a host that has died, and guests keep their VFs. Without a keeper, guests
    /// lose their VFs, and the host cannot be upgraded while guests run.
    #[arg(long)]
    no_keeper: bool,
    /// User and group to become before any guest is served, by name or number (default: as configured).
    #[arg(long, value_name = "USER[:GROUP]")]
    user: Option<String>,
    /// Action on system calls that the host should not make: true ends the host, log has the kernel log them, false
    /// does nothing (default: as configured, or true).
    #[arg(long, value_name = "true|false|log")]
    seccomp: Option<SeccompMode>,
    /// Restrict the host to the files that it needs (default: as configured, or true).
    #[arg(long, value_name = "true|false")]
    landlock: Option<bool>,
}

/// Interval between two checks that the host's threads run.
const THREAD_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between two checks that an ending host's threads have ended.
const END_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Timeout for writing the last lines of the log.
const LOG_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs the host. SIGTERM and SIGINT end it cleanly. SIGHUP reloads its configuration file; it never ends the host,
/// since guests would lose their VFs with the terminal that started it. SIGUSR2 has the supervisor
/// process (keeper) start a new host, which takes over the VFs.
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    if !args.no_keeper && !InheritedFileDescriptors::exist() {
        return run_keeper(args.seccomp.unwrap_or_default());
    }
    let log = collect_log();
    let prepared = prepare(args);
    // Not earlier: a running thread would keep the privileges that the others give up.
    start_log(&log, prepared.as_ref().ok().map(|prepared| &prepared.config))
        .context("cannot start the thread that writes the log")?;
    let outcome = prepared.and_then(|prepared| serve(args, prepared));
    // Guests may wait for the end of a process that restarts.
    let restarts = outcome.as_ref().is_ok_and(|status| *status == ExitCode::from(keeper::RESTART));
    log.finish(if restarts { handover::LEAVE_TIMEOUT } else { LOG_TIMEOUT });
    outcome
}

/// Configuration, signals and poller of a host, which are set up before any thread starts.
struct PreparedHost {
    config: HostConfig,
    signals: SignalHandlers,
    poller: Poller,
}

/// Becomes the keeper of a host that is started with the same arguments. The keeper does not read the configuration,
/// so only `--seccomp` applies to it too.
fn run_keeper(seccomp: SeccompMode) -> anyhow::Result<ExitCode> {
    let program = std::env::current_exe()?;
    // The keeper holds every descriptor that the host holds.
    let _ = host::limits::raise_open_files();
    let mut host = || {
        let mut command = Command::new(&program);
        command.args(std::env::args_os().skip(1));
        command
    };
    let config = KeeperConfig { service: "softiov", seccomp };
    let status =
        keeper::keep(&config, &mut host).context("cannot start the keeper process, which starts the host")?;
    Ok(ExitCode::from(status))
}

/// Reads the configuration, sets up signals and poller, and gives up the privileges that no thread needs.
fn prepare(args: &ServeArgs) -> anyhow::Result<PreparedHost> {
    let config = args.target.load_with(|file| {
        let keys = &mut file.confine;
        keys.user = args.user.clone().or(keys.user.take());
        keys.seccomp = args.seccomp.or(keys.seccomp);
        keys.landlock = args.landlock.or(keys.landlock);
    })?;
    let config = config.restore()?;
    // Each client may hold dozens of descriptors: files of memory, eventfds, its socket.
    if let Err(error) = host::limits::raise_open_files() {
        tracing::warn!(%error, "cannot raise the limit on open files");
    }
    // Before any thread starts: a thread that does not block signals could be killed by one.
    let signals = SignalHandlers::install().context("cannot catch signals")?;
    let poller = Poller::new()?;
    poller.add(&signals, 0, PollInterest::READ)?;
    match confine::begin(&config, &readable_directories(args))? {
        Some(LandlockEnforcement::Fully) | None => {}
        Some(how) => tracing::warn!(?how, "this kernel restricts the host's file access only in part"),
    }
    Ok(PreparedHost { config, signals, poller })
}

fn serve(args: &ServeArgs, prepared: PreparedHost) -> anyhow::Result<ExitCode> {
    let PreparedHost { config, signals, mut poller } = prepared;
    let host = handover::take_over(config.clone())?;
    confine::first_thread(&config)?;
    watchdog::start(&host)?;
    poller.add(host.orders(), 1, PollInterest::READ)?;
    log_sockets(&config, &host);
    while host.is_whole() {
        poller.wait(Some(THREAD_CHECK_INTERVAL))?.for_each(drop);
        host.vault().send_late();
        let asked = signals.take();
        if asked.asks_to_end() {
            return end_gracefully(host, &signals, &mut poller);
        }
        if asked.contains(ProcessSignal::HandOver) {
            match handover::settle(&host, &signals, &mut poller, handover::SETTLE_TIMEOUT)? {
                RestartPreparation::Ends => return end_gracefully(host, &signals, &mut poller),
                RestartPreparation::Settled if handover::pause_for_successor(&host) => {
                    host.leave(handover::LEAVE_TIMEOUT);
                    return Ok(ExitCode::from(keeper::RESTART));
                }
                RestartPreparation::Settled | RestartPreparation::Refused => {}
            }
        }
        // A successor process reads the file itself, and a host that settles carries out no request.
        if asked.contains(ProcessSignal::HangUp) {
            reload(&host, &args.target);
        }
        if let Some(MainThreadRequest::Upgrade(answer)) = host.order() {
            let outcome = handover::hand_over(&host, &signals);
            let done = outcome.is_ok();
            // The client may have given up waiting.
            let _ = answer.send(outcome.map_err(|error| handover::failure(&error)));
            if done {
                host.leave(handover::AFTER_UPGRADE_TIMEOUT);
                return Ok(ExitCode::from(keeper::RESTART));
            }
        }
    }
    // Under a keeper the next host continues with the guests, as after every other failure of this function.
    drop(host);
    anyhow::bail!("a thread of the host has ended unexpectedly; see the log above")
}

/// Returns the directories that the confined host may read: that of the configuration file, since an editor replaces
/// the file by a new one.
fn readable_directories(args: &ServeArgs) -> Vec<PathBuf> {
    let file = args.target.config.as_deref();
    let folder = |file: &Path| match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    file.map(folder).into_iter().collect()
}

/// Logs the socket path and the Ethernet address of each function.
fn log_sockets(config: &HostConfig, host: &RunningHost) {
    for port in &config.ports {
        if let Some(socket) = &port.pf_socket {
            tracing::info!(pf = port.name, socket = %socket.display(), mac = %port.mac, "the PF is ready for a client");
        }
    }
    for vf in config.ports.iter().flat_map(|port| &port.vfs) {
        tracing::info!(vf = vf.name, socket = %vf.socket.display(), mac = %vf.mac, "the VF is ready for a client");
    }
    let (control, pid) = (host.control_socket().display(), std::process::id());
    tracing::info!(%control, pid, "the host is serving");
}

/// Log message after the configuration file could not be loaded again.
const RELOAD_FAILED: &str = "SIGHUP: cannot apply the configuration file; nothing was changed";

/// Loads the host's configuration file again. A refused file changes nothing.
fn reload(host: &RunningHost, target: &HostSelectionOptions) {
    let Some(file) = target.config.clone() else {
        tracing::info!("SIGHUP: the host was started without a configuration file; nothing was changed");
        return;
    };
    let (socket, target) = (host.control_socket().to_owned(), target.clone());
    // The reply may take seconds, and a signal to end must not wait for it.
    let thread = std::thread::Builder::new().name("reload".into()).spawn(move || {
        let asked = crate::apply::request(&file, &target, false)
            .map(|apply| ControlRequest::Apply(ApplyRequest { reload: true, ..apply }))
            .and_then(|request| Ok(client::ask(&socket, request)?));
        match asked {
            Ok(ControlAnswer::Difference(ConfigDifference { changes, .. })) => {
                tracing::info!(
                    file = %file.display(),
                    changes = changes.len(),
                    "SIGHUP: loaded the configuration file again"
                );
            }
            Ok(_) => tracing::error!(error = %ControlClientError::OtherAnswer, "{RELOAD_FAILED}"),
            Err(error) => tracing::error!(error = crate::output::error_chain(&error), "{RELOAD_FAILED}"),
        }
    });
    if let Err(error) = thread {
        tracing::error!(%error, "{RELOAD_FAILED}");
    }
}

/// Ends the host: disconnects every client so that its virtual machine lives on. A second signal ends the process at
/// once.
fn end_gracefully(
    host: RunningHost,
    signals: &SignalHandlers,
    poller: &mut Poller,
) -> anyhow::Result<ExitCode> {
    tracing::info!("the host ends; guests are notified, and their virtual machines keep running");
    host.end();
    while !host.has_ended() {
        poller.wait(Some(END_CHECK_INTERVAL))?.for_each(drop);
        if signals.take().asks_to_end() {
            tracing::warn!("second signal: exiting now; attached VMs may lose their VF");
            std::process::exit(1);
        }
    }
    host.stop();
    Ok(ExitCode::SUCCESS)
}

/// Creates the log of this process; RUST_LOG selects the lines that it has.
fn collect_log() -> HostLog {
    let log = HostLog::new();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let colours = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(log.clone())
        .with_ansi(colours)
        .with_target(false)
        .with_filter(filter);
    tracing_subscriber::registry().with(lines).with(EventRecordLayer.with_filter(LevelFilter::INFO)).init();
    log
}

/// Starts writing the log to standard error, and logs panics.
fn start_log(log: &HostLog, config: Option<&HostConfig>) -> anyhow::Result<()> {
    let gives_up = config.map(confine::helper).transpose()?;
    // A descriptor of the log's own, so that other writers to standard error do not wait for the log.
    let out = File::from(std::io::stderr().as_fd().try_clone_to_owned()?);
    log.start(out, move || gives_up.map_or(Ok(()), |gives_up| Ok(gives_up.apply()?)))?;
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
    Ok(())
}
