//! The card: the devices of all VFs, and the methods by which a transport and the policy change them.

use crate::changes::TableChanges;
use crate::device::{DeviceCounters, VirtioDevice};
use crate::limits::{MAX_PAIRS, MAX_VFS};
use crate::moderation::InterruptIntervals;
use crate::ring::RingStartError;
use crate::rules::VfRules;
use crate::scratch::FrameScratchMemory;
use crate::start::RingStartParameters;
use alloc::vec::Vec;
use pcie::{Bus, VfIndex, VfSet};
use plane::PortIndex;
use units::{MacAddress, Time};
use virtio::VirtioFeatures;

/// Knowledge of a VF about its guest, beside rings and features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KnownGuest {
    /// Ethernet address that the VF has learned from its guest.
    pub address: Option<MacAddress>,
    /// True if the guest has moved here from another card and has not used an address yet.
    pub has_arrived: bool,
}

/// Card whose VFs are virtio network devices, 64 at most.
#[derive(Debug)]
pub struct Nic {
    pub(crate) devices: Vec<VirtioDevice>,
    /// Changes since the switch's tables were computed from the VFs' rules and addresses.
    pub(crate) changed: TableChanges,
    /// Earliest time at which a delayed frame may leave, or a delayed interrupt is due, as of the last call of
    /// [`Nic::visit_ready`].
    pub(crate) due: Option<Time>,
    /// VFs with a dropped packet, some of whose segments have left, since the last call of [`Nic::visit_ready`].
    pub(crate) dropped: VfSet,
    /// Addresses of guests that [`Nic::announce`] announces, at most one of each VF.
    pub(crate) announcements: Vec<(u8, MacAddress)>,
    /// Scratch memory for the frames of one call to the card.
    pub(crate) scratch: FrameScratchMemory,
}

impl Nic {
    /// Creates a card with `vfs` VFs, 64 at most, whose rings are stopped.
    #[must_use]
    pub fn new(vfs: u8) -> Self {
        let (devices, announcements) = (Vec::new(), Vec::new());
        let mut nic = Self {
            devices,
            changed: TableChanges::default(),
            due: None,
            dropped: VfSet::NONE,
            announcements,
            scratch: FrameScratchMemory::default(),
        };
        nic.grow(vfs);
        nic
    }

    /// Adds VFs until the card has `vfs` of them, 64 at most. Existing VFs stay as they are.
    pub fn grow(&mut self, vfs: u8) {
        let count = usize::from(vfs).min(MAX_VFS).max(self.devices.len());
        self.devices.resize_with(count, VirtioDevice::default);
        self.changed.note();
    }

    /// Switches bursts of frames off: from now on every frame is sent alone and parsed completely. Tests compare such a
    /// card with one that sends bursts.
    pub fn take_no_shortcuts(&mut self) {
        self.scratch.careful = true;
    }

    /// Switches the joining of TCP segments on or off, for all drivers that take unsegmented packets. It is off at first.
    pub fn coalesce_segments(&mut self, on: bool) {
        self.scratch.joined.enabled = on;
    }

    /// Sets the least times between two interrupts of a ring. Without a call no interrupt is delayed.
    pub fn moderate_interrupts(&mut self, intervals: InterruptIntervals) {
        self.scratch.intervals = intervals;
    }

    fn device(&self, vf: u8) -> Option<&VirtioDevice> {
        self.devices.get(usize::from(vf))
    }

    fn device_mut(&mut self, vf: u8) -> Option<&mut VirtioDevice> {
        self.devices.get_mut(usize::from(vf))
    }

    /// Sets the features that a VF's driver has accepted. They apply to the next packets; those of
    /// [`virtio::layout::RingFeatures`] apply to rings that start later.
    pub fn set_features(&mut self, vf: u8, accepted: VirtioFeatures) {
        if let Some(device) = self.device_mut(vf) {
            device.accepted = accepted;
            // Fetched buffers are offered behind a header, whose length may have changed.
            let posted = device.receive.iter_mut().filter_map(|receive| receive.posted.as_mut());
            posted.for_each(|posted| posted.withdraw_offer());
        }
    }

