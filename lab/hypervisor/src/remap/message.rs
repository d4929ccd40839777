//! Interrupt messages: destination and vector (SDM volume 3, 10.11), or in remappable format the index of an entry of
//! the remapping table (VT-d specification, 5.1.2). Redirection hints are ignored. Sub-handles are not used, as every
//! vector has its own entry.

use pcie::msix::InterruptMessage;

/// Value of address bits 31:20 of every interrupt message.
const WINDOW: u64 = 0xfee;
/// Address bit of an interrupt message: the message is remappable.
const REMAPPABLE: u64 = 1 << 4;
/// Position of the delivery mode in a message's data; only fixed (0) and lowest priority (1) have a vector.
const MODE_SHIFT: u32 = 8;

/// Interrupt as a guest programs it into its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestInterrupt {
    /// Interrupt vector of the guest, 16 or above.
    pub vector: u8,
    /// APIC id of the processor that the interrupt is sent to.
    pub destination: u8,
    /// The interrupt message's destination id is logical.
    pub logical: bool,
}

impl GuestInterrupt {
    /// Parses an interrupt message in compatibility format. Returns `None` if the message is no interrupt or has no
    /// legal vector.
    #[must_use]
    pub fn from_message(message: InterruptMessage) -> Option<Self> {
        let InterruptMessage { address, data } = message;
        let vector = data as u8;
        let taken = address >> 20 == WINDOW
            && address & REMAPPABLE == 0
            && data >> MODE_SHIFT & 7 <= 1
            && vector >= 16;
        taken.then_some(Self { vector, destination: (address >> 12) as u8, logical: address & 4 != 0 })
    }
}

/// Interrupt message in remappable format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemappableInterruptMessage {
    /// Index of the remapping-table entry that the message names.
    pub handle: u16,
}

impl RemappableInterruptMessage {
    /// Encodes the remappable message: handle bits 14:0 in address bits 19:5, bit 15 in bit 2; no data.
    #[must_use]
    pub fn message(self) -> InterruptMessage {
        let handle = u64::from(self.handle);
        InterruptMessage {
            address: WINDOW << 20 | (handle & 0x7fff) << 5 | REMAPPABLE | handle >> 15 << 2,
            data: 0,
        }
    }

    /// Parses an interrupt message in remappable format. Returns `None` if the message is not remappable.
    #[must_use]
    pub fn from_message(message: InterruptMessage) -> Option<Self> {
        let InterruptMessage { address, .. } = message;
        let taken = address >> 20 == WINDOW && address & REMAPPABLE != 0;
        taken.then_some(Self { handle: (address >> 5 & 0x7fff | (address >> 2 & 1) << 15) as u16 })
    }
}
