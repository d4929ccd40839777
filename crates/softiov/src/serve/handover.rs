//! Hands a host over between processes: takes over at the start, and hands over on request.
//!
//! ```text
//! this process                          the successor
//!   has the keeper start it ----------->  reads the configuration
//!              <-------------- STARTED ---
//!   pauses its ports
//!   descriptors, END ------------------>  opens the ports with them
//!              <---------------- READY ---
//!   GO -------------------------------->  serves
//!   names the successor to the keeper
//!   ends
//! ```
//!
//! If anything fails before or at GO, this process resumes as if nothing had happened: the keeper does not know of the
//! take-over yet, nor of the new descriptors. After GO this process must not resume, and ends with the status by which a
//! host asks for another one: a keeper that has seen the successor's death before it learned its name starts one then.
//! Guests wait from the pause of the ports until the successor serves.
//!
//! This process reads no signal meanwhile. The keeper sends the successor those that arrive after it has started the
//! successor, and this process gives way to earlier ones.

use anyhow::{Context, bail, ensure};
use daemon::config::HostConfig;
use daemon::vault::FileDescriptorStore;
use daemon::{MainThreadRequest, ReadyHost, RunningHost, UpgradeFailure};
use host::poll::{Poller, ProcessSignal, SignalHandlers};
use keeper::{
    FileDescriptorSender, HandOverChannel, InheritedFileDescriptors, KeeperConnection, STARTED, number,
};
use std::fmt;
use std::time::{Duration, Instant};

const READY: &str = "READY=1";
const GO: &str = "GO=1";
/// Refusal of an upgrade whose host was sent a signal before.
#[derive(Debug)]
struct Signalled;

impl fmt::Display for Signalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a signal ends or restarts this host")
    }
}

impl std::error::Error for Signalled {}

/// Returns the answer to the request for a hand-over that has failed.
pub(super) fn failure(error: &anyhow::Error) -> UpgradeFailure {
    let reason = crate::output::error_chain(error);
    if error.is::<Signalled>() { UpgradeFailure::PutOff(reason) } else { UpgradeFailure::Refused(reason) }
}
/// Name of the file descriptor by which a successor process receives the keeper's socket.
const KEEPER: &str = "keeper";
/// Timeout of a successor's start, before the hand-over stops any port.
const START_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a successor's take-over, while guests wait: QEMU waits five seconds at most.
const TAKE_OVER_TIMEOUT: Duration = Duration::from_secs(2);
/// Time after which ports that are paused for a hand-over resume if no message of the successor process arrives.
const PAUSE_TIMEOUT: Duration = Duration::from_secs(4);
/// Least time that a pause of the ports lasts after GO.
const MARGIN: Duration = Duration::from_millis(500);
/// Longest wait for requests and file calls before a host pauses for a restart. A disk may take long for one, and guests are
/// served meanwhile. systemd kills a host that has not restarted after 90 s (`TimeoutStopSec=`).
pub(super) const SETTLE_TIMEOUT: Duration = Duration::from_secs(75);
/// Time after which the reason for the wait is logged.
const SETTLE_NOTICE: Duration = Duration::from_secs(1);
/// Interval between two checks whether the host has settled.
const SETTLE_INTERVAL: Duration = Duration::from_millis(10);
/// Longest wait for this process's threads after its ports have left for a restart: guests wait until the process has ended,
/// QEMU five seconds at most, of which the pause may have taken 3.5. Working disks and clients take milliseconds.
pub(super) const LEAVE_TIMEOUT: Duration = Duration::from_millis(200);
/// Longest wait for this process's threads once a successor process serves the guests: removed clients, answers and recordings
/// take two seconds.
pub(super) const AFTER_UPGRADE_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of the keeper process to take the descriptors that were withheld from it.
const TELL_TIMEOUT: Duration = Duration::from_secs(2);

/// Starts the host, with the file descriptors that a keeper process or the previous host process left for this process,
/// if any.
pub(super) fn take_over(config: HostConfig) -> anyhow::Result<RunningHost> {
    let InheritedFileDescriptors { mut shelf, from } = InheritedFileDescriptors::take()?;
    let (store, predecessor) = match from {
        FileDescriptorSender::NoSender => (None, None),
        FileDescriptorSender::Keeper(store) => (Some(store), None),
        FileDescriptorSender::Predecessor(line) => {
            let store = shelf.take(KEEPER).map(KeeperConnection::over).transpose()?;
            (store.map(|store| store.holding(&shelf)), Some(line))
        }
    };
    let vault = FileDescriptorStore::new(shelf, store);
    let ready = if predecessor.is_some() {
        // If this process fails, the predecessor resumes, and the keeper must hold its descriptors only.
        vault.withhold();
        ReadyHost::succeed(config, &vault)
    } else {
        ReadyHost::open(config, &vault)
    };
    let ready = match ready {
        Ok(ready) => ready,
        Err(error) => {
            // The predecessor has this process killed once the line ends, and the error is not in the log yet.
            std::mem::forget(predecessor);
            return Err(error.into());
        }
    };
    if let Some(line) = predecessor {
        line.tell(READY)?;
        if line.hear(PAUSE_TIMEOUT).ok().flatten().as_deref() != Some(GO) {
            // The predecessor resumes with everything as it was, so this process must clean up nothing.
            tracing::error!(
                "the previous host process did not release the ports, and resumes; this process ends"
            );
            std::process::exit(1);
        }
        // Before any guest depends on it: the keeper must be able to start the next host.
        if !vault.tell_withheld(TELL_TIMEOUT) {
            tracing::error!(
                "the keeper process did not accept the file descriptors of new ports and sockets within {TELL_TIMEOUT:?}; \
                 they are sent again, and if this process dies before, guests may lose their VFs"
            );
        }
    }
    let host = ready.start()?;
    vault.say(READY);
    Ok(host)
}

