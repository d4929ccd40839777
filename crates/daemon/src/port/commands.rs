//! What a port is told to do: answer, change a policy, reset, let a client go, end. Left out: where commands come from
//! (`control`), and what a change means (`policy`).

use super::hal::{PfHal, RunningHal, now};
use super::side::{Hosted, vf};
use super::{Command, Port, RefusedChange};
use crate::control::protocol::{Change, PortChange};
use crate::policy::ChangeError;
use driver::pf::Cause;
use i82576::VfIndex;
use std::sync::mpsc::TryRecvError;

impl Port {
    /// Does what was commanded since the last look.
    pub(super) fn obey(&mut self) {
        loop {
            match self.commands.try_recv() {
                Ok(Command::Status(answer)) => {
                    // Whoever asked may have given up waiting.
                    let _ = answer.send(self.status());
                }
                Ok(Command::Change(vf, change, answer)) => {
                    let _ = answer.send(self.change(vf, &change).map(|()| self.status()));
                }
                Ok(Command::ChangePort(change, answer)) => {
                    let _ = answer.send(self.change_port(&change).map(|()| self.status()));
                }
                Ok(Command::Reset(answer)) => {
                    let _ = answer.send(self.reset().map(|()| self.status()));
                }
                Ok(Command::Disconnect(vf, answer)) => {
                    let _ = answer.send(self.disconnect_vf(vf).map(|()| self.status()));
                }
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => return self.end(),
                Err(TryRecvError::Empty) => return,
            }
        }
    }

    /// Puts a changed policy to work, whole or not at all. A VF of a port that a guest drives has none.
    fn change(&mut self, index: VfIndex, change: &Change) -> Result<(), RefusedChange> {
        let Some(Hosted { pf, .. }) = self.side.hosted() else { return Ok(()) };
        let slot = self.slots.iter().find(|slot| vf(slot.function) == Some(index));
        let own = slot.map_or(self.mac, |slot| slot.mac);
        let policy = change.apply(*pf.policy(index), own)?;
        pf.set_policy(&mut PfHal(&mut self.nic), index, policy).map_err(ChangeError::from)?;
        match change.quarantine {
            Some(true) => pf.quarantine(&mut PfHal(&mut self.nic), index, Cause::Administrator),
            Some(false) => pf.release(&mut PfHal(&mut self.nic), index),
            None => {}
        }
        self.show_links();
        Ok(())
    }

    /// Puts a changed policy of the port to work, whole or not at all.
    fn change_port(&mut self, change: &PortChange) -> Result<(), RefusedChange> {
        let vfs = self.slots.len();
        let Some(Hosted { pf, .. }) = self.side.hosted() else { return Err(RefusedChange::Guests) };
        let policy = change.apply(*pf.port_policy(), vfs)?;
        pf.set_port_policy(&mut PfHal(&mut self.nic), policy).map_err(ChangeError::from)?;
        Ok(())
    }

    /// Resets the card and sets it up again, policy and all. Guests are told before, and their drivers start anew.
    fn reset(&mut self) -> Result<(), RefusedChange> {
        let Self { nic, bus, uplink, .. } = self;
        let Some(Hosted { pf, .. }) = self.side.hosted() else { return Err(RefusedChange::Guests) };
        pf.reset(&mut RunningHal { nic, bus, uplink })?;
        tracing::info!(port = self.name, "the port was reset");
        self.show_links();
        Ok(())
    }

    /// Tells a VF's guest that its link is gone, serves the client until it falls silent, and lets it go.
    fn disconnect_vf(&mut self, index: VfIndex) -> Result<(), RefusedChange> {
        let place = self.slots.iter().position(|slot| vf(slot.function) == Some(index));
        let Some(place) = place.filter(|place| self.slots[*place].connection.is_some()) else {
            return Err(RefusedChange::NoClient);
        };
        self.wind_down(place, now());
        self.show_links();
        if let Some(Hosted { pf, .. }) = self.side.hosted() {
            pf.notify(&mut PfHal(&mut self.nic), index);
        }
        Ok(())
    }
}
