//! Divides the card among threads: a part of it has some of the VFs, on a plane of its own. Frames between parts cross in
//! trunks. [`Nic::detach`] takes a VF's device out of one part, and [`Nic::attach`] puts it into another.

use crate::card::Nic;
use crate::device::VirtioDevice;
use crate::limits::MAX_VFS;
use crate::work::VirtioFramePathState;
use alloc::boxed::Box;
use pcie::Bus;
use plane::frame::Frame;
use plane::{
    DeliveryError, DeliveryFlags, ForwardingPlane, FrameTrunk, PortIndex, PortSet, TrunkBatch,
    UnsegmentedPacketLayout,
};

/// Device of a VF that is in no part of the card.
#[derive(Debug)]
pub struct DetachedDevice {
    vf: u8,
    device: VirtioDevice,
}

impl Nic {
    /// Returns true if another part of the card may serve a VF: it has a ring in use, an address, and nothing to announce. Only
    /// the part with the switch's tables may learn an address.
    #[must_use]
    pub fn may_detach(&self, vf: u8) -> bool {
        let device = self.devices.get(usize::from(vf));
        device.is_some_and(|device| device.has_ring() && device.address().is_some())
            && self.announcements.iter().all(|(of, _)| *of != vf)
    }

    /// Takes a VF's device out of this part of the card. Rules, address and features stay, for the switch's tables. Frames
    /// for the VF go to the trunk of [`Nic::set_trunk`] until [`Nic::attach`].
    pub fn detach(&mut self, vf: u8) -> Option<DetachedDevice> {
        let place = self.devices.get_mut(usize::from(vf))?;
        let device = core::mem::take(place);
        (place.rules, place.learned, place.accepted) =
            (device.rules.clone(), device.learned, device.accepted);
        self.scratch.away |= PortIndex::of_field(vf.into()).only();
        Some(DetachedDevice { vf, device })
    }

    /// Puts a device into this part of the card. Its next visit looks at all its transmit rings, since its driver may have
    /// kicked them meanwhile.
    pub fn attach(&mut self, DetachedDevice { vf, mut device }: DetachedDevice) {
        let Some(place) = self.devices.get_mut(usize::from(vf)) else { return };
        device.make_ready();
        *place = device;
        self.scratch.away &= !PortIndex::of_field(vf.into()).only();
    }

    /// Returns the VFs whose devices are in other parts of the card.
    #[must_use]
    pub fn away(&self) -> PortSet {
        self.scratch.away
    }

    /// Prepares a part without devices for devices of `other`: frames for all its VFs go to the trunk, by the features that
    /// their drivers have accepted.
    pub fn follow(&mut self, other: &Self) {
        // The switch's tables are those of the other part.
        self.changed.take();
        self.scratch.joined.enabled = other.scratch.joined.enabled;
        self.scratch.intervals = other.scratch.intervals;
        self.scratch.away = PortSet::NONE;
        for (vf, (place, device)) in (0..).zip(self.devices.iter_mut().zip(&other.devices)) {
            place.accepted = device.accepted;
            self.scratch.away |= PortIndex::of_field(vf).only();
        }
    }

    /// Leaves VFs to the cards of other families on the same plane: frames for these VFs go to the trunk of
    /// [`Nic::set_trunk`].
    pub fn leave_to_others(&mut self, vfs: PortSet) {
        self.scratch.away = vfs;
    }

    /// Hands the frames of this part in the trunk to the other parts of the card. Returns true if some have stayed
    /// ([`FrameTrunk::flush`]).
    #[inline]
    pub fn flush_trunk(&mut self) -> bool {
        self.scratch.trunk.as_mut().is_some_and(|trunk| trunk.flush())
    }

    /// Sets the trunk to the other parts of the card.
    pub fn set_trunk(&mut self, trunk: Option<Box<dyn FrameTrunk>>) {
        self.scratch.trunk = trunk;
    }

    /// Delivers the frames that another part of the card has put into a trunk. [`Nic::visit_ready`] returns the filled buffers to
    /// their drivers.
    pub fn leave_trunk<B: Bus>(
        &mut self,
        plane: &mut ForwardingPlane<MAX_VFS>,
        batch: &mut TrunkBatch,
        bus: &mut B,
    ) {
        rings::leave_trunk(&mut self.work(bus), plane, batch);
    }

    /// Returns the filled buffers of all receive rings to their drivers, as [`Nic::visit_ready`] does at its end.
    pub fn give_back<B: Bus>(&mut self, plane: &mut ForwardingPlane<MAX_VFS>, bus: &mut B) {
        let mut work = self.work(bus);
        work.end_burst(plane);
        work.give_back();
    }
}

impl<B> VirtioFramePathState<'_, B> {
    /// Puts a frame, or a packet that is not segmented, into the trunk to the part of the card that has its receiver. The
    /// error is [`DeliveryError::Waits`] if the trunk has taken it.
    pub(crate) fn cross(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        about: DeliveryFlags,
        uncut: Option<UnsegmentedPacketLayout>,
    ) -> DeliveryError {
        let trunk = self.scratch.trunk.as_deref_mut();
        trunk.map_or(DeliveryError::Disabled, |trunk| trunk.cross(port, frame, about, uncut))
    }
}
