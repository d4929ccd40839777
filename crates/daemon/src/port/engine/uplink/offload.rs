//! What the kernel leaves to the port, and the port to the kernel: checksums that are still missing, and TCP packets that
//! are not cut into segments yet. The card is given whole frames: a packet is cut here, one segment for each frame that
//! the port asks for. The kernel's header is believed only as far as the packet itself bears it out.
//!
//! Left out: how header and packet come and go (`host::vnet`).

use host::vnet::{Segments, VnetHeader};
use i82576::ids::{FCS, MAX_FRAME};
use nic::{Sealed, Uncut};
use offload::checksum::Sum;
use offload::headers::TCP_CHECKSUM;
use offload::uncut;

/// Room for the longest packet: what IP can say, the header of Ethernet, and two tags.
pub(super) const LONGEST: usize = 65_535 + 14 + 8;

/// What the kernel said is not true of the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// A frame, or a packet that makes several, on its way to the card.
#[derive(Debug)]
pub(super) struct Arrival {
    memory: Box<[u8]>,
    length: usize,
    /// While a TCP packet is being cut: its layout, and the segments taken so far.
    uncut: Option<(Uncut, u32)>,
    /// What is known of the checksum of the segment that was taken last.
    sealed: Option<Sealed>,
}

impl Default for Arrival {
    fn default() -> Self {
        Self { memory: vec![0; LONGEST].into(), length: 0, uncut: None, sealed: None }
    }
}

impl Arrival {
    /// Where the next one is to be put.
    pub(super) fn place(&mut self) -> &mut [u8] {
        &mut self.memory
    }

    /// One is there, `length` bytes of which the kernel says this; it is taken next.
    pub(super) fn put(&mut self, length: usize, header: &VnetHeader) -> Result<(), Malformed> {
        self.forget();
        let packet = self.memory.get_mut(..length).ok_or(Malformed)?;
        let ipv4 = match header.segments {
            Segments::None => {
                complete(packet, header.checksum)?;
                self.length = length;
                return Ok(());
            }
            Segments::TcpV4 => true,
            Segments::TcpV6 => false,
            Segments::Other(_) => return Err(Malformed),
        };
        let whole = uncut::arrived(packet, ipv4, header.size, MAX_FRAME - FCS).ok_or(Malformed)?;
        (self.length, self.uncut) = (length, Some((whole, 0)));
        Ok(())
    }

    /// The next frame of it, into a place that has room for the longest one; `None` if all of it was taken.
    pub(super) fn take(&mut self, into: &mut [u8]) -> Option<usize> {
        self.sealed = None;
        let packet = self.memory.get(..self.length).filter(|packet| !packet.is_empty())?;
        let Some((whole, taken)) = self.uncut else {
            // The card drops what is longer than its longest frame, and cannot tell how much longer.
            let length = packet.len().min(into.len());
            into[..length].copy_from_slice(&packet[..length]);
            self.forget();
            return Some(length);
        };
        let next = uncut::segments(&whole, packet).ok().and_then(|segments| {
            let mut segments = segments.skip(taken);
            let length = segments.write_next(into)?;
            Some((length, segments))
        });
        let Some((length, segments)) = next else {
            self.forget();
            return None;
        };
        self.sealed = segments.sealed();
        self.uncut = Some((whole, taken + 1));
        if segments.count() == 0 {
            (self.length, self.uncut) = (0, None);
        }
        Some(length)
    }

    /// What is known of the checksum of the frame that was taken last.
    pub(super) fn sealed(&self) -> Option<Sealed> {
        self.sealed
    }

    /// Drops what is left.
    pub(super) fn forget(&mut self) {
        (self.length, self.uncut, self.sealed) = (0, None, None);
    }
}

/// Puts in the checksum (RFC 1071) of everything from a start on, whose place has the pseudo header's sum.
pub(super) fn complete(frame: &mut [u8], checksum: Option<(u16, u16)>) -> Result<(), Malformed> {
    let Some((start, offset)) = checksum else { return Ok(()) };
    let covered = frame.get_mut(usize::from(start)..).ok_or(Malformed)?;
    let value = match Sum::of(covered).checksum() {
        // Zero would say that there is none.
        0 => 0xffff,
        value => value,
    };
    let field = covered.get_mut(usize::from(offset)..).and_then(|rest| rest.first_chunk_mut::<2>());
    *field.ok_or(Malformed)? = value.to_be_bytes();
    Ok(())
}

/// What the kernel is told of a packet that it has to cut.
pub(super) fn header(whole: &Uncut) -> VnetHeader {
    VnetHeader {
        checksum: Some((whole.l4 as u16, TCP_CHECKSUM as u16)),
        segments: if whole.ipv4 { Segments::TcpV4 } else { Segments::TcpV6 },
        headers: whole.payload as u16,
        size: whole.mss,
    }
}

#[cfg(test)]
mod tests;
