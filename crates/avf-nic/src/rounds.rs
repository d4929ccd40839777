//! Visits the card's transmit queues, and receives frames from the uplink. Port n of the forwarding plane is VF n.
//! `work` lends the queues to the forwarding code.

use crate::card::Nic;
use avf::ids::MAX_VFS;
use pcie::{Bus, VfIndex};
use plane::{ForwardingPlane, PortIndex, TransmitQueueId, UplinkWire};

impl Nic {
    /// Visits every transmit queue that may hold a packet, while its VF has a share left ([`plane::shares`]). Each queue
    /// hands over up to `budget` frames. Returns `true` if a queue has more frames to send now.
    /// Frames that their VF's rate delays may be sent at [`Nic::due`].
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

    /// Does what [`Nic::visit_ready`] does, and calls `after_vf` after the visit to a VF's queues. The caller begins the round of
    /// the shares, once for all cards that use the plane in turn.
    pub fn visit_ready_vfs<B: Bus, W: UplinkWire>(
        &mut self,
        plane: &mut ForwardingPlane<MAX_VFS>,
        budget: usize,
        bus: &mut B,
        wire: &mut W,
        mut after_vf: impl FnMut(&mut ForwardingPlane<MAX_VFS>, &mut B),
    ) -> bool {
        for vf in core::mem::take(&mut self.scratch.dropped).iter() {
            plane.ledger.of(PortIndex::of_field(vf.get().into())).tx_unclaimed += 1;
        }
        let (mut more, mut due) = (false, None);
        let (masters, mut work) = (self.masters, self.work(bus));
        for vf in masters.iter().map(VfIndex::get) {
            let port = PortIndex::of_field(vf.into());
            plane.shares.settle_pieces(port, &mut work.functions[usize::from(vf)].pieces);
            for queue in plane.shares.in_turn(port, work.functions[usize::from(vf)].tx_ready) {
                let visited = plane.visit(TransmitQueueId { port, queue }, budget, &mut work, wire);
                let visited = visited.unwrap_or_default();
                // A queue whose frames wait for a rate stays ready: nothing else would cause its next visit.
                if !visited.left && visited.due.is_none() {
                    work.functions[usize::from(vf)].tx_ready &= !(1 << queue);
                }
                more |= visited.left && visited.due.is_none();
                due = [due, visited.due].into_iter().flatten().min();
            }
            more |= work.scratch.away.flush();
            after_vf(plane, work.bus);
        }
        work.give_back();
        more |= work.scratch.away.flush();
        self.due = due;
        more
    }

    /// Receives up to `budget` frames from the uplink. Returns `false` if there are no more.
    pub fn arrive<B: Bus, W: UplinkWire>(
        &mut self,
        plane: &mut ForwardingPlane<MAX_VFS>,
        budget: usize,
        bus: &mut B,
        wire: &mut W,
    ) -> bool {
        let mut work = self.work(bus);
        let more = rings::arrive(&mut work, plane, budget, wire);
        work.give_back();
        more
    }
}