    /// Starts a ring of a VF, or continues a paused one. A packed ring continues at the position that its record on the
    /// bus has, if the record is of the same ring ([`virtio::packed::record`]).
    ///
    /// # Errors
    /// [`RingStartError`]: the ring stays stopped.
    pub fn start_ring<B: Bus>(
        &mut self,
        vf: u8,
        start: &RingStartParameters,
        bus: &mut B,
    ) -> Result<(), RingStartError> {
        let number = start.ring;
        let missing = RingStartError::NoRing { ring: number };
        let device = self.devices.get_mut(usize::from(vf)).ok_or(missing)?;
        let (port, accepted) = (PortIndex::of_field(vf.into()), device.accepted);
        device.forget_buffers(number);
        device.has_arrived |= !device.is_known_guest && start.has_run_elsewhere;
        let ring = device.ring_mut(number).ok_or(missing)?;
        let before = ring.position();
        let started = ring.start(port, start, accepted, bus);
        // A driver that begins elsewhere is another one, and the packet that waits is of the one before.
        let is_other_driver = before.is_some() && before != ring.position();
        device.count_pairs();
        started?;
        if is_other_driver && device.drop_paused_packet() {
            self.note_dropped(vf);
        }
        // The driver may have made packets available, and notified the device, before the device could see it.
        self.make_ready(vf, number);
        Ok(())
    }

    /// Stops the use of a ring until the transport starts it again: its memory or its addresses change. The ring keeps its position,
    /// and the VF keeps its guest's address, since the same driver continues.
    pub fn pause_ring(&mut self, vf: u8, ring: u32) {
        if let Some(device) = self.device_mut(vf) {
            device.pause(ring);
        }
    }

    /// Stops a ring. Returns the ring base (vhost-user's encoding of the position) at which another device continues
    /// the ring.
    pub fn stop_ring(&mut self, vf: u8, ring: u32) -> u32 {
        let Some(device) = self.devices.get_mut(usize::from(vf)) else { return 0 };
        let position = device.pause(ring);
        if !device.has_ring() {
            device.has_arrived = false;
            // The next driver may use another address.
            if device.learned.take().is_some() {
                self.changed.note_by(vf);
            }
        }
        position
    }

    /// Counts a packet that is dropped after some of its segments have left, at the next visit.
    pub(crate) fn note_dropped(&mut self, vf: u8) {
        self.dropped = self.dropped.or([VfIndex::of_field(vf.into())].into_iter().collect());
    }

    /// Returns the ring base at which another device continues a ring, which may be live. Returns `None` for a ring that has
    /// never run.
    #[must_use]
    pub fn ring_position(&self, vf: u8, ring: u32) -> Option<u32> {
        self.device(vf)?.ring(ring)?.position()
    }

    /// Sets the position at which a ring continues that has run in another process and is started without a position.
    pub fn continue_ring(&mut self, vf: u8, ring: u32, position: u32) {
        if let Some(ring) = self.device_mut(vf).and_then(|device| device.ring_mut(ring)) {
            ring.continue_at(position);
        }
    }

    /// Enables or disables a ring of a VF.
    pub fn enable_ring(&mut self, vf: u8, ring: u32, on: bool) {
        let Some(device) = self.devices.get_mut(usize::from(vf)) else { return };
        let Some(place) = device.ring_mut(ring) else { return };
        place.enabled = on;
        device.count_pairs();
        self.make_ready(vf, ring);
    }

    /// Records a kick: the VF's driver has notified the device of new entries in a ring.
    pub fn kick(&mut self, vf: u8, ring: u32) {
        if let Some(device) = self.device_mut(vf) {
            device.counters.kicks += 1;
            self.make_ready(vf, ring);
        }
    }

    /// Marks a transmit ring, so that the next call of [`Nic::visit_ready`] visits it. Other rings are ignored.
    pub fn make_ready(&mut self, vf: u8, ring: u32) {
        let pair = ring as usize / 2;
        if let Some(device) = self.device_mut(vf).filter(|_| !ring.is_multiple_of(2) && pair < MAX_PAIRS) {
            device.ready |= 1 << pair;
        }
    }

    /// Marks all transmit rings of a VF, so that the next call of [`Nic::visit_ready`] visits them: kicks of its driver may not
    /// reach this thread.
    pub fn make_all_ready(&mut self, vf: u8) {
        if let Some(device) = self.device_mut(vf) {
            device.make_ready();
        }
    }

    /// Resets a VF's device: features and rings. Rules and counters stay.
    pub fn reset(&mut self, vf: u8) {
        let Some(device) = self.device_mut(vf) else { return };
        let (rules, counters) = (core::mem::take(&mut device.rules), device.counters);
        let waits = device.drop_paused_packet();
        *device = VirtioDevice { rules, counters, ..VirtioDevice::default() };
        if waits {
            self.note_dropped(vf);
        }
        self.cancel_announcement(vf);
        self.changed.note_by(vf);
    }

