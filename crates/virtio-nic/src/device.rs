//! A virtio network device: its features, its rings and its counters. A transport, such as vhost-user, changes the rings by the
//! methods of [`Nic`](crate::Nic).

use crate::limits::MAX_PAIRS;
use crate::moderation::InterruptTimes;
use crate::packet::PacketOffloadRequest;
use crate::receive::ReceiveRing;
use crate::ring::DeviceRing;
use crate::rules::{VfRules, VlanMembership};
use rings::PausedPacketMemory;
use units::{ExcessPieces, MacAddress};
use virtio::VirtioFeatures;

/// Counters of a device's events.
///
/// A sent packet that requested a checksum is also counted by what became of it, in one of `checksums_filled`, `packets_cut`,
/// `uncut_to_guests` and `uncut_to_uplink`, unless it was dropped before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceCounters {
    /// Number of rings that were stopped because they are malformed or not in the guest's memory.
    pub faults: u64,
    /// Number of sent packets that were dropped because their chain or their header is malformed.
    pub malformed: u64,
    /// Number of sent packets that requested a checksum.
    pub checksums: u64,
    /// Number of sent packets that requested segmentation.
    pub segmented: u64,
    /// Number of sent packets in one frame whose checksum the card filled in.
    pub checksums_filled: u64,
    /// Number of sent packets that the card cut into segments.
    pub packets_cut: u64,
    /// Number of sent packets that the card passed on unsegmented to another guest.
    pub uncut_to_guests: u64,
    /// Number of sent packets that the card passed on unsegmented to the uplink.
    pub uncut_to_uplink: u64,
    /// Number of packets that the device delivered unsegmented to its driver.
    pub passed_uncut: u64,
    /// Number of packets that the device has joined from TCP segments.
    pub coalesced_packets: u64,
    /// Number of TCP segments in the joined packets.
    pub coalesced_frames: u64,
    /// Number of notifications by the driver.
    pub kicks: u64,
    /// Number of interrupts to the driver.
    pub calls: u64,
}

/// Virtio network device of a VF.
#[derive(Debug, Default)]
pub(crate) struct VirtioDevice {
    pub(crate) rules: VfRules,
    /// Source address of the device's first frame, if the VF's rules have no address.
    pub(crate) learned: Option<MacAddress>,
    /// True if the rings belong to a guest that has been on this card before.
    pub(crate) is_known_guest: bool,
    /// True if the rings have run on another card: the guest has moved here, and the address of its first frame was until
    /// now that of a station beyond the uplink.
    pub(crate) has_arrived: bool,
    pub(crate) accepted: VirtioFeatures,
    pub(crate) receive: [ReceiveRing; MAX_PAIRS],
    pub(crate) transmit: [DeviceRing; MAX_PAIRS],
    /// Memory of the packet that is paused between two of its segments.
    pub(crate) held: PausedPacketMemory<PacketOffloadRequest>,
    /// Bit mask of the transmit rings that may hold packets.
    pub(crate) ready: u16,
    /// Bit mask of the empty transmit rings that the card polls, because their drivers send no notifications.
    pub(crate) polled: u16,
    /// Bit mask of the receive rings with filled buffers that were not yet returned to the driver.
    pub(crate) filled: u16,
    /// Number of queue pairs, counted from the first, whose receive rings are all live.
    pub(crate) pairs: u16,
    pub(crate) interrupts: InterruptTimes,
    /// Pieces of receive buffers that the VF pays for.
    pub(crate) pieces: ExcessPieces,
    pub(crate) counters: DeviceCounters,
}

impl VirtioDevice {
    /// Returns the ring of the device by the transport's ring number.
    pub(crate) fn ring_mut(&mut self, ring: u32) -> Option<&mut DeviceRing> {
        let pair = ring as usize / 2;
        if ring.is_multiple_of(2) {
            self.receive.get_mut(pair).map(|receive| &mut receive.ring)
        } else {
            self.transmit.get_mut(pair)
        }
    }

