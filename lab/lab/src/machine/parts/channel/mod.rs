//! The packet channel from a front end to a driver domain (Menon et al., ATC 2006): packets of up to 64 KB
//! whose headers are copied, whose pages are pinned in place, and which carry their offload flags.
//!
//! | module | contents |
//! |---|---|
//! | `offload` | segmentation in the driver domain, for a card without it |
//!
//! A request is in memory that its guest can still write, so it is copied once and only the copy is used. A
//! page that is not the guest's is never pinned, so no card reads it; a pinned page has no other owner until
//! it is released. Payload bytes and their checksums are not modelled.

pub(crate) mod offload;
#[cfg(test)]
mod tests;

use super::cdna::pages::PageOwners;
use super::cdna::{GuestNumber, PAGE, PageBuffer};
use guest::packet::{IP_HEADERS, TCP_HEADERS};
use split::{MAX_FRAME, PIECES, PendingOffloads};

/// Maximum number of header bytes that the driver domain copies.
pub(crate) const HEADERS: usize = 128;
/// Maximum number of segments of a packet, which bounds the cost of segmentation.
pub(crate) const SEGMENTS: usize = 128;

/// Transmit request of a guest on the packet channel.
#[derive(Debug, Clone)]
pub(crate) struct PacketChannelRequest {
    /// Ethernet, IP and TCP headers of the packet.
    pub(crate) header: Vec<u8>,
    /// Buffers of the packet's payload, each within a page.
    pub(crate) pieces: Vec<PageBuffer>,
    /// Offloads that the card or the driver domain still has to do for the packet.
    pub(crate) offload: PendingOffloads,
}

/// Reason why the driver domain refused a transmit request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketChannelRequestError {
    /// The segmentation request's headers are too short, too long, or not those of a packet that can be
    /// segmented as requested.
    Header,
    /// The request's buffers are too many, empty, across pages, or inconsistent with the headers.
    Length,
    /// The request's segments would be empty or too many.
    Segment,
    /// A page of the request does not belong to the guest, or is freed.
    Page,
}

/// Packet accepted by the driver domain: a copy of its headers, and its pinned payload buffers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DriverDomainPacket {
    header: [u8; HEADERS],
    length: usize,
    pieces: Vec<PageBuffer>,
    pub(crate) offload: PendingOffloads,
}

/// Checks a transmit request of domain `owner`, copies its headers and pins its pages.
pub(crate) fn accept(
    request: &PacketChannelRequest,
    owner: GuestNumber,
    pages: &mut PageOwners,
) -> Result<DriverDomainPacket, PacketChannelRequestError> {
    let mut header = [0; HEADERS];
    let length = request.header.len();
    header.get_mut(..length).ok_or(PacketChannelRequestError::Header)?.copy_from_slice(&request.header);
    let packet =
        DriverDomainPacket { header, length, pieces: request.pieces.clone(), offload: request.offload };
    packet.check()?;
    if !packet.pieces.iter().all(|piece| pages.are_of(*piece, owner)) {
        return Err(PacketChannelRequestError::Page);
    }
    packet.pieces.iter().for_each(|piece| pages.refer(*piece));
    Ok(packet)
}

impl DriverDomainPacket {
    /// Returns the driver domain's copy of the packet's headers.
    pub(crate) fn header(&self) -> &[u8] {
        &self.header[..self.length]
    }

    /// Returns the bytes of the packet's payload.
    pub(crate) fn payload(&self) -> usize {
        self.pieces.iter().map(|piece| usize::from(piece.length)).sum()
    }

    /// Returns the number of guest pages that the packet pins.
    pub(crate) fn pages(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the buffers of the packet's payload.
    pub(crate) fn pieces(&self) -> &[PageBuffer] {
        &self.pieces
    }

    /// Releases the pages of a packet that was sent.
    pub(crate) fn release(self, pages: &mut PageOwners) {
        self.pieces.into_iter().for_each(|piece| pages.release(piece));
    }

    /// Checks that the request's buffers, headers and offloads are consistent.
    fn check(&self) -> Result<(), PacketChannelRequestError> {
        let lies_in_a_page = |piece: &PageBuffer| piece.length > 0 && piece.pages().count() == 1;
        let total = self.length + self.payload();
        if self.pieces.len() > PIECES || !self.pieces.iter().all(lies_in_a_page) || total > MAX_FRAME {
            return Err(PacketChannelRequestError::Length);
        }
        if self.length < IP_HEADERS - 20 {
            return Err(PacketChannelRequestError::Header);
        }
        let Some(size) = self.offload.segment else { return Ok(()) };
        let header = self.header();
        if !is_tcp(header) {
            return Err(PacketChannelRequestError::Header);
        }
        if usize::from(u16::from_be_bytes([header[16], header[17]])) + 14 != total {
            return Err(PacketChannelRequestError::Length);
        }
        if size == 0 || self.payload().div_ceil(size.into()) > SEGMENTS {
            return Err(PacketChannelRequestError::Segment);
        }
        Ok(())
    }
}

/// Returns `true` if the headers are Ethernet, IPv4 without options, and complete TCP headers.
fn is_tcp(header: &[u8]) -> bool {
    let begins = header.len() >= IP_HEADERS + 20 && header[12..15] == [8, 0, 0x45] && header[23] == 6;
    begins && IP_HEADERS + usize::from(header[46] >> 4) * 4 == header.len()
}

/// Returns the number of ring slots for a packet with `payload` bytes of payload; the headers share the first
/// page.
pub(crate) fn slots(payload: usize) -> u32 {
    (TCP_HEADERS + payload).div_ceil(PAGE as usize) as u32
}
