//! Private memory of one packet. It keeps what it has grown to, so no byte of a long packet is written twice. Left out: what is done
//! with the packet.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

/// Bytes of a packet, behind a headroom of the caller's choice.
#[derive(Debug, Clone, Default)]
pub struct Staging {
    place: Vec<u8>,
    length: usize,
}

impl Staging {
    /// Makes an empty place, with memory for packets of up to `bytes` bytes.
    #[must_use]
    pub fn with_room(bytes: usize) -> Self {
        Self { place: vec![0; bytes], length: 0 }
    }

    /// Provides memory for `bytes` bytes. The packet stays.
    pub fn reserve(&mut self, bytes: usize) {
        if self.place.len() < bytes {
            self.place.resize(bytes, 0);
        }
    }

    /// Makes it `length` bytes long. Bytes that it gains are left over from earlier packets: the caller writes them before they
    /// are read.
    #[inline]
    pub fn set_length(&mut self, length: usize) {
        self.reserve(length);
        self.length = length;
    }

    /// Adds zeros up to a length, if it is shorter.
    #[inline]
    pub(crate) fn pad(&mut self, shortest: usize) {
        let end = self.length;
        if end < shortest {
            self.set_length(shortest);
            self[end..].fill(0);
        }
    }
}

impl Deref for Staging {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.place[..self.length]
    }
}

impl DerefMut for Staging {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.place[..self.length]
    }
}

impl From<Vec<u8>> for Staging {
    fn from(place: Vec<u8>) -> Self {
        Self { length: place.len(), place }
    }
}

#[cfg(test)]
mod tests {
    use super::Staging;
    use alloc::vec;

    #[test]
    fn staging_shows_its_packet_alone() {
        let mut staging = Staging::from(vec![1, 2, 3, 4, 5]);
        staging.set_length(2);
        assert_eq!(&*staging, [1, 2]);
        staging.pad(4);
        assert_eq!(&*staging, [1, 2, 0, 0], "what another packet has left is no padding");
    }
}
