//! From one process to the next: what a host takes over when it starts, and what it gives when it is told to.
//!
//! ```text
//! this process                          the successor
//!   has the keeper start it ----------->  reads the configuration
//!              <-------------- STARTED ---
//!   sets its ports aside
//!   descriptors, END ------------------>  opens the ports with them
//!              <---------------- READY ---
//!   GO -------------------------------->  serves
//!   ends
//! ```
//!
//! Whatever goes wrong before GO, this process goes on as if nothing had been. Guests wait from the moment in which the
//! ports are set aside until the successor serves.

use anyhow::{Context, bail, ensure};
use daemon::config::Config;
use daemon::vault::Vault;
use daemon::{Host, ReadyHost};
use host::keep::{From, Heritage, Line, STARTED, Store, number};
use std::time::Duration;

const READY: &str = "READY=1";
const GO: &str = "GO=1";
/// Under which name a successor gets the keeper's socket.
const KEEPER: &str = "keeper";
/// How long a successor may take to start, and to take over. Guests wait for the second, and QEMU does not wait for longer
/// than five seconds.
const START: Duration = Duration::from_secs(5);
const TAKE_OVER: Duration = Duration::from_secs(2);
/// How long ports stay set aside if nothing more is heard.
const ASIDE: Duration = Duration::from_secs(4);

/// Starts the host with what was left for this process, if anything was.
pub(super) fn take_over(config: Config) -> anyhow::Result<Host> {
    let Heritage { mut shelf, from } = Heritage::take()?;
    let (store, predecessor) = match from {
        From::Nobody => (None, None),
        From::Keeper(store) => (Some(store), None),
        From::Predecessor(line) => (shelf.take(KEEPER).map(Store::over).transpose()?, Some(line)),
    };
    let vault = Vault::new(shelf, store);
    let ready = ReadyHost::open(config, &vault)?;
    if let Some(line) = predecessor {
        line.tell(READY)?;
        if line.hear(ASIDE).ok().flatten().as_deref() != Some(GO) {
            // It goes on itself: everything is as it was, and nothing may be tidied up here.
            tracing::error!("the process before goes on; this one ends");
            std::process::exit(1);
        }
    }
    let host = ready.start()?;
    vault.say(READY);
    Ok(host)
}

/// Hands over to a new process of the program that is now where this one was started from; the number of that process.
/// Afterwards this one has to leave.
pub(super) fn hand_over(host: &Host) -> anyhow::Result<u32> {
    let Some(successor) = host.vault().succeed().context("the keeper is gone")? else {
        bail!("nobody could start a new process: start the host without --no-keeper");
    };
    tracing::info!("handing over");
    let outcome = give(host, &successor);
    if let Err(error) = &outcome {
        host.vault().abandon();
        host.resume();
        tracing::error!(%error, "nothing was handed over; this process goes on");
    }
    outcome
}

fn give(host: &Host, successor: &Line) -> anyhow::Result<u32> {
    let pid = match successor.hear(START) {
        Ok(Some(word)) => number(&word, STARTED).context("the new process says something else")? as u32,
        Ok(None) => bail!("the new process has ended at once; its own words are in the log"),
        Err(_) => bail!("the new process does not report within {START:?}"),
    };
    ensure!(host.pause(ASIDE), "a port cannot be set aside; see the log");
    host.vault().give(successor, KEEPER).context("the new process takes nothing")?;
    match successor.hear(TAKE_OVER) {
        Ok(Some(word)) if word == READY => {}
        Ok(Some(_) | None) => {
            bail!("the new process has ended while it took over; its own words are in the log")
        }
        Err(_) => bail!("the new process does not take over within {TAKE_OVER:?}"),
    }
    host.vault().say(&format!("MAINPID={pid}"));
    successor.tell(GO).context("the new process is gone")?;
    Ok(pid)
}

/// Sets everything aside for a process that whoever keeps the descriptors starts next; `false` if there is nobody.
pub(super) fn set_aside(host: &Host) -> bool {
    if !host.vault().is_kept() {
        tracing::error!(
            "SIGUSR2: nobody keeps descriptors for a successor; start the host without --no-keeper"
        );
        return false;
    }
    let paused = host.pause(ASIDE);
    if paused {
        tracing::info!("everything is set aside for the next process");
    } else {
        tracing::error!("SIGUSR2: a port cannot be set aside; this process goes on");
    }
    paused
}
