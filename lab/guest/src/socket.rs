//! Receive buffer of a socket, limited in kernel buffers. A full socket drops packets; a reassembled datagram
//! occupies one buffer per fragment. The limit is the kernel's accounting (1,888 bytes per full frame);
//! payload bytes are not stored.

/// Receive buffer of a socket, limited in kernel buffers.
#[derive(Debug, Clone)]
pub struct SocketReceiveBuffer {
    room: u32,
    /// Number of packets that the socket's buffer holds now.
    packets: u32,
    /// Number of kernel buffers that the stored packets occupy.
    buffers: u32,
    /// Number of payload bytes of the stored packets.
    bytes: u64,
    /// Packets that the socket accepted since its creation.
    pub accepted: PacketCount,
    /// Packets dropped since creation because the buffer was full.
    pub dropped: PacketCount,
}

/// Number of packets, with the number of their payload bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketCount {
    /// Number of counted packets.
    pub packets: u64,
    /// Number of payload bytes of the counted packets.
    pub bytes: u64,
}

impl PacketCount {
    fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }
}

impl SocketReceiveBuffer {
    /// Creates a socket's receive buffer of `room` kernel buffers.
    #[must_use]
    pub fn new(room: u32) -> Self {
        let (accepted, dropped) = (PacketCount::default(), PacketCount::default());
        Self { room, packets: 0, buffers: 0, bytes: 0, accepted, dropped }
    }

    /// Stores a packet that occupies `pieces` kernel buffers of the socket. Returns `false` if the packet was dropped.
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

    /// Removes the oldest packet from the socket. Returns its payload bytes and kernel buffers, or `None` if the socket
    /// is empty.
    pub fn pop(&mut self) -> Option<(u64, u32)> {
        let bytes = self.bytes.checked_div(u64::from(self.packets))?;
        let pieces = self.buffers / self.packets;
        self.packets -= 1;
        self.buffers -= pieces;
        self.bytes -= bytes;
        Some((bytes, pieces))
    }

    /// Returns the number of free kernel buffers of the socket.
    #[must_use]
    pub fn room(&self) -> u32 {
        self.room - self.buffers
    }

    /// Returns the number of kernel buffers in a full socket.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.room
    }

    /// Returns `true` if the socket stores no packet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }
}

#[cfg(test)]
mod tests {
    use super::SocketReceiveBuffer;

    #[test]
    fn socket_buffer_of_64_packets_drops_the_65th_packet() {
        let mut socket = SocketReceiveBuffer::new(64);
        assert_eq!((0..81).filter(|_| socket.push(1_472, 1)).count(), 64);
        assert_eq!((socket.accepted.packets, socket.dropped.packets), (64, 17));
    }

    #[test]
    fn datagram_occupies_and_frees_a_socket_buffer_per_fragment() {
        let mut socket = SocketReceiveBuffer::new(8);
        assert!(socket.push(4_000, 3) && socket.push(4_000, 3) && !socket.push(4_000, 3));
        assert_eq!((socket.room(), socket.pop(), socket.room()), (2, Some((4_000, 3)), 5));
    }

    #[test]
    fn all_bytes_that_a_socket_accepts_are_read() {
        let mut socket = SocketReceiveBuffer::new(8);
        [100, 200, 300].iter().for_each(|bytes| assert!(socket.push(*bytes, 1)));
        let out: u64 = core::iter::from_fn(|| socket.pop()).map(|(bytes, _)| bytes).sum();
        assert_eq!((out, socket.is_empty()), (600, true));
    }
}
