//! What is said on the rings (`xen/io/netif.h`): requests to send, buffers to receive into, what became of each.
//! Left out: extra information other than on segments.

use crate::ring::{SLOT, Slot};

/// Flags of a request to send.
pub mod tx_flag {
    /// The checksum is not filled in.
    pub const BLANK: u16 = 1;
    /// The checksum need not be looked at.
    pub const VALIDATED: u16 = 2;
    /// The frame goes on in the next request.
    pub const MORE: u16 = 4;
    /// The next slot holds extra information.
    pub const EXTRA: u16 = 8;
}

/// Flags of a received piece.
pub mod rx_flag {
    /// The checksum need not be looked at.
    pub const VALIDATED: u16 = 1;
    /// The checksum is not filled in.
    pub const BLANK: u16 = 2;
    /// The frame goes on in the next response.
    pub const MORE: u16 = 4;
    /// The next slot holds extra information.
    pub const EXTRA: u16 = 8;
}

/// What became of a request.
pub mod status {
    /// Done.
    pub const OKAY: i16 = 0;
    /// The slot held extra information, and is free again.
    pub const NULL: i16 = 1;
    /// It was not what it should be.
    pub const ERROR: i16 = -1;
}

/// A piece of a frame to send. The first piece's `size` is the whole frame's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TxRequest {
    /// The grant of its page.
    pub reference: u32,
    /// Where in the page it begins.
    pub offset: u16,
    /// See [`tx_flag`].
    pub flags: u16,
    /// Comes back with the response.
    pub id: u16,
    /// Bytes.
    pub size: u16,
}

/// What became of a piece to send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TxResponse {
    /// The request's.
    pub id: u16,
    /// See [`status`].
    pub status: i16,
}

/// A page to receive into.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RxRequest {
    /// Comes back with the response.
    pub id: u16,
    /// The grant of the page.
    pub reference: u32,
}

/// A piece of a frame received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RxResponse {
    /// The request's.
    pub id: u16,
    /// Where in the page it begins.
    pub offset: u16,
    /// See [`rx_flag`].
    pub flags: u16,
    /// Bytes, or a [`status`] below zero.
    pub status: i16,
}

/// The kind of extra information that tells of segments, and their kind: TCP over IPv4.
const SEGMENTS: u8 = 1;
const TCP: u8 = 1;

fn half(slot: &Slot, at: usize) -> u16 {
    u16::from_le_bytes([slot[at], slot[at + 1]])
}

fn word(slot: &Slot, at: usize) -> u32 {
    u32::from_le_bytes([slot[at], slot[at + 1], slot[at + 2], slot[at + 3]])
}

impl TxRequest {
    /// As it stands in a slot.
    #[must_use]
    pub fn emit(&self) -> Slot {
        let mut slot = [0; SLOT];
        slot[0..4].copy_from_slice(&self.reference.to_le_bytes());
        for (at, value) in [(4, self.offset), (6, self.flags), (8, self.id), (10, self.size)] {
            slot[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        slot
    }

    /// What a slot says.
    #[must_use]
    pub fn parse(slot: &Slot) -> Self {
        let [offset, flags, id, size] = [4, 6, 8, 10].map(|at| half(slot, at));
        Self { reference: word(slot, 0), offset, flags, id, size }
    }
}

impl TxResponse {
    /// As it stands in a slot.
    #[must_use]
    pub fn emit(&self) -> Slot {
        let mut slot = [0; SLOT];
        slot[0..2].copy_from_slice(&self.id.to_le_bytes());
        slot[2..4].copy_from_slice(&self.status.to_le_bytes());
        slot
    }

    /// What a slot says.
    #[must_use]
    pub fn parse(slot: &Slot) -> Self {
        Self { id: half(slot, 0), status: half(slot, 2).cast_signed() }
    }
}

impl RxRequest {
    /// As it stands in a slot.
    #[must_use]
    pub fn emit(&self) -> Slot {
        let mut slot = [0; SLOT];
        slot[0..2].copy_from_slice(&self.id.to_le_bytes());
        slot[4..8].copy_from_slice(&self.reference.to_le_bytes());
        slot
    }

    /// What a slot says.
    #[must_use]
    pub fn parse(slot: &Slot) -> Self {
        Self { id: half(slot, 0), reference: word(slot, 4) }
    }
}

impl RxResponse {
    /// As it stands in a slot.
    #[must_use]
    pub fn emit(&self) -> Slot {
        let mut slot = [0; SLOT];
        let status = self.status.cast_unsigned();
        for (at, value) in [(0, self.id), (2, self.offset), (4, self.flags), (6, status)] {
            slot[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        slot
    }

    /// What a slot says.
    #[must_use]
    pub fn parse(slot: &Slot) -> Self {
        let [id, offset, flags, status] = [0, 2, 4, 6].map(|at| half(slot, at));
        Self { id, offset, flags, status: status.cast_signed() }
    }
}

/// Extra information: segments of so many bytes.
#[must_use]
pub fn emit_segments(size: u16) -> Slot {
    let mut slot = [0; SLOT];
    slot[0] = SEGMENTS;
    slot[2..4].copy_from_slice(&size.to_le_bytes());
    slot[4] = TCP;
    slot
}

/// The size of segments that extra information tells; `None` if it is of another kind, or there is more of it.
#[must_use]
pub fn parse_segments(slot: &Slot) -> Option<u16> {
    let size = half(slot, 2);
    (slot[0] == SEGMENTS && slot[1] == 0 && slot[4] == TCP && size > 0).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_a_slot_is_read_back() {
        let request = TxRequest { reference: 0x0102_0304, offset: 5, flags: 6, id: 7, size: 0xfedc };
        assert_eq!(TxRequest::parse(&request.emit()), request);
        let response = TxResponse { id: 0xfffe, status: status::ERROR };
        assert_eq!(TxResponse::parse(&response.emit()), response);
        let request = RxRequest { id: 9, reference: u32::MAX };
        assert_eq!(RxRequest::parse(&request.emit()), request);
        let response = RxResponse { id: 255, offset: 64, flags: rx_flag::MORE, status: 4_096 };
        assert_eq!(RxResponse::parse(&response.emit()), response);
        assert_eq!(parse_segments(&emit_segments(1_448)), Some(1_448));
        assert_eq!(parse_segments(&[0; SLOT]), None);
    }
}
