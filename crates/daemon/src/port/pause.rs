//! Pause of a port before a hand-over: it lets front ends finish their requests, saves the port, and waits for the successor
//! process.

use super::command::{PortCommandInbox, PortThreadCommand};
use super::pending_pause::PendingPause;
use super::run::{OpenPort, PortPhase};
use crate::clock::TimeSource;
use i82576::Time;
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::time::Duration;

impl OpenPort {
    /// Begins a pause, which waits up to `time` for the successor process.
    pub(super) fn begin_pause(&mut self, time: Duration, answer: Sender<bool>, now: Time) {
        self.pausing = Some(PendingPause::new(time, answer, now));
    }

    /// Pauses the port if a pause is pending and no front end waits for a blocking call, or for room in its socket. Returns
    /// false if the pause has to wait.
    pub(super) fn continue_pause(&mut self, inbox: &PortCommandInbox, clock: &dyn TimeSource) -> bool {
        let Some(pending) = self.pausing.take() else { return true };
        let now = clock.now();
        self.clients.finish_errands(&mut self.engine, now);
        let may_wait = self.phase == PortPhase::Serving && pending.may_wait(now);
        if may_wait && self.clients.finish_requests(&mut self.engine, now) {
            self.pausing = Some(pending);
            return false;
        }
        self.pause(inbox, &pending, clock);
        true
    }

    /// Finishes what a successor process cannot finish, and saves the whole port and its counters. Returns false if the port
    /// ends, or is too large to save.
    fn save_for_successor(&mut self, now: Time) -> bool {
        self.clients.prepare_hand_over(&mut self.engine, now);
        // A successor takes a register that the pages lack for a guest's store. The end of a worker's turn has read the
        // doorbells, and the round that publishes the registers does not follow.
        self.clients.publish_registers(&mut self.engine, now);
        self.succession.save_addresses(&self.engine, now);
        // Publishing a status saves the counters, which a successor continues.
        let _ = self.status(now);
        self.phase == PortPhase::Serving && self.note_all(now)
    }

    /// Saves the state of the whole port for the successor process. Returns `false` if the port cannot be saved now.
    pub(super) fn note_all(&mut self, now: Time) -> bool {
        let Self { engine, clients, succession, .. } = self;
        let states = (clients.watched(), clients.states(engine));
        succession.note_all(engine, states, now)
    }

    /// Saves the whole port, and waits until the successor process takes the port or the deadline passes. Other
    /// commands get no answer meanwhile.
    fn pause(&mut self, inbox: &PortCommandInbox, pending: &PendingPause, clock: &dyn TimeSource) {
        let now = clock.now();
        let serving = self.phase == PortPhase::Serving;
        let noted = self.save_for_successor(now);
        if serving && !noted {
            tracing::error!(
                port = self.name,
                "the port's state is too large to hand over; this process keeps running the port"
            );
        }
        let (mut ended, mut outdated) = (false, false);
        if pending.answer.send(noted).is_ok() && noted {
            match wait_for_successor(inbox, pending.time, clock) {
                PortPauseOutcome::Taken => return self.phase = PortPhase::Left,
                PortPauseOutcome::Ended => ended = true,
                PortPauseOutcome::Refused { is_outdated } => outdated = is_outdated,
            }
        }
        let now = clock.now();
        // The port continues, so the saved state of the whole port becomes invalid.
        self.succession.disturb();
        self.clients.resume(&mut self.engine, now);
        if ended {
            return self.end(now);
        }
        if outdated {
            return self.phase = PortPhase::Outdated;
        }
        self.succession.note_working();
    }
}

/// Outcome of a port's pause, in which a successor process may take the port.
enum PortPauseOutcome {
    Taken,
    /// No successor takes the port. `is_outdated` means that the port was ordered meanwhile to be opened again.
    Refused {
        is_outdated: bool,
    },
    /// The host ended during the port's pause.
    Ended,
}

/// Waits up to `time` until a successor process takes or refuses the paused port. Other commands get no answer
/// meanwhile.
fn wait_for_successor(inbox: &PortCommandInbox, time: Duration, clock: &dyn TimeSource) -> PortPauseOutcome {
    let deadline = clock.now() + time;
    let mut is_outdated = false;
    loop {
        let left = deadline.since(clock.now());
        match inbox.commands.recv_timeout(left) {
            Ok(PortThreadCommand::Leave) => return PortPauseOutcome::Taken,
            Ok(PortThreadCommand::Resume) | Err(RecvTimeoutError::Timeout) => {
                return PortPauseOutcome::Refused { is_outdated };
            }
            Ok(PortThreadCommand::Stop) | Err(RecvTimeoutError::Disconnected) => {
                return PortPauseOutcome::Ended;
            }
            Ok(PortThreadCommand::OpenAgain) => is_outdated = true,
            Ok(other) => drop(other),
        }
    }
}
