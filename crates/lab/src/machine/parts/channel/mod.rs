//! What goes from a front end to a driver domain (Menon et al., ATC 2006): a packet of up to 64 KB, whose headers are
//! copied and whose pages are held where they are, and what is left to be done to it.
//!
//! | module | what it is |
//! |---|---|
//! | `offload` | the driver domain cuts a packet for a card that cannot |
//!
//! A request is in memory that its guest goes on writing to: it is looked at once, and what is believed is the copy. A
//! page that is not the guest's is not held, so no card reads it, and a page that is held is nobody else's until it is
//! released. Left out: payload, and checksums over it.

pub(crate) mod offload;
#[cfg(test)]
mod tests;

use super::cdna::pages::Pages;
use super::cdna::{Buffer, Domain, PAGE};
use guest::packet::{IP_HEADERS, TCP_HEADERS};
use split::{LONGEST, Offload, PIECES};

/// Bytes of headers that are copied at the most.
pub(crate) const HEADERS: usize = 128;
/// Segments that a packet may be cut into: what cutting costs is bounded.
pub(crate) const SEGMENTS: usize = 128;

/// What a guest asks for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Ethernet, IP and TCP headers.
    pub(crate) header: Vec<u8>,
    /// Where the payload lies, a page or a part of one each.
    pub(crate) pieces: Vec<Buffer>,
    /// What is left to be done.
    pub(crate) offload: Offload,
}

/// Why a request goes nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The headers are too short, too long, or not those of a packet that can be cut as asked for.
    Header,
    /// The pieces are too many, empty, across pages, or not as long as the headers say.
    Length,
    /// Segments would be empty, or too many.
    Segment,
    /// A page is not the guest's, or freed.
    Page,
}

/// A packet on its way through the driver domain.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    header: [u8; HEADERS],
    length: usize,
    pieces: Vec<Buffer>,
    pub(crate) offload: Offload,
}

/// Looks at a request of `owner`, copies its headers and holds its pages.
pub(crate) fn accept(request: &Request, owner: Domain, pages: &mut Pages) -> Result<Packet, Refused> {
    let mut header = [0; HEADERS];
    let length = request.header.len();
    header.get_mut(..length).ok_or(Refused::Header)?.copy_from_slice(&request.header);
    let packet = Packet { header, length, pieces: request.pieces.clone(), offload: request.offload };
    packet.check()?;
    if !packet.pieces.iter().all(|piece| pages.are_of(*piece, owner)) {
        return Err(Refused::Page);
    }
    packet.pieces.iter().for_each(|piece| pages.refer(*piece));
    Ok(packet)
}

impl Packet {
    /// The copied headers.
    pub(crate) fn header(&self) -> &[u8] {
        &self.header[..self.length]
    }

    /// Bytes of payload.
    pub(crate) fn payload(&self) -> usize {
        self.pieces.iter().map(|piece| usize::from(piece.length)).sum()
    }

    /// Pages that are held.
    pub(crate) fn pages(&self) -> usize {
        self.pieces.len()
    }

    /// Where its payload lies.
    pub(crate) fn pieces(&self) -> &[Buffer] {
        &self.pieces
    }

    /// It has gone: its pages are the guest's again.
    pub(crate) fn release(self, pages: &mut Pages) {
        self.pieces.into_iter().for_each(|piece| pages.release(piece));
    }

    /// Whether it is what it says.
    fn check(&self) -> Result<(), Refused> {
        let lies_in_a_page = |piece: &Buffer| piece.length > 0 && piece.pages().count() == 1;
        let total = self.length + self.payload();
        if self.pieces.len() > PIECES || !self.pieces.iter().all(lies_in_a_page) || total > LONGEST {
            return Err(Refused::Length);
        }
        if self.length < IP_HEADERS - 20 {
            return Err(Refused::Header);
        }
        let Some(size) = self.offload.segment else { return Ok(()) };
        let header = self.header();
        if !is_tcp(header) {
            return Err(Refused::Header);
        }
        if usize::from(u16::from_be_bytes([header[16], header[17]])) + 14 != total {
            return Err(Refused::Length);
        }
        if size == 0 || self.payload().div_ceil(size.into()) > SEGMENTS {
            return Err(Refused::Segment);
        }
        Ok(())
    }
}

/// Whether headers are Ethernet's, IPv4's without options, and all of TCP's.
fn is_tcp(header: &[u8]) -> bool {
    let begins = header.len() >= IP_HEADERS + 20 && header[12..15] == [8, 0, 0x45] && header[23] == 6;
    begins && IP_HEADERS + usize::from(header[46] >> 4) * 4 == header.len()
}

/// Slots of a ring that a packet of so many bytes takes: its headers share the first page.
pub(crate) fn slots(payload: usize) -> u32 {
    (TCP_HEADERS + payload).div_ceil(PAGE as usize) as u32
}
