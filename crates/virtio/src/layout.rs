//! Checks size and addresses of a ring once, when the ring is set up. All addresses are guest-physical: a transport
//! that receives other addresses must translate them first.

use crate::feature::VirtioFeatures;

/// Maximum number of entries of a ring (sections 2.7 and 2.8).
pub const MAX_SIZE: u32 = 32_768;

/// Addresses of the three parts of a ring (sections 2.7 and 2.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingAddresses {
    /// Descriptor area of a ring: the descriptor table of a split ring, the descriptor ring of a packed one.
    pub descriptors: u64,
    /// Driver area of a ring: the available ring, or the driver's event suppression structure.
    pub driver: u64,
    /// Device area of a ring: the used ring, or the device's event suppression structure.
    pub device: u64,
}

/// Part of a ring: descriptor, driver or device area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingPart {
    /// Part of a ring: the descriptor area.
    Descriptors,
    /// Part of a ring: the driver area.
    Driver,
    /// Part of a ring: the device area.
    Device,
}

/// Reason to refuse the set-up of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The ring's number of entries is not allowed. A split ring's must be a power of two.
    #[error("a ring of {size} entries is not allowed (1 to 32768, a power of two if split)")]
    Size {
        /// Requested number of ring entries.
        size: u32,
    },
    /// A part of the ring is misaligned, or goes beyond the end of the address space.
    #[error("the ring's {part:?} area cannot be at {address:#x}: align it to {alignment} bytes")]
    Address {
        /// Part of the ring with the wrong address.
        part: RingPart,
        /// Requested address of the ring's part.
        address: u64,
        /// Required alignment of the ring's part in bytes.
        alignment: u64,
    },
    /// The position at which the device is to start is not within the packed ring.
    #[error("position {index} is not within a packed ring of {size} entries")]
    Position {
        /// Requested start index in the ring.
        index: u16,
        /// Number of entries of the packed ring.
        size: u16,
    },
}

/// Features of a ring that change its format or its use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingFeatures {
    /// Descriptors may refer to indirect tables ([`VirtioFeatures::INDIRECT_DESC`]).
    pub indirect: bool,
    /// Driver and device each state where they want a notification ([`VirtioFeatures::EVENT_IDX`]).
    pub event_index: bool,
    /// Buffers are returned in order, so that one used element may return a batch ([`VirtioFeatures::IN_ORDER`]).
    pub in_order: bool,
}

impl RingFeatures {
    /// Returns those accepted features of a device that concern its rings.
    #[must_use]
    pub const fn of(accepted: VirtioFeatures) -> Self {
        Self {
            indirect: accepted.contains(VirtioFeatures::INDIRECT_DESC),
            event_index: accepted.contains(VirtioFeatures::EVENT_IDX),
            in_order: accepted.contains(VirtioFeatures::IN_ORDER),
        }
    }
}

/// Checks the address of a ring's part of `bytes` bytes.
pub(crate) fn check_part(
    part: RingPart,
    address: u64,
    (bytes, alignment): (u64, u64),
) -> Result<(), LayoutError> {
    if address.is_multiple_of(alignment) && address.checked_add(bytes).is_some() {
        Ok(())
    } else {
        Err(LayoutError::Address { part, address, alignment })
    }
}
