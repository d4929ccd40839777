//! Clients of a simulated host's functions.

use super::{SimulatedHost, slot_of_vf};
use crate::port::clients::slot::OfferedFunction;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;

/// Returns true if a listening socket has a client in its queue.
fn is_ready(listener: &impl AsFd) -> bool {
    let listener = PollFd::new(listener, PollFlags::IN);
    poll(&mut [listener], Some(&Timespec::default())).expect("the kernel can poll") > 0
}

impl SimulatedHost {
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
