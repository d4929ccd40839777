//! Clients of a simulated host's functions.

use super::{REST, SimulatedHost, slot_of_vf};
use crate::port::clients::slot::OfferedFunction;
use crate::port::command::PortThreadCommand;
use pcie::VfIndex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;
use std::time::Duration;

/// Longest time from the command until a client is disconnected: the port serves it for a second at most.
const DISCONNECTION: Duration = Duration::from_millis(1_100);

/// Returns true if a listening socket has a client in its queue.
fn is_ready(listener: &impl AsFd) -> bool {
    let listener = PollFd::new(listener, PollFlags::IN);
    poll(&mut [listener], Some(&Timespec::default())).expect("the kernel can poll") > 0
}

impl SimulatedHost {
    /// Has the administrator disconnect the client of a VF, and lets the host work meanwhile. Returns false if the client stays.
    pub(in super::super) fn disconnect(&mut self, vf: usize) -> bool {
        let (deaths, end) = (self.deaths, self.clock.time() + DISCONNECTION);
        let index = VfIndex::new(vf as u8).expect("a VF of the port");
        let answer = self.ask(|answer| PortThreadCommand::Disconnect(index, answer));
        // A port that has no such client refuses.
        while matches!(answer, Some(Ok(_))) && self.deaths == deaths && self.clients_of(vf).0 {
            if self.clock.time() > end {
                return false;
            }
            self.step(REST);
        }
        true
    }

    /// Returns true if a VF's function has accepted a client, and the number of clients that it has refused.
    pub(in super::super) fn clients_of(&self, vf: usize) -> (bool, u64) {
        let slots = self.port.as_ref().expect("a port runs between two steps").clients.slots();
        let slot = &slots[slot_of_vf(slots, vf).expect("each VF is offered")];
        (slot.connection().is_some(), slot.refusals.count)
    }

    /// Returns true if a VF's function has a former client to end before it serves the next: one that it has accepted, one in the
    /// queue of its socket, or one whose descriptors its worker still closes.
    pub(in super::super) fn is_behind(&self, vf: usize) -> bool {
        let slots = self.port.as_ref().expect("a port runs between two steps").clients.slots();
        let slot = &slots[slot_of_vf(slots, vf).expect("each VF is offered")];
        slot.connection().is_some()
            || slot.own.errands.backlog() > 0
            || slot.endpoint.listener().is_some_and(is_ready)
    }

    /// Returns the first of these VFs with a message that the port has not handled, or a reply that it has not sent.
    pub(in super::super) fn first_unanswered(&self, mut vfs: impl Iterator<Item = usize>) -> Option<usize> {
        let port = self.port.as_ref().expect("a port runs between two steps");
        let is_busy = |slot: &OfferedFunction| slot.connection().is_some_and(|client| !client.is_idle());
        vfs.find(|vf| {
            slot_of_vf(port.clients.slots(), *vf).is_some_and(|slot| is_busy(&port.clients.slots()[slot]))
        })
    }
}
