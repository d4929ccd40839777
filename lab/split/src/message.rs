//! Messages on the network rings (`xen/io/netif.h`): transmit requests, receive buffers and their responses.
//! The only extra information supported is segmentation.

use crate::ring::{RingSlot, SLOT};

/// Flags of a transmit request on the ring.
pub mod tx_flag {
    /// Transmit request flag: the frame's checksum is not filled in.
    pub const CSUM_BLANK: u16 = 1;
    /// Transmit request flag: the frame's checksum was validated.
    pub const DATA_VALIDATED: u16 = 2;
    /// Transmit request flag: the frame continues in the next request.
    pub const MORE: u16 = 4;
    /// Transmit request flag: the next slot of the ring holds extra information.
    pub const EXTRA: u16 = 8;
}

/// Flags of a receive response on the ring.
pub mod rx_flag {
    /// Receive response flag: the frame's checksum was validated.
    pub const DATA_VALIDATED: u16 = 1;
    /// Receive response flag: the frame's checksum is not filled in.
    pub const CSUM_BLANK: u16 = 2;
    /// Receive response flag: the frame continues in the next response.
    pub const MORE: u16 = 4;
    /// Receive response flag: the next slot of the ring holds extra information.
    pub const EXTRA: u16 = 8;
}

/// Status of a response on the ring.
pub mod status {
    /// Response status: the request succeeded.
    pub const OKAY: i16 = 0;
    /// Response status: the slot held extra information and is free.
    pub const NULL: i16 = 1;
    /// Response status: the request was invalid or failed.
    pub const ERROR: i16 = -1;
}

/// Transmit request of a guest: a piece of a frame to send. In the first piece, `size` is the length of the whole
/// frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TxRequest {
    /// Grant reference of the page with the piece.
    pub reference: u32,
    /// Offset of the piece in the page, in bytes.
    pub offset: u16,
    /// Flags of the transmit request ([`tx_flag`]).
    pub flags: u16,
    /// Id of the transmit request, returned in the response.
    pub id: u16,
    /// Length of the piece in bytes, or of the whole frame in the first piece.
    pub size: u16,
}

/// Response to a transmit request on the ring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TxResponse {
    /// Id of the transmit request that the response answers.
    pub id: u16,
    /// Status of the transmit request ([`status`]).
    pub status: i16,
}

/// Page that the back end may write a received frame into.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RxRequest {
    /// Id of the posted page, returned in the response.
    pub id: u16,
    /// Grant reference of the posted page.
    pub reference: u32,
}

/// Received piece of a frame, in a posted page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RxResponse {
    /// Id of the posted page that holds the piece.
    pub id: u16,
    /// Offset of the piece in the page, in bytes.
    pub offset: u16,
    /// Flags of the received piece ([`rx_flag`]).
    pub flags: u16,
    /// Length of the received piece in bytes, or a negative [`status`].
    pub status: i16,
}

/// Type code of extra information that describes segmentation (`xen/io/netif.h`).
const SEGMENTS: u8 = 1;
/// Protocol code of extra information for segmentation: TCP over IPv4.
const TCP: u8 = 1;

fn half(slot: &RingSlot, at: usize) -> u16 {
    u16::from_le_bytes([slot[at], slot[at + 1]])
}

fn word(slot: &RingSlot, at: usize) -> u32 {
    u32::from_le_bytes([slot[at], slot[at + 1], slot[at + 2], slot[at + 3]])
}

impl TxRequest {
    /// Encodes the transmit request as a slot of the ring.
    #[must_use]
    pub fn emit(&self) -> RingSlot {
        let mut slot = [0; SLOT];
        slot[0..4].copy_from_slice(&self.reference.to_le_bytes());
        for (at, value) in [(4, self.offset), (6, self.flags), (8, self.id), (10, self.size)] {
            slot[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        slot
    }

    /// Decodes a transmit request from a slot.
    #[must_use]
    pub fn parse(slot: &RingSlot) -> Self {
        let [offset, flags, id, size] = [4, 6, 8, 10].map(|at| half(slot, at));
        Self { reference: word(slot, 0), offset, flags, id, size }
    }
}

impl TxResponse {
    /// Encodes the transmit response as a slot of the ring.
    #[must_use]
    pub fn emit(&self) -> RingSlot {
        let mut slot = [0; SLOT];
        slot[0..2].copy_from_slice(&self.id.to_le_bytes());
        slot[2..4].copy_from_slice(&self.status.to_le_bytes());
        slot
    }

    /// Decodes a transmit response from a slot.
    #[must_use]
    pub fn parse(slot: &RingSlot) -> Self {
        Self { id: half(slot, 0), status: half(slot, 2).cast_signed() }
    }
}

impl RxRequest {
    /// Encodes the posted page as a slot of the receive ring.
    #[must_use]
    pub fn emit(&self) -> RingSlot {
        let mut slot = [0; SLOT];
        slot[0..2].copy_from_slice(&self.id.to_le_bytes());
        slot[4..8].copy_from_slice(&self.reference.to_le_bytes());
        slot
    }

    /// Decodes a posted page from a slot of the receive ring.
    #[must_use]
    pub fn parse(slot: &RingSlot) -> Self {
        Self { id: half(slot, 0), reference: word(slot, 4) }
    }
}

impl RxResponse {
    /// Encodes the receive response as a slot of the ring.
    #[must_use]
    pub fn emit(&self) -> RingSlot {
        let mut slot = [0; SLOT];
        let status = self.status.cast_unsigned();
        for (at, value) in [(0, self.id), (2, self.offset), (4, self.flags), (6, status)] {
            slot[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        slot
    }

    /// Decodes a receive response from a slot.
    #[must_use]
    pub fn parse(slot: &RingSlot) -> Self {
        let [id, offset, flags, status] = [0, 2, 4, 6].map(|at| half(slot, at));
        Self { id, offset, flags, status: status.cast_signed() }
    }
}

/// Encodes extra information on a ring: segmentation into `size` bytes of payload.
#[must_use]
pub fn emit_segments(size: u16) -> RingSlot {
    let mut slot = [0; SLOT];
    slot[0] = SEGMENTS;
    slot[2..4].copy_from_slice(&size.to_le_bytes());
    slot[4] = TCP;
    slot
}

/// Returns the TCP segment size that a slot of extra information holds. Returns `None` for another type, or if more
/// extra information follows.
#[must_use]
pub fn parse_segments(slot: &RingSlot) -> Option<u16> {
    let size = half(slot, 2);
    (slot[0] == SEGMENTS && slot[1] == 0 && slot[4] == TCP && size > 0).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_messages_are_decoded_as_they_were_encoded() {
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
