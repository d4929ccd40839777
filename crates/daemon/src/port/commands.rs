//! What a port is told to do: answer, carry out an order, reset, let a client go, wait for a successor, end. Left out:
//! where commands come from (`management`), and orders (`order`).

use super::connection::{Connection, Over};
use super::hal::now;
use super::{Command, Inbox, Phase, Port, RefusedChange};
use pcie::VfIndex;
use std::sync::mpsc::{RecvTimeoutError, Sender, TryRecvError};
use std::time::{Duration, Instant};

impl Port {
    /// Does what was commanded since the last look.
    pub(super) fn obey(&mut self, inbox: &Inbox) {
        loop {
            match inbox.commands.try_recv() {
                Ok(Command::Status(answer)) => {
                    // Whoever asked may have given up waiting.
                    let _ = answer.send(self.status());
                }
                Ok(Command::Functions(answer)) => {
                    let _ = answer.send(self.functions());
                }
                Ok(Command::Flight(vf, answer)) => {
                    let _ = answer.send(self.flight(vf));
                }
                Ok(Command::Capture(capture)) => self.uplink.capture(capture),
                Ok(Command::Check(order, answer)) => {
                    let _ = answer.send(self.check(&order));
                }
                Ok(Command::Carry(order, new, answer)) => {
                    let _ = answer.send(self.carry(&order, new));
                }
                Ok(Command::Refit(refit, answer)) => {
                    let _ = answer.send(self.refit(*refit));
                }
                Ok(Command::Withdraw(count, answer)) => {
                    self.withdraw(count);
                    let _ = answer.send(());
                }
                Ok(Command::Reset(answer)) => {
                    let _ = answer.send(self.reset().map(|()| self.status()));
                }
                Ok(Command::Disconnect(vf, answer)) => {
                    let _ = answer.send(self.disconnect_vf(vf).map(|()| self.status()));
                }
                Ok(Command::Pause(time, answer)) => self.pause(inbox, time, &answer),
                // The time to do so is over.
                Ok(Command::Resume | Command::Leave) => {}
                #[cfg(test)]
                Ok(Command::Panic) => panic!("as told by a test"),
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => return self.end(),
                Err(TryRecvError::Empty) => return,
            }
        }
    }

    /// Sets everything aside, and waits for a successor to take it or not. Other commands wait as well.
    fn pause(&mut self, inbox: &Inbox, time: Duration, answer: &Sender<bool>) {
        // Notes the counters, which a successor continues.
        let _ = self.status();
        let serving = self.phase == Phase::Serving;
        let noted = serving && self.note_rest();
        if serving && !noted {
            tracing::error!(
                port = self.name,
                "its state does not fit what a successor reads; the port goes on here"
            );
        }
        if answer.send(noted).is_ok() && noted {
            match wait_for_successor(inbox, time) {
                Succession::Taken => return self.phase = Phase::Left,
                Succession::Ended => {
                    self.rest.disturb();
                    return self.end();
                }
                Succession::Refused => {}
            }
        }
        self.rest.disturb();
        self.journal.succeeded();
        for index in 0..self.slots.len() {
            // The poller may have reported what clients sent during the pause to the successor alone.
            self.slots[index].more = self.slots[index].connection.is_some();
            let went_on = self.slots[index].connection.as_ref().map(Connection::go_on);
            if let Some(Err(error)) = went_on {
                self.disconnect(index, &Over::Failed(error.to_string()));
            }
        }
    }

    /// Resets the card and sets it up again, policy and all. Guests are told before, and their drivers start anew.
    fn reset(&mut self) -> Result<(), RefusedChange> {
        self.card.reset(&mut self.bus, &mut self.uplink)?;
        tracing::info!(port = self.name, "the port was reset");
        self.show_links();
        Ok(())
    }

    /// Tells a VF's guest that its link is gone, serves the client until it falls silent, and lets it go.
    fn disconnect_vf(&mut self, index: VfIndex) -> Result<(), RefusedChange> {
        let place = self.slots.iter().position(|slot| slot.function.vf() == Some(index));
        let Some(place) = place.filter(|place| self.slots[*place].connection.is_some()) else {
            return Err(RefusedChange::NoClient);
        };
        self.wind_down(place, now());
        self.show_links();
        self.card.notify(index, &mut self.bus);
        Ok(())
    }
}

/// What became of a port that was set aside.
enum Succession {
    Taken,
    Refused,
    /// The host ends meanwhile.
    Ended,
}

/// Waits until it is known whether there is a successor, for so long at most. Whoever asks something else meanwhile gets
/// no answer.
fn wait_for_successor(inbox: &Inbox, time: Duration) -> Succession {
    let deadline = Instant::now() + time;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match inbox.commands.recv_timeout(left) {
            Ok(Command::Leave) => return Succession::Taken,
            Ok(Command::Resume) | Err(RecvTimeoutError::Timeout) => return Succession::Refused,
            Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return Succession::Ended,
            Ok(other) => drop(other),
        }
    }
}
