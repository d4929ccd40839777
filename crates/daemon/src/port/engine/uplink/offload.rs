//! Offloads between the kernel and the port: adds missing checksums to frames, and segments TCP packets. The card
//! receives whole frames. So a packet is segmented here, one segment for each frame that the port asks for. The
//! kernel's header is checked against the packet itself.
//!
//! `host::vnet` moves headers and packets.

use host::vnet::{GsoType, VnetHeader};
use i82576::ids::{FCS, MAX_FRAME};
use nic::{TrustedChecksum, UnsegmentedPacketLayout};
use offload::checksum::PartialChecksum;
use offload::headers::TCP_CHECKSUM;
use offload::uncut;
use plane::frame::HEADROOM;

/// Maximum bytes of a packet before segmentation: the most that IP can express, the Ethernet header, and two tags.
pub(super) const LONGEST: usize = 65_535 + 14 + 8;

/// Error: the kernel's virtio-net header does not match the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VnetHeaderError;

/// Frame from the kernel to the card, or packet that is segmented into several frames.
#[derive(Debug)]
pub(super) struct KernelPacket {
    /// The packet's bytes, behind headroom.
    memory: Box<[u8]>,
    length: usize,
    /// True if the received packet contradicts the kernel's virtio-net header, and is still to be counted as malformed.
    malformed: bool,
    /// Layout of the TCP packet that is being segmented, and the number of segments taken so far.
    uncut: Option<(UnsegmentedPacketLayout, u32)>,
    /// Guarantee about the checksum of the segment that was taken last, if any.
    sealed: Option<TrustedChecksum>,
}

impl Default for KernelPacket {
    fn default() -> Self {
        let memory = vec![0; HEADROOM + LONGEST].into();
        Self { memory, length: 0, malformed: false, uncut: None, sealed: None }
    }
}

impl KernelPacket {
    /// Returns the memory for the next received packet.
    pub(super) fn place(&mut self) -> &mut [u8] {
        &mut self.memory[HEADROOM..]
    }

    /// Returns true if no packet is pending.
    pub(super) fn is_empty(&self) -> bool {
        self.length == 0 && !self.malformed
    }

    /// Records a packet that does not match the kernel's header.
    pub(super) fn put_malformed(&mut self) {
        self.malformed = true;
    }

    /// Returns true, once, if a packet did not match the kernel's header.
    pub(super) fn take_malformed(&mut self) -> bool {
        std::mem::take(&mut self.malformed)
    }

    /// Returns the packet with headroom before it, if it is to be segmented and no segment has been taken.
    pub(super) fn uncut(&mut self) -> Option<(&mut [u8], UnsegmentedPacketLayout)> {
        let (whole, _) = self.uncut.filter(|(_, taken)| *taken == 0)?;
        Some((self.memory.get_mut(..HEADROOM + self.length)?, whole))
    }

    /// Accepts the packet of `length` bytes in [`Self::place`], with the kernel's header. [`Self::take`] returns
    /// its frames.
    pub(super) fn put(&mut self, length: usize, header: &VnetHeader) -> Result<(), VnetHeaderError> {
        self.forget();
        let packet = self.place().get_mut(..length).ok_or(VnetHeaderError)?;
        let ipv4 = match header.segments {
            GsoType::None => {
                complete(packet, header.checksum)?;
                self.length = length;
                return Ok(());
            }
            GsoType::TcpV4 => true,
            GsoType::TcpV6 => false,
            GsoType::Other(_) => return Err(VnetHeaderError),
        };
        let whole = uncut::arrived(packet, ipv4, header.size, MAX_FRAME - FCS).ok_or(VnetHeaderError)?;
        (self.length, self.uncut) = (length, Some((whole, 0)));
        Ok(())
    }

    /// Writes the packet's next frame to `into`, which has room for the longest frame. Returns its length, or
    /// `None` after the last frame.
    pub(super) fn take(&mut self, into: &mut [u8]) -> Option<usize> {
        self.sealed = None;
        let packet = self.memory.get(HEADROOM..HEADROOM + self.length).filter(|packet| !packet.is_empty())?;
        let Some((whole, taken)) = self.uncut else {
            // The card drops frames longer than its longest, and does not need their exact length.
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

    /// Returns the kernel's guarantee about the checksum of the frame that was taken last, or `None` if it gave none.
    pub(super) fn sealed(&self) -> Option<TrustedChecksum> {
        self.sealed
    }

    /// Drops the remaining segments of the packet.
    pub(super) fn forget(&mut self) {
        (self.length, self.malformed, self.uncut, self.sealed) = (0, false, None, None);
    }
}

/// Writes the checksum (RFC 1071) of a frame's bytes from a given start on. Before the call, the checksum field holds
/// the pseudo header's sum.
pub(super) fn complete(frame: &mut [u8], checksum: Option<(u16, u16)>) -> Result<(), VnetHeaderError> {
    let Some((start, offset)) = checksum else { return Ok(()) };
    let covered = frame.get_mut(usize::from(start)..).ok_or(VnetHeaderError)?;
    let value = match PartialChecksum::of(covered).checksum() {
        // Zero would mean that there is no checksum.
        0 => 0xffff,
        value => value,
    };
    let field = covered.get_mut(usize::from(offset)..).and_then(|rest| rest.first_chunk_mut::<2>());
    *field.ok_or(VnetHeaderError)? = value.to_be_bytes();
    Ok(())
}

/// Returns the virtio-net header for a TCP packet that the kernel has to segment.
pub(super) fn header(whole: &UnsegmentedPacketLayout) -> VnetHeader {
    VnetHeader {
        checksum: Some((whole.l4 as u16, TCP_CHECKSUM as u16)),
        segments: if whole.ipv4 { GsoType::TcpV4 } else { GsoType::TcpV6 },
        headers: whole.payload as u16,
        size: whole.mss,
    }
}

#[cfg(test)]
mod tests;
