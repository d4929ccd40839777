//! Visits the card's transmit rings, and receives frames from the uplink. Port n of the plane is VF n. `work` connects the rings
//! to the frame path.

use crate::card::Nic;
use crate::learn::learn;
use crate::limits::MAX_VFS;
use core::mem;
use pcie::Bus;
use plane::{ForwardingPlane, PortIndex, TransmitQueueId, UplinkWire};

impl Nic {
    /// Counts the packets that were dropped since the last call after some of their segments had left. A visit of the rings counts
    /// them too.
    pub fn count_dropped(&mut self, plane: &mut ForwardingPlane<MAX_VFS>) {
        for vf in mem::take(&mut self.dropped).iter() {
            plane.ledger.of(PortIndex::of_field(vf.index() as u32)).tx_unclaimed += 1;
        }
    }

    /// Visits every transmit ring that may hold a packet, while its VF has a share left ([`plane::shares`]), and forwards
    /// up to `budget` frames of each. Sends announcements that are due first. Returns `true` if a ring has more frames that
    /// may leave now. Drivers of visited rings send no notifications until [`Nic::arm_rings`]. Frames that wait for their
    /// VF's rate may leave at [`Nic::due`].
    pub fn visit_ready<B: Bus, W: UplinkWire>(
        &mut self,
        plane: &mut ForwardingPlane<MAX_VFS>,
        budget: usize,
        bus: &mut B,
        wire: &mut W,
    ) -> bool {
        plane.shares.begin_round();
        self.visit_ready_vfs(plane, budget, bus, wire, |_, _| ())
    }

    /// Does what [`Nic::visit_ready`] does, and calls `after_vf` after the visit to a VF's rings. The caller begins the round of
    /// the shares, once for all cards that use the plane in turn.
    pub fn visit_ready_vfs<B: Bus, W: UplinkWire>(
        &mut self,
        plane: &mut ForwardingPlane<MAX_VFS>,
        budget: usize,
        bus: &mut B,
        wire: &mut W,
        mut after_vf: impl FnMut(&mut ForwardingPlane<MAX_VFS>, &mut B),
    ) -> bool {
        self.scratch.now = plane.now;
        self.due = None;
        self.count_dropped(plane);
        // Before the rings, which may spend the VF's credit in every round.
        let mut more = !self.announcements.is_empty() && self.send_announcements(plane, bus, wire);
        let mut due = self.due;
        for vf in 0..self.devices.len() {
            let port = PortIndex::of_field(vf as u32);
            self.devices[vf].continue_polls(port, bus);
            plane.shares.settle_pieces(port, &mut self.devices[vf].pieces);
            let (mut ready, mut budget) = (self.devices[vf].ready, budget);
            if ready != 0 && self.devices[vf].rules.enabled && self.devices[vf].address().is_none() {
                // The switch's tables have to know the address before the first frame leaves.
                // A VF in debt has no ring read: its packets wait, as they would for a visit.
                let has_credit = plane.shares.have_credit(port);
                let visits = if has_credit { learn(&mut self.devices, vf, plane, bus) } else { Some(0) };
                if visits.is_none() {
                    self.changed.note_by(port.get());
                }
                ready = visits.unwrap_or(0);
                more |= self.devices[vf].ready & !ready != 0;
                // The next packet of the ring may have an address to learn.
                budget = budget.min(1);
            }
            for queue in plane.shares.in_turn(port, ready) {
                let mut work = self.work(bus);
                let visited = plane.visit(TransmitQueueId { port, queue }, budget, &mut work, wire);
                let visited = visited.unwrap_or_default();
                let device = &mut self.devices[vf];
                // A stopped ring has no frames. One whose frames wait for a rate stays ready: nothing else causes its next visit.
                let live = device.transmit[usize::from(queue)].queue.is_some();
                let waits = visited.left || visited.due.is_some();
                let ready_now = live && (waits || device.ready >> queue & 1 != 0);
                device.ready = device.ready & !(1 << queue) | u16::from(ready_now) << queue;
                more |= ready_now && visited.due.is_none();
                due = [due, visited.due].into_iter().flatten().min();
            }
            more |= self.flush_trunk();
            after_vf(plane, bus);
        }
        self.due = due;
        self.give_back(plane, bus);
        self.send_delayed_interrupts(bus);
        more | self.flush_trunk()
    }

    /// Sends the delayed interrupts whose time has come, and notes when the next is due.
    fn send_delayed_interrupts<B: Bus>(&mut self, bus: &mut B) {
        let moderation = (self.scratch.now, self.scratch.intervals);
        if moderation.1.are_zero() {
            return;
        }
        for (vf, device) in (0..).zip(&mut self.devices) {
            let due = device.send_delayed(PortIndex::of_field(vf), moderation, bus);
            self.due = [self.due, due].into_iter().flatten().min();
        }
    }

    /// Receives up to `budget` frames from the uplink. Returns `false` if there are no more. The next call of
    /// [`Nic::visit_ready`] returns the filled buffers to their drivers, so that a poll interrupts for a ring at most once.
    pub fn arrive<B: Bus, W: UplinkWire>(
        &mut self,
        plane: &mut ForwardingPlane<MAX_VFS>,
        budget: usize,
        bus: &mut B,
        wire: &mut W,
    ) -> bool {
        let mut work = self.work(bus);
        let more = rings::arrive(&mut work, plane, budget, wire);
        work.end_burst(plane);
        more
    }
}
