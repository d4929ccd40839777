//! A socket's receive buffer: it holds so many packets, and drops the next; a datagram that came in pieces takes the
//! room of each. Left out: the bytes; a buffer of the kernel's accounting (1,888 bytes for a full frame) is what runs
//! out.

/// A receive buffer.
#[derive(Debug, Clone)]
pub struct Socket {
    room: u32,
    /// Packets inside, the buffers that they are in, and their payload.
    packets: u32,
    buffers: u32,
    bytes: u64,
    /// What was put in since the beginning.
    pub accepted: Count,
    /// What found no room since the beginning.
    pub dropped: Count,
}

/// Packets and their payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Payload bytes.
    pub bytes: u64,
}

impl Count {
    fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }
}

impl Socket {
    /// A buffer for `room` packets of a piece each.
    #[must_use]
    pub fn new(room: u32) -> Self {
        let (accepted, dropped) = (Count::default(), Count::default());
        Self { room, packets: 0, buffers: 0, bytes: 0, accepted, dropped }
    }

    /// Puts a packet of so many pieces in; `false` if it was dropped.
    pub fn push(&mut self, bytes: u64, pieces: u32) -> bool {
        if self.room() < pieces {
            self.dropped.add(bytes);
            return false;
        }
        self.packets += 1;
        self.buffers += pieces;
        self.bytes += bytes;
        self.accepted.add(bytes);
        true
    }

    /// Takes one packet out: its bytes and its pieces; `None` if there is none.
    pub fn pop(&mut self) -> Option<(u64, u32)> {
        let bytes = self.bytes.checked_div(u64::from(self.packets))?;
        let pieces = self.buffers / self.packets;
        self.packets -= 1;
        self.buffers -= pieces;
        self.bytes -= bytes;
        Some((bytes, pieces))
    }

    /// Packets of a piece each that it still has room for.
    #[must_use]
    pub fn room(&self) -> u32 {
        self.room - self.buffers
    }

    /// Packets that it holds when it is full.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.room
    }

    /// Nothing is inside.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }
}

#[cfg(test)]
mod tests {
    use super::Socket;

    #[test]
    fn the_65th_packet_of_a_64_packet_buffer_is_dropped() {
        let mut socket = Socket::new(64);
        assert_eq!((0..81).filter(|_| socket.push(1_472, 1)).count(), 64);
        assert_eq!((socket.accepted.packets, socket.dropped.packets), (64, 17));
    }

    #[test]
    fn a_datagram_takes_the_room_of_its_pieces_and_gives_it_back() {
        let mut socket = Socket::new(8);
        assert!(socket.push(4_000, 3) && socket.push(4_000, 3) && !socket.push(4_000, 3));
        assert_eq!((socket.room(), socket.pop(), socket.room()), (2, Some((4_000, 3)), 5));
    }

    #[test]
    fn what_goes_in_comes_out() {
        let mut socket = Socket::new(8);
        [100, 200, 300].iter().for_each(|bytes| assert!(socket.push(*bytes, 1)));
        let out: u64 = core::iter::from_fn(|| socket.pop()).map(|(bytes, _)| bytes).sum();
        assert_eq!((out, socket.is_empty()), (600, true));
    }
}
