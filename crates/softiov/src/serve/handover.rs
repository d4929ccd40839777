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
use daemon::{ReadyHost, RunningHost};
use host::poll::{ProcessSignal, SignalHandlers};
use keeper::{
    FileDescriptorSender, HandOverChannel, InheritedFileDescriptors, KeeperConnection, STARTED, number,
};
use std::time::{Duration, Instant};

const READY: &str = "READY=1";
const GO: &str = "GO=1";
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
                 if this process dies now, guests may lose their VFs: upgrade the host again"
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
    ensure!(
        !asked.asks_to_end() && !asked.contains(ProcessSignal::HandOver),
        "a signal ends or restarts this host"
    );
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

/// Pauses all ports for the process that the keeper process starts next. Returns false if no keeper holds file
/// descriptors, or a port does not pause.
pub(super) fn pause_for_successor(host: &RunningHost) -> bool {
    if !host.vault().is_kept() {
        tracing::error!(
            "SIGUSR2: a restart needs the keeper process, which starts the new host; \
             start the host without --no-keeper"
        );
        return false;
    }
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
