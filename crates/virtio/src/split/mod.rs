//! The device's side of a split ring (VIRTIO 1.2 section 2.7): the driver writes the descriptor table and the available
//! ring, the device writes the used ring.

mod fetch;
mod notify;
mod publish;

use crate::chain::Chain;
use crate::descriptor::SIZE;
use crate::layout::{LayoutError, MAX_SIZE, RingAddresses, RingFeatures, RingPart, check_part};
use crate::signal::UnsignalledEntries;

/// Bytes of an entry of the available ring.
const AVAILABLE_ENTRY: u64 = 2;
/// Bytes of an entry of the used ring.
const USED_ENTRY: u64 = 8;
/// Offset of the index in available and used ring, behind the flags.
pub(crate) const INDEX: u64 = 2;
/// Offset of the entries in available and used ring.
const ENTRIES: u64 = 4;

/// Flag of the available ring: the driver wants no interrupts.
pub(crate) const NO_INTERRUPT: u16 = 1;
/// Flag of the used ring: the device wants no notifications.
pub(crate) const NO_NOTIFY: u16 = 1;

/// Size and addresses of a split ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitLayout {
    size: u16,
    pub(crate) addresses: RingAddresses,
}

impl SplitLayout {
    /// Checks the size and the addresses of a split ring (section 2.7). The first access finds whether the memory
    /// exists.
    ///
    /// # Errors
    /// [`LayoutError`] if the size is no power of two up to 32768, or if a part is misaligned or beyond the address space.
    pub fn new(size: u32, addresses: RingAddresses) -> Result<Self, LayoutError> {
        if !size.is_power_of_two() || size > MAX_SIZE {
            return Err(LayoutError::Size { size });
        }
        let entries = u64::from(size);
        check_part(RingPart::Descriptors, addresses.descriptors, (SIZE as u64 * entries, 16))?;
        check_part(RingPart::Driver, addresses.driver, (6 + AVAILABLE_ENTRY * entries, 2))?;
        check_part(RingPart::Device, addresses.device, (6 + USED_ENTRY * entries, 4))?;
        Ok(Self { size: size as u16, addresses })
    }

    /// Returns the number of entries of the split ring.
    #[must_use]
    #[inline]
    pub fn size(&self) -> u16 {
        self.size
    }

    /// Returns the index of the ring entry for a running index, which wraps at 2^16.
    #[inline]
    pub(crate) fn place(&self, index: u16) -> u16 {
        index & (self.size - 1)
    }

    #[inline]
    pub(crate) fn descriptor(&self, index: u16) -> u64 {
        self.addresses.descriptors + SIZE as u64 * u64::from(index)
    }

    #[inline]
    pub(crate) fn available_entry(&self, place: u16) -> u64 {
        self.addresses.driver + ENTRIES + AVAILABLE_ENTRY * u64::from(place)
    }

    #[inline]
    pub(crate) fn used_entry(&self, place: u16) -> u64 {
        self.addresses.device + ENTRIES + USED_ENTRY * u64::from(place)
    }

    /// Returns the address of `used_event`, behind the available ring: the position at which the driver wants an
    /// interrupt.
    #[inline]
    pub(crate) fn used_event(&self) -> u64 {
        self.available_entry(self.size)
    }

    /// Returns the address of `avail_event`, behind the used ring: the position at which the device wants a
    /// notification.
    #[inline]
    pub(crate) fn available_event(&self) -> u64 {
        self.used_entry(self.size)
    }
}

/// Device's side of a split ring.
///
/// Chains are returned in the order in which they were fetched.
#[derive(Debug, Clone)]
pub struct SplitQueue {
    layout: SplitLayout,
    features: RingFeatures,
    /// Running index in the split ring of the next chain to fetch.
    available: u16,
    /// Driver's available index, as the device last read it.
    known: u16,
    /// Running index in the split ring of the next used entry.
    used: u16,
    unsignalled: UnsignalledEntries,
}

impl SplitQueue {
    /// Creates the device's side of a split ring that starts, or resumes, at a running index: 0 for a new ring.
    #[must_use]
    pub fn new(layout: SplitLayout, features: RingFeatures, base: u16) -> Self {
        let unsignalled = UnsignalledEntries::default();
        Self { layout, features, available: base, known: base, used: base, unsignalled }
    }

    /// Returns the running index at which another device resumes the split ring. Chains that were fetched and not
    /// returned are fetched again there.
    #[must_use]
    pub fn base(&self) -> u16 {
        self.used
    }

    /// Returns the size and the addresses of the split ring.
    #[must_use]
    pub fn layout(&self) -> &SplitLayout {
        &self.layout
    }

    /// Returns the number of chains that were fetched and not returned.
    #[must_use]
    #[inline]
    pub fn fetched(&self) -> u16 {
        self.available.wrapping_sub(self.used)
    }

    /// Puts the chains that were fetched last back into the split ring, so that the next fetch returns them. Ignores
    /// chains beyond the number of fetched ones.
    pub fn unfetch(&mut self, chains: &[Chain]) {
        let count = chains.len().min(self.fetched().into()) as u16;
        self.available = self.available.wrapping_sub(count);
    }
}