    /// Returns the ring of the device by the transport's ring number.
    pub(crate) fn ring(&self, ring: u32) -> Option<&DeviceRing> {
        let pair = ring as usize / 2;
        if ring.is_multiple_of(2) {
            self.receive.get(pair).map(|receive| &receive.ring)
        } else {
            self.transmit.get(pair)
        }
    }

    /// Marks all live transmit rings, so that the next visit looks at each.
    pub(crate) fn make_ready(&mut self) {
        let live = self.transmit.iter().zip(0..).filter(|(ring, _)| ring.queue.is_some());
        self.ready = live.fold(0, |ready, (_, pair)| ready | 1 << pair);
    }

    /// Discards buffers that were fetched from a receive ring, because the driver may have withdrawn them.
    pub(crate) fn forget_buffers(&mut self, ring: u32) {
        let pair = ring as usize / 2;
        if let Some(receive) = self.receive.get_mut(pair).filter(|_| ring.is_multiple_of(2)) {
            receive.is_served = false;
            if let Some(posted) = &mut receive.posted {
                posted.clear();
            }
            self.filled &= !(1 << pair);
        }
    }

    /// Ends the polls of a ring, and its delayed interrupt.
    pub(crate) fn leave_ring(&mut self, ring: u32) {
        let pair = ring / 2;
        if pair as usize >= MAX_PAIRS {
            return;
        }
        self.interrupts.delayed &= !(1 << ring);
        if !ring.is_multiple_of(2) {
            self.polled &= !(1 << pair);
        }
    }

    /// Stops the use of a ring. Returns its position.
    pub(crate) fn pause(&mut self, ring: u32) -> u32 {
        self.forget_buffers(ring);
        self.leave_ring(ring);
        let position = self.ring_mut(ring).map_or(0, |ring| ring.halt());
        self.count_pairs();
        self.is_known_guest = true;
        position
    }

    /// Drops the packet that is paused between two of its segments. Returns false if there is none.
    pub(crate) fn drop_paused_packet(&mut self) -> bool {
        let waits = !self.held.is_empty();
        self.held.clear();
        waits
    }

    /// Counts the queue pairs that may receive: the first ones whose receive rings are live.
    pub(crate) fn count_pairs(&mut self) {
        self.pairs = self.receive.iter().take_while(|receive| receive.ring.is_live()).count() as u16;
    }

    /// Stops a ring after a fault, until the transport starts it again.
    #[cold]
    pub(crate) fn fail(&mut self, ring: u32) {
        self.counters.faults += 1;
        if let Some(ring) = self.ring_mut(ring) {
            ring.halt();
        }
        self.forget_buffers(ring);
        self.count_pairs();
        if !ring.is_multiple_of(2) {
            self.ready &= !(1 << (ring / 2));
            self.polled &= !(1 << (ring / 2));
        }
    }

    /// Returns true if an Ethernet address belongs to the VF or is promised to it.
    pub(crate) fn owns(&self, address: MacAddress) -> bool {
        let Self { rules, learned, .. } = self;
        rules.addresses.contains(&address) || [*learned, rules.promised].contains(&Some(address))
    }

    /// Returns true if a ring of the device is in use.
    pub(crate) fn has_ring(&self) -> bool {
        let mut receive = self.receive.iter().map(|receive| &receive.ring);
        receive.any(|ring| ring.queue.is_some()) || self.transmit.iter().any(|ring| ring.queue.is_some())
    }

    /// Returns true if the guest receives frames without VLAN tag, because it must not see the VF's port VLAN. For
    /// broadcasts and multicasts the switch decides differently.
    pub(crate) fn strips_tags(&self) -> bool {
        matches!(self.rules.vlans, VlanMembership::Port(_))
    }

    /// Returns the VF's Ethernet address: the first address of its rules, or else the learned one.
    pub(crate) fn address(&self) -> Option<MacAddress> {
        self.rules.addresses.first().copied().or(self.learned)
    }
}