    /// Expects the same guest again, after a reset of its VF's device or in a new process of the host: its rings then continue, and
    /// the guest has not moved here from another card.
    pub fn expect_same_guest(&mut self, vf: u8) {
        if let Some(device) = self.device_mut(vf) {
            device.is_known_guest = true;
        }
    }

    /// Returns what a VF knows of its guest.
    #[must_use]
    pub fn known_guest(&self, vf: u8) -> KnownGuest {
        self.device(vf).map_or_else(KnownGuest::default, |device| KnownGuest {
            address: device.learned,
            has_arrived: device.has_arrived,
        })
    }

    /// Continues with what a VF knew of its guest in another process. A VF that has an address keeps it. No VF takes an address that
    /// another VF has or is promised.
    pub fn continue_guest(&mut self, vf: u8, KnownGuest { address, has_arrived }: KnownGuest) {
        let is_of_other = |address| {
            self.devices.iter().enumerate().any(|(of, device)| of != usize::from(vf) && device.owns(address))
        };
        let address = address.filter(|address| !is_of_other(*address));
        let Some(device) = self.device_mut(vf) else { return };
        device.has_arrived = has_arrived;
        if device.address().is_none() {
            device.learned = address;
            if address.is_some() {
                self.changed.note();
            }
        }
    }

    /// Forgets the address that a VF has learned. The VF learns one again from the next frame of its guest.
    pub fn forget_address(&mut self, vf: u8) {
        if let Some(device) = self.device_mut(vf) {
            device.learned = None;
            self.changed.note();
        }
    }

    /// Sets the forwarding rules of a VF. Another VF that has learned one of these addresses loses it. So does the VF itself, if the rules
    /// have an address: what its guest uses without it, the guest's next frame tells.
    pub fn set_rules(&mut self, vf: u8, rules: VfRules) {
        for device in &mut self.devices {
            device.learned = device.learned.filter(|learned| !rules.addresses.contains(learned));
        }
        if let Some(device) = self.device_mut(vf) {
            device.learned = device.learned.filter(|_| rules.addresses.is_empty());
            device.rules = rules;
            self.changed.note();
        }
    }

    /// Returns the forwarding rules of a VF.
    #[must_use]
    pub fn rules(&self, vf: u8) -> Option<&VfRules> {
        self.device(vf).map(|device| &device.rules)
    }

    /// Returns the VFs whose guests have changed their addresses since the last call, or `None` if no rules or addresses have
    /// changed. The caller must call [`Nic::apply_policy`] before the next frame if there are changes, also if no guest has made
    /// them.
    pub fn take_changed(&mut self) -> Option<VfSet> {
        self.changed.take()
    }

    /// Returns true if [`Nic::take_changed`] would return `Some`.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.changed.are_pending()
    }

    /// Returns true if a ring of a VF is in use.
    #[must_use]
    pub fn has_ring(&self, vf: u8) -> bool {
        self.device(vf).is_some_and(VirtioDevice::has_ring)
    }

    /// Returns true if a VF's driver receives frames.
    #[must_use]
    pub fn is_active(&self, vf: u8) -> bool {
        self.device(vf).is_some_and(|device| device.pairs > 0)
    }

    /// Returns the features that a VF's driver has accepted.
    #[must_use]
    pub fn features(&self, vf: u8) -> VirtioFeatures {
        self.device(vf).map_or(VirtioFeatures::NONE, |device| device.accepted)
    }

    /// Returns a VF's Ethernet address: the first address of its rules, or else the source address of its first frame.
    #[must_use]
    pub fn address(&self, vf: u8) -> Option<MacAddress> {
        self.device(vf).and_then(VirtioDevice::address)
    }

    /// Returns the sizes of a VF's live receive rings and transmit rings in entries.
    #[must_use]
    pub fn rings(&self, vf: u8) -> (Vec<u32>, Vec<u32>) {
        let device = self.device(vf);
        let receive = device.iter().flat_map(|device| &device.receive);
        let transmit = device.iter().flat_map(|device| &device.transmit);
        (
            receive.filter_map(|receive| receive.ring.size()).collect(),
            transmit.filter_map(|ring| ring.size()).collect(),
        )
    }

    /// Returns the counters of a VF's device.
    #[must_use]
    pub fn counters(&self, vf: u8) -> Option<&DeviceCounters> {
        self.device(vf).map(|device| &device.counters)
    }

    /// Returns the earliest time at which a frame that its VF's rate delays may leave, or a delayed interrupt is due, as of the
    /// last call of [`Nic::visit_ready`].
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        self.due
    }
}
