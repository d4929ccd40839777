//! Reassembles fragmented datagrams of one sender. Fragments must arrive in order: a missing fragment drops its
//! datagram. One datagram at a time, without a timeout.

use crate::packet::UDP_HEADER;

/// Datagram of which the first fragments have arrived.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DatagramReassembly {
    id: u16,
    /// Bytes of the datagram received so far; 0 if no datagram has begun.
    bytes: usize,
    pieces: u32,
}

impl DatagramReassembly {
    /// Adds an IPv4 fragment to the datagram that is being reassembled. Once the datagram is complete, returns its
    /// number of payload bytes and of fragments.
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
    use super::DatagramReassembly;

    #[test]
    fn last_ip_fragment_completes_its_datagram() {
        let mut datagram = DatagramReassembly::default();
        assert_eq!(datagram.add(7, 0, true, 1_480), None);
        assert_eq!(datagram.add(7, 1_480, true, 1_480), None);
        assert_eq!(datagram.add(7, 2_960, false, 48), Some((3_000, 3)));
    }

    #[test]
    fn missing_ip_fragment_drops_only_its_datagram() {
        let mut datagram = DatagramReassembly::default();
        assert_eq!(datagram.add(7, 0, true, 1_480), None);
        assert_eq!(datagram.add(7, 2_960, false, 48), None);
        assert_eq!(datagram.add(8, 1_480, false, 48), None, "the datagram's first fragment is missing");
        assert_eq!(datagram.add(9, 0, true, 1_480), None);
        assert_eq!(datagram.add(9, 1_480, false, 48), Some((1_520, 2)));
    }
}
