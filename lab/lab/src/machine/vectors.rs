//! Interrupt vectors of a guest, and the messages that it programs into its VF.

use pcie::msix::InterruptMessage;

/// Interrupt vector that the guest chooses for its timer.
pub(crate) const TIMER_VECTOR: u8 = 0xef;
/// Interrupt vector that the guest chooses for its VF's first MSI-X vector.
pub(crate) const DEVICE_VECTOR: u8 = 0x41;

/// Number of MSI-X vectors of a VF.
pub(crate) const VECTORS: u16 = i82576::ids::VF_VECTORS as u16;

/// Returns the interrupt message that a guest programs into an MSI-X vector of its VF. The message names the
/// guest's only processor, and an interrupt vector that the guest chooses.
pub(crate) fn msix_message(vector: u16) -> InterruptMessage {
    InterruptMessage { address: 0xfee0_0000, data: u32::from(DEVICE_VECTOR) + u32::from(vector) }
}
