//! The interrupt vectors of a guest, and what it programs its VF to send for them. Left out: the host's vectors.

use pcie::msix::Message;

/// The guest's interrupt vectors: the timer's, and the first of its VF's.
pub(crate) const TIMER_VECTOR: u8 = 0xef;
pub(crate) const DEVICE_VECTOR: u8 = 0x41;

/// Vectors of a VF.
pub(crate) const VECTORS: u16 = i82576::ids::VF_VECTORS as u16;

/// What the guest programs into a vector of its VF: its only processor, and a vector of its own choice.
pub(crate) fn message(vector: u16) -> Message {
    Message { address: 0xfee0_0000, data: u32::from(DEVICE_VECTOR) + u32::from(vector) }
}
