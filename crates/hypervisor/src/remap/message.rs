//! What an interrupt message says: to which CPU and with which vector (SDM volume 3, 10.11), or, remappable,
//! which entry of the table to look at (VT-d specification, 5.1.2). Left out: redirection hints of a
//! compatibility message; sub-handles, as every vector has an entry of its own.

use pcie::msix::Message;

/// Where interrupt messages are written: bits 31:20 of the address.
const WINDOW: u64 = 0xfee;
/// Address of a remappable message.
const REMAPPABLE: u64 = 1 << 4;
/// Data: delivery mode, of which only fixed (0) and lowest priority (1) have a vector.
const MODE_SHIFT: u32 = 8;

/// An interrupt as a guest programs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The vector, 16 or above.
    pub vector: u8,
    /// Destination id.
    pub destination: u8,
    /// The destination is logical.
    pub logical: bool,
}

impl Request {
    /// What a compatibility message asks for; None if it is no interrupt or has no legal vector.
    #[must_use]
    pub fn from_message(message: Message) -> Option<Self> {
        let Message { address, data } = message;
        let vector = data as u8;
        let taken = address >> 20 == WINDOW
            && address & REMAPPABLE == 0
            && data >> MODE_SHIFT & 7 <= 1
            && vector >= 16;
        taken.then_some(Self { vector, destination: (address >> 12) as u8, logical: address & 4 != 0 })
    }
}

/// A remappable message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remappable {
    /// The entry.
    pub handle: u16,
}

impl Remappable {
    /// The message: handle bits 14:0 in address bits 19:5, bit 15 in bit 2; no data.
    #[must_use]
    pub fn message(self) -> Message {
        let handle = u64::from(self.handle);
        Message { address: WINDOW << 20 | (handle & 0x7fff) << 5 | REMAPPABLE | handle >> 15 << 2, data: 0 }
    }

    /// Reads a message; None if it is not remappable.
    #[must_use]
    pub fn from_message(message: Message) -> Option<Self> {
        let Message { address, .. } = message;
        let taken = address >> 20 == WINDOW && address & REMAPPABLE != 0;
        taken.then_some(Self { handle: (address >> 5 & 0x7fff | (address >> 2 & 1) << 15) as u16 })
    }
}
