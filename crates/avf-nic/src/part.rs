//! Divides the card among threads: a part of it has some of the VFs, on a plane of its own. [`Nic::detach`] takes a VF out
//! of one part, and [`Nic::attach`] puts it into another. A frame for a VF in another part, or of a card of another family on
//! the same plane, crosses in a trunk.
//!
//! Only the whole card has the PF: messages, orders and register accesses of clients. A part moves frames and interrupts.

use crate::card::Nic;
use crate::function::VfHardware;
use alloc::boxed::Box;
use avf::bits::rstat;
use avf::ids::MAX_VFS;
use pcie::{Bus, VfIndex};
use plane::{ForwardingPlane, FrameTrunk, PortIndex, PortSet, TrunkBatch};
use units::Time;

/// VF that is in no part of the card.
#[derive(Debug)]
pub struct DetachedVf {
    vf: u8,
    hardware: VfHardware,
}

impl Nic {
    /// Returns true if another part of the card may serve a VF: it may use the bus, one of its rings runs, and the PF has no
    /// message of it to take.
    #[must_use]
    pub fn may_detach(&self, vf: u8) -> bool {
        let function = self.functions.get(usize::from(vf));
        function.is_some_and(|function| {
            let runs =
                function.tx.iter().any(|ring| ring.running) || function.rx.iter().any(|ring| ring.running);
            function.master && function.rstat == rstat::ACTIVE && runs && function.next_message().is_none()
        })
    }

    /// Takes a VF out of this part of the card. Frames for the VF go to the trunk of [`Nic::set_trunk`] until
    /// [`Nic::attach`].
    pub fn detach(&mut self, vf: u8) -> Option<DetachedVf> {
        let place = self.functions.get_mut(usize::from(vf))?;
        let hardware = core::mem::replace(place, VfHardware::new());
        self.masters = self.masters.without([VfIndex::of_field(vf.into())].into_iter().collect());
        self.scratch.away.vfs |= PortIndex::of_field(vf.into()).only();
        Some(DetachedVf { vf, hardware })
    }

    /// Puts a VF into this part of the card.
    pub fn attach(&mut self, DetachedVf { vf, hardware }: DetachedVf) {
        let Some(place) = self.functions.get_mut(usize::from(vf)) else { return };
        if hardware.master {
            self.masters = self.masters.or([VfIndex::of_field(vf.into())].into_iter().collect());
        }
        *place = hardware;
        self.scratch.away.vfs &= !PortIndex::of_field(vf.into()).only();
    }

    /// Leaves VFs to other parts of the card, or to cards of other families on the same plane: frames for these VFs go to the
    /// trunk of [`Nic::set_trunk`].
    pub fn leave_to_others(&mut self, vfs: PortSet) {
        self.scratch.away.vfs = vfs;
    }

    /// Sets the trunk to other parts of the card, or to cards of other families.
    pub fn set_trunk(&mut self, trunk: Option<Box<dyn FrameTrunk>>) {
        self.scratch.away.trunk = trunk;
    }

    /// Hands the frames of this part in the trunk to the other parts of the card. Returns true if some have stayed
    /// ([`FrameTrunk::flush`]).
    pub fn flush_trunk(&mut self) -> bool {
        self.scratch.away.flush()
    }

    /// Delivers the frames of a batch from a trunk. [`Nic::visit_ready`] or [`Nic::give_back`] notifies the drivers.
    pub fn leave_trunk<B: Bus>(
        &mut self,
        plane: &mut ForwardingPlane<MAX_VFS>,
        batch: &mut TrunkBatch,
        bus: &mut B,
    ) {
        rings::leave_trunk(&mut self.work(bus), plane, batch);
    }

    /// Writes back the descriptors of the frames that [`Nic::leave_trunk`] has delivered, and raises their interrupts.
    pub fn give_back<B: Bus>(&mut self, bus: &mut B) {
        self.work(bus).give_back();
    }

    /// Sends the due interrupts of all VFs of a part, whose mailboxes the whole card serves ([`Nic::poll`]). Returns the time at
    /// which a throttled interrupt is due.
    pub fn send_interrupts<B: Bus>(&mut self, now: Time, bus: &mut B) -> Option<Time> {
        let mut next = None;
        for vf in self.masters.iter().map(VfIndex::get) {
            next = [next, self.send_interrupts_of(vf, now, bus)].into_iter().flatten().min();
        }
        next
    }
}
