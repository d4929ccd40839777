//! A place for one packet on its way through the card. It keeps what it has grown to, so no byte of a long packet is written
//! twice. Left out: what is done with the packet.

use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};
use serde::{Deserialize, Serialize};

/// Bytes of a packet, behind a headroom of the caller's choice.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Vec<u8>", into = "Vec<u8>")]
pub struct Staging {
    place: Vec<u8>,
    length: usize,
}

impl Staging {
    /// Makes it `length` bytes long. Bytes that it gains are left over from earlier packets: the caller writes them before they
    /// are read.
    #[inline]
    pub(crate) fn set_length(&mut self, length: usize) {
        if self.place.len() < length {
            self.place.resize(length, 0);
        }
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

impl From<Staging> for Vec<u8> {
    fn from(mut staging: Staging) -> Self {
        staging.place.truncate(staging.length);
        staging.place
    }
}

#[cfg(test)]
mod tests {
    use super::Staging;
    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn only_the_packet_that_is_in_it_is_seen_and_saved() {
        let mut staging = Staging::from(vec![1, 2, 3, 4, 5]);
        staging.set_length(2);
        assert_eq!((&*staging, Vec::from(staging.clone())), (&[1, 2][..], vec![1, 2]));
        staging.pad(4);
        assert_eq!(&*staging, [1, 2, 0, 0], "what another packet has left is no padding");
    }
}
