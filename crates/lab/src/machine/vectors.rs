//! Interrupt vectors of a guest, and the messages it programs into its VF.

use pcie::msix::InterruptMessage;

/// Vectors that the guest chooses: the timer's, and the first one of its VF.
pub(crate) const TIMER_VECTOR: u8 = 0xef;
pub(crate) const DEVICE_VECTOR: u8 = 0x41;

/// Number of vectors of a VF.
pub(crate) const VECTORS: u16 = i82576::ids::VF_VECTORS as u16;

/// Returns the message a guest programs into a vector of its VF: its only processor, and a vector of its
/// choice.
pub(crate) fn message(vector: u16) -> InterruptMessage {
    InterruptMessage { address: 0xfee0_0000, data: u32::from(DEVICE_VECTOR) + u32::from(vector) }
}
