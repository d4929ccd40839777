//! The device's side of a packed ring (VIRTIO 1.2 section 2.8): driver and device write the same descriptors, and each
//! states by a wrap counter which of them it has passed.

pub mod dropped;
mod fetch;
mod notify;
mod position;
mod publish;
pub mod record;

use crate::chain::Chain;
use crate::descriptor::SIZE;
use crate::layout::{LayoutError, MAX_SIZE, RingAddresses, RingFeatures, RingPart, check_part};
use crate::signal::UnsignalledEntries;
pub use position::PackedPosition;

/// Bytes of an event suppression structure (section 2.8.14).
const EVENT: u64 = 4;

/// Event flags: the driver or device that wrote them wants a notification for each burst.
pub(crate) const ENABLE: u16 = 0;
/// Event flags: the driver or device that wrote them wants no notifications.
pub(crate) const DISABLE: u16 = 1;
/// Event flags: the driver or device that wrote them wants a notification when its peer passes the descriptor at the
/// structure's position.
pub(crate) const DESCRIPTOR: u16 = 2;
/// Mask of the event flags in an event suppression structure; the other bits are reserved.
pub(crate) const MASK: u16 = 3;
/// Offset of the flags in a packed descriptor.
pub(crate) const FLAGS: u64 = 14;

/// Size and addresses of a packed ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedLayout {
    size: u16,
    pub(crate) addresses: RingAddresses,
}

impl PackedLayout {
    /// Checks the size and the addresses of a packed ring (section 2.8.10.1). The first access finds whether the memory
    /// exists.
    ///
    /// # Errors
    /// [`LayoutError`] if the size is not 1 to 32768, or if a part is misaligned or beyond the address space.
    pub fn new(size: u32, addresses: RingAddresses) -> Result<Self, LayoutError> {
        if !(1..=MAX_SIZE).contains(&size) {
            return Err(LayoutError::Size { size });
        }
        check_part(RingPart::Descriptors, addresses.descriptors, (SIZE as u64 * u64::from(size), 16))?;
        check_part(RingPart::Driver, addresses.driver, (EVENT, 4))?;
        check_part(RingPart::Device, addresses.device, (EVENT, 4))?;
        Ok(Self { size: size as u16, addresses })
    }

    /// Checks that a position is within the packed ring.
    fn check(&self, position: PackedPosition) -> Result<(), LayoutError> {
        let (index, size) = (position.index(), self.size);
        if index < size { Ok(()) } else { Err(LayoutError::Position { index, size }) }
    }

    /// Returns the number of descriptors of the packed ring.
    #[must_use]
    #[inline]
    pub fn size(&self) -> u16 {
        self.size
    }

    /// Returns the address of the packed ring's descriptor at a position.
    #[inline]
    pub(crate) fn slot(&self, position: PackedPosition) -> u64 {
        self.addresses.descriptors + SIZE as u64 * u64::from(position.index())
    }

    /// Returns the number of descriptors, at most `wanted`, that are contiguous in memory from a position on, before
    /// the ring wraps.
    #[inline]
    pub(crate) fn contiguous(&self, position: PackedPosition, wanted: usize) -> usize {
        wanted.min((self.size - position.index()).into())
    }
}

/// Device's side of a packed ring.
///
/// Chains are returned in the order in which they were fetched.
#[derive(Debug, Clone)]
pub struct PackedQueue {
    layout: PackedLayout,
    features: RingFeatures,
    /// Position in the packed ring of the next chain to fetch.
    available: PackedPosition,
    /// Position in the packed ring of the next used descriptor.
    used: PackedPosition,
    /// Number of slots between the fetch position and the used position.
    fetched: u16,
    /// True if the device only reads the ring's buffers, as those of a transmit ring.
    read_only: bool,
    unsignalled: UnsignalledEntries,
}

impl PackedQueue {
    /// Creates the device's side of a packed ring that starts, or resumes, at a position: [`PackedPosition::START`] for
    /// a new ring.
    ///
    /// # Errors
    /// [`LayoutError::Position`] if the position is not within the ring.
    pub fn new(
        layout: PackedLayout,
        features: RingFeatures,
        base: PackedPosition,
    ) -> Result<Self, LayoutError> {
        layout.check(base)?;
        let unsignalled = UnsignalledEntries::default();
        Ok(Self { layout, features, available: base, used: base, fetched: 0, read_only: false, unsignalled })
    }

    /// Makes the ring one whose buffers the device only reads, as a transmit ring. The write flags in its indirect tables
    /// are then ignored.
    ///
    /// DPDK 22.11's virtio driver leaves write flags in the tables of frames that it sends. Lists stay checked.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { read_only: true, ..self }
    }

    /// Returns the position at which another device resumes the packed ring. Chains that were fetched and not returned
    /// are fetched again there.
    #[must_use]
    pub fn base(&self) -> PackedPosition {
        self.used
    }

    /// Returns the size and the addresses of the packed ring.
    #[must_use]
    pub fn layout(&self) -> &PackedLayout {
        &self.layout
    }

    /// Returns the number of slots of the chains that were fetched and not returned.
    #[must_use]
    #[inline]
    pub fn fetched(&self) -> u16 {
        self.fetched
    }

    /// Puts the chains that were fetched last back into the packed ring, so that the next fetch returns them. Ignores
    /// chains beyond the number of fetched ones.
    pub fn unfetch(&mut self, chains: &[Chain]) {
        let slots = chains.iter().map(|chain| u32::from(chain.slots())).sum::<u32>();
        let slots = slots.min(self.fetched.into()) as u16;
        self.fetched -= slots;
        self.available = self.used.after(self.fetched, self.layout.size);
    }
}