/// Hands over to a new process of the installed program, and returns its pid. Afterwards the caller must leave, and end
/// with [`keeper::RESTART`].
pub(super) fn hand_over(host: &RunningHost, signals: &SignalHandlers) -> anyhow::Result<u32> {
    let Some(successor) =
        host.vault().succeed().context("cannot ask the keeper process to start a new host")?
    else {
        bail!(
            "an upgrade needs the keeper process, which starts the new process; start the host without --no-keeper"
        );
    };
    tracing::info!("handing the ports over to the new process");
    let outcome = transfer(host, &successor, signals);
    if let Err(error) = &outcome {
        // Guests wait, and the keeper may not answer at once.
        host.resume();
        host.vault().abandon();
        tracing::error!(%error, "the hand-over to the new process failed; this process resumes");
    }
    outcome
}

fn transfer(
    host: &RunningHost,
    successor: &HandOverChannel,
    signals: &SignalHandlers,
) -> anyhow::Result<u32> {
    let pid = match successor.hear(START_TIMEOUT) {
        Ok(Some(word)) => number(&word, STARTED)
            .with_context(|| format!("unexpected message from the new process: {word:?}"))?
            as u32,
        Ok(None) => bail!("the new process ended at once; its messages are in the log"),
        Err(_) => bail!("the new process did not report within {START_TIMEOUT:?}"),
    };
    // The keeper has started the successor, and sends it later signals.
    let asked = signals.pending();
    ensure!(!asked.asks_to_end() && !asked.contains(ProcessSignal::HandOver), Signalled);
    let paused = Instant::now();
    host.vault().withhold();
    ensure!(host.pause(PAUSE_TIMEOUT), "a port did not pause; see the log");
    host.vault().give(successor, KEEPER).context("cannot send file descriptors to the new process")?;
    match successor.hear(TAKE_OVER_TIMEOUT) {
        Ok(Some(word)) if word == READY => {}
        Ok(Some(_) | None) => {
            bail!("the new process ended during the take-over; its messages are in the log")
        }
        Err(_) => bail!("the new process did not take over within {TAKE_OVER_TIMEOUT:?}"),
    }
    ensure!(is_paused_since(paused), "the take-over took longer than the ports wait");
    successor.tell(GO).context("the new process ended before it could serve; its messages are in the log")?;
    // Not earlier: a keeper that has replaced this process starts another host if the successor is dead.
    host.vault().say(&format!("MAINPID={pid}"));
    Ok(pid)
}

/// Returns true if no port that began to pause after `paused` resumes soon: a port that waited too long for the successor process
/// resumes by itself, and then no other process may serve it.
fn is_paused_since(paused: Instant) -> bool {
    paused.elapsed() + MARGIN < PAUSE_TIMEOUT
}

/// End of the wait for a host that settles before a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestartPreparation {
    /// The host may pause.
    Settled,
    /// The host does not restart, and resumes.
    Refused,
    /// A signal asks this process to end.
    Ends,
}

/// Waits up to `timeout` until the host carries out no request, and begins none, and no disk keeps its threads from ending. Guests
/// are served meanwhile. A SIGHUP that arrives meanwhile is pending afterwards.
pub(super) fn settle(
    host: &RunningHost,
    signals: &SignalHandlers,
    poller: &mut Poller,
    timeout: Duration,
) -> anyhow::Result<RestartPreparation> {
    if !host.vault().is_kept() {
        tracing::error!(
            "SIGUSR2: a restart needs the keeper process, which starts the new host; \
             start the host without --no-keeper"
        );
        return Ok(RestartPreparation::Refused);
    }
    let (began, mut is_logged, mut hangs_up) = (Instant::now(), false, false);
    let outcome = loop {
        let Err(reason) = host.settle(began) else { break RestartPreparation::Settled };
        if !host.is_whole() {
            break RestartPreparation::Settled;
        }
        if began.elapsed() >= timeout {
            host.resume();
            tracing::error!(%reason, "SIGUSR2: the host has not settled within {timeout:?}; this process resumes");
            break RestartPreparation::Refused;
        }
        if began.elapsed() >= SETTLE_NOTICE && !std::mem::replace(&mut is_logged, true) {
            tracing::warn!(%reason, "SIGUSR2: the restart waits; guests are served");
        }
        poller.wait(Some(SETTLE_INTERVAL))?.for_each(drop);
        let asked = signals.take();
        if asked.asks_to_end() {
            return Ok(RestartPreparation::Ends);
        }
        hangs_up |= asked.contains(ProcessSignal::HangUp);
        // The request may be an upgrade, which this thread would carry out.
        if let Some(MainThreadRequest::Upgrade(answer)) = host.order() {
            let _ = answer.send(Err(failure(&Signalled.into())));
        }
    };
    if hangs_up {
        signals.put_back(ProcessSignal::HangUp);
    }
    Ok(outcome)
}

/// Pauses all ports of a settled host for the process that the keeper process starts next. Returns false if a port does not
/// pause.
pub(super) fn pause_for_successor(host: &RunningHost) -> bool {
    let began = Instant::now();
    host.vault().withhold();
    let paused = host.pause(PAUSE_TIMEOUT);
    let told = host.vault().tell_withheld(TELL_TIMEOUT);
    if paused && told && is_paused_since(began) {
        tracing::info!("SIGUSR2: ports are paused for the successor process");
        return true;
    }
    host.resume();
    tracing::error!(
        paused,
        told,
        "SIGUSR2: a port or the keeper did not answer in time; this process resumes"
    );
    false
}

#[cfg(test)]
mod tests;
