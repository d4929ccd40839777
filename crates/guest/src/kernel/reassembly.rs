//! Putting fragments of a datagram together. They come in order, from one sender; one that is missing costs the
//! datagram. Left out: several datagrams at once, and giving up after a time.

use crate::packet::UDP_HEADER;

/// The datagram of which the first pieces have come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reassembly {
    id: u16,
    /// Bytes that are there; 0 if none is begun.
    bytes: usize,
    pieces: u32,
}

impl Reassembly {
    /// A fragment has come; the payload of its datagram and its pieces if that is complete.
    pub(super) fn add(&mut self, id: u16, offset: u16, more: bool, payload: usize) -> Option<(usize, u32)> {
        let before = core::mem::take(self);
        let begun = if offset == 0 { Self { id, ..Self::default() } } else { before };
        if (begun.id, begun.bytes) != (id, usize::from(offset)) {
            return None;
        }
        let now = Self { id, bytes: begun.bytes + payload, pieces: begun.pieces + 1 };
        if more {
            *self = now;
            return None;
        }
        Some((now.bytes.saturating_sub(UDP_HEADER), now.pieces))
    }
}

#[cfg(test)]
mod tests {
    use super::Reassembly;

    #[test]
    fn a_datagram_is_there_with_its_last_piece() {
        let mut datagram = Reassembly::default();
        assert_eq!(datagram.add(7, 0, true, 1_480), None);
        assert_eq!(datagram.add(7, 1_480, true, 1_480), None);
        assert_eq!(datagram.add(7, 2_960, false, 48), Some((3_000, 3)));
    }

    #[test]
    fn a_piece_that_is_missing_costs_the_datagram_and_not_the_next() {
        let mut datagram = Reassembly::default();
        assert_eq!(datagram.add(7, 0, true, 1_480), None);
        assert_eq!(datagram.add(7, 2_960, false, 48), None);
        assert_eq!(datagram.add(8, 1_480, false, 48), None, "its first piece never came");
        assert_eq!(datagram.add(9, 0, true, 1_480), None);
        assert_eq!(datagram.add(9, 1_480, false, 48), Some((1_520, 2)));
    }
}
