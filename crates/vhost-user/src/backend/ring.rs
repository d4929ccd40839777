//! State of one ring: the front end's settings, and whether the host may use the ring.

use thiserror::Error;

use super::memory::MemoryTable;
use crate::features::device;
use crate::message::{RingAddresses, RingBase};

/// Bytes of a descriptor, of a split and of a packed ring.
const DESCRIPTOR: u64 = 16;
/// Bytes of the flags and the index before the entries of a used or available ring.
const SPLIT_HEAD: u64 = 4;
/// Bytes of the event index, which follows the entries of an available or used ring with `VIRTIO_F_EVENT_IDX`.
const EVENT_INDEX: u64 = 2;
/// Bytes of a packed ring's event suppression area.
const EVENT_AREA: u64 = 4;

/// Range of guest-physical addresses inside one memory region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestRange {
    /// First address of the guest-physical range.
    pub address: u64,
    /// Size of the guest-physical range in bytes.
    pub size: u64,
}

/// Parameters of a ring that the host may use. All addresses are translated to guest-physical ones and aligned; the
/// host checks the alignment in its own mapping, which depends on the region's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveRingParameters {
    /// Number of the ring: 2k receives and 2k + 1 transmits, for queue pair k.
    pub ring: u32,
    /// Size of the ring in descriptors; a power of two for a split ring.
    pub size: u32,
    /// True if the ring is a packed ring.
    pub packed: bool,
    /// True if the ring is enabled. A disabled ring delivers nothing, and discards the packets that the guest sends.
    pub enabled: bool,
    /// Position at which the host begins, or `None` if the ring was only paused: the host continues at its own position.
    pub base: Option<RingBase>,
    /// Guest range of the descriptor table, or of a packed ring's descriptors.
    pub descriptors: GuestRange,
    /// Guest range of the available ring, or of a packed ring's driver area.
    pub available: GuestRange,
    /// Guest range of the used ring, or of a packed ring's device area.
    pub used: GuestRange,
    /// Guest address at which a migration logs writes to the used ring, if they are logged.
    pub used_log: Option<u64>,
}

/// Reason why a ring is not live although the front end has set all of its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RingFault {
    /// The size of a split ring is no power of two.
    #[error("size {0} of a split ring is not a power of two")]
    SizeNotPowerOfTwo(u32),
    /// A part of the ring does not lie within a single memory region.
    #[error("{size} bytes of the ring at user address {address:#x} are not in one memory region")]
    Unmapped {
        /// First user address of the ring's part.
        address: u64,
        /// Size of the ring's part in bytes.
        size: u64,
    },
    /// A part of the ring has an unaligned guest address.
    #[error("a part of the ring at guest address {address:#x} is not aligned to {alignment} bytes")]
    Misaligned {
        /// First guest-physical address of the ring's part.
        address: u64,
        /// Alignment in bytes that virtio requires.
        alignment: u64,
    },
    /// The position of a packed ring is beyond the ring's end.
    #[error("the position {0:?} is beyond the end of the ring")]
    BaseBeyondRing(RingBase),
    /// The logged range of the used ring wraps around.
    #[error("the log of the used ring at guest address {0:#x} wraps around")]
    LogWraps(u64),
}

/// Sizes and alignments of the three parts of a ring in bytes.
struct RingPartSizes {
    descriptors: (u64, u64),
    available: (u64, u64),
    used: (u64, u64),
}

impl RingPartSizes {
    /// Returns the parts of a ring (virtio 1.2, 2.7 "Split Virtqueues" and 2.8 "Packed Virtqueues").
    fn of(size: u32, features: u64) -> Self {
        let size = u64::from(size);
        let descriptors = (DESCRIPTOR * size, 16);
        if features & device::RING_PACKED != 0 {
            return Self { descriptors, available: (EVENT_AREA, 4), used: (EVENT_AREA, 4) };
        }
        let overhead = SPLIT_HEAD + if features & device::EVENT_IDX != 0 { EVENT_INDEX } else { 0 };
        Self { descriptors, available: (overhead + 2 * size, 2), used: (overhead + 8 * size, 4) }
    }
}

/// State of one ring in a session.
#[derive(Debug, Clone, Default)]
pub(super) struct RingState {
    pub(super) size: Option<u32>,
    pub(super) addresses: Option<RingAddresses>,
    /// Position of the ring as in `SET_VRING_BASE`, which the host does not know yet; `None` if the position is not
    /// stored here.
    pub(super) base: Option<u32>,
    /// True if `SET_VRING_KICK` came after the last stop.
    pub(super) kicked: bool,
    pub(super) enabled: bool,
    /// True if the ring was live since the last stop, so that the host has the ring's position.
    pub(super) started: bool,
    /// True if the host may access the ring.
    pub(super) live: bool,
}

impl RingState {
    /// Returns the stored position of the ring, or the first position if none is stored.
    pub(super) fn stored_base(&self, packed: bool) -> RingBase {
        self.base.map_or(RingBase::first(packed), |base| RingBase::from_wire(base, packed))
    }

    /// Records that the ring is stopped at a position. The ring can be live again only after another `SET_VRING_KICK`.
    pub(super) fn stop(&mut self, base: RingBase) {
        self.base = Some(base.to_wire());
        self.kicked = false;
        self.started = false;
        self.live = false;
    }

    /// Returns the ring's translated parameters, or `None` if the front end has not set everything.
    pub(super) fn setup(
        &self,
        ring: u32,
        features: u64,
        memory: &MemoryTable,
    ) -> Result<Option<LiveRingParameters>, RingFault> {
        let (Some(size), Some(addresses), true) = (self.size, self.addresses, self.kicked) else {
            return Ok(None);
        };
        let packed = features & device::RING_PACKED != 0;
        if !packed && !size.is_power_of_two() {
            return Err(RingFault::SizeNotPowerOfTwo(size));
        }
        let base = (!self.started).then(|| self.stored_base(packed));
        if let Some(base) = base.filter(|base| !base.is_inside(size)) {
            return Err(RingFault::BaseBeyondRing(base));
        }
        let parts = RingPartSizes::of(size, features);
        let used = translate(memory, addresses.used, parts.used)?;
        let used_log = addresses.logged.then_some(addresses.log);
        if let Some(log) = used_log.filter(|log| log.checked_add(used.size).is_none()) {
            return Err(RingFault::LogWraps(log));
        }
        Ok(Some(LiveRingParameters {
            ring,
            size,
            packed,
            enabled: self.enabled,
            base,
            descriptors: translate(memory, addresses.descriptors, parts.descriptors)?,
            available: translate(memory, addresses.available, parts.available)?,
            used,
            used_log,
        }))
    }
}

/// Translates the address of one part of a ring to guest-physical memory, for the part's whole length.
fn translate(
    memory: &MemoryTable,
    address: u64,
    (size, alignment): (u64, u64),
) -> Result<GuestRange, RingFault> {
    let guest = memory.user_to_guest(address, size).ok_or(RingFault::Unmapped { address, size })?;
    if !guest.is_multiple_of(alignment) {
        return Err(RingFault::Misaligned { address: guest, alignment });
    }
    Ok(GuestRange { address: guest, size })
}
