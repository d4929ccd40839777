//! Private buffer into which one packet at a time is copied. The buffer never shrinks, so its bytes are not zeroed
//! again for the next long packet.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

/// Private buffer with the bytes of one packet, behind headroom.
#[derive(Debug, Clone, Default)]
pub struct StagedPacket {
    place: Vec<u8>,
    length: usize,
}

impl StagedPacket {
    /// Creates memory for packets of up to `bytes` bytes, without a packet.
    #[must_use]
    pub fn with_room(bytes: usize) -> Self {
        Self { place: vec![0; bytes], length: 0 }
    }

    /// Enlarges the buffer to at least `bytes` bytes. The packet stays.
    #[inline(always)]
    pub fn reserve(&mut self, bytes: usize) {
        if self.place.len() < bytes {
            self.grow(bytes);
        }
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        self.place.resize(bytes, 0);
    }

    /// Sets the packet's length to `length` bytes. Added bytes have the values of earlier packets: the caller writes
    /// them before they are read.
    #[inline(always)]
    pub fn set_length(&mut self, length: usize) {
        self.reserve(length);
        self.length = length;
    }

    /// Adds `bytes` bytes to the packet and returns the added bytes for writing. Until then they have the values of
    /// earlier packets.
    #[inline(always)]
    pub fn extend(&mut self, bytes: usize) -> &mut [u8] {
        let start = self.length;
        self.set_length(start + bytes);
        &mut self.place[start..start + bytes]
    }

    /// Pads the packet with zeros to `shortest` bytes, if the packet is shorter.
    #[inline(always)]
    pub(crate) fn pad(&mut self, shortest: usize) {
        if self.length < shortest {
            self.extend(shortest - self.length).fill(0);
        }
    }
}

impl Deref for StagedPacket {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        &self.place[..self.length]
    }
}

impl DerefMut for StagedPacket {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.place[..self.length]
    }
}

impl From<Vec<u8>> for StagedPacket {
    fn from(place: Vec<u8>) -> Self {
        Self { length: place.len(), place }
    }
}

#[cfg(test)]
mod tests {
    use super::StagedPacket;
    use alloc::vec;

    #[test]
    fn reused_staging_memory_shows_only_the_current_packet() {
        let mut staging = StagedPacket::from(vec![1, 2, 3, 4, 5]);
        staging.set_length(2);
        assert_eq!(&*staging, [1, 2]);
        staging.pad(4);
        assert_eq!(&*staging, [1, 2, 0, 0], "what another packet has left is no padding");
    }
}
