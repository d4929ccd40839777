//! A TCP packet that leaves by the uplink before it is cut into segments: where its parts are. Left out: its headers.

/// A packet that is not cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uncut {
    /// The network header is IPv4's, else IPv6's.
    pub ipv4: bool,
    /// Where the network header starts, bytes from the start of the packet.
    pub l3: usize,
    /// Where TCP's header starts.
    pub l4: usize,
    /// Where the payload starts.
    pub payload: usize,
    /// Payload bytes of a segment.
    pub mss: u16,
}

impl Uncut {
    /// How many segments a packet of `length` bytes makes.
    #[must_use]
    pub fn frames(&self, length: usize) -> u64 {
        length.saturating_sub(self.payload).div_ceil(usize::from(self.mss).max(1)) as u64
    }

    /// Bytes of each of them.
    pub fn lengths(self, length: usize) -> impl Iterator<Item = usize> {
        let (mss, payload) = (usize::from(self.mss), length.saturating_sub(self.payload));
        (0..self.frames(length) as usize).map(move |n| self.payload + mss.min(payload - n * mss))
    }

    /// Bytes of the longest segment.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.payload + usize::from(self.mss)
    }

    /// The same, of the packet with `bytes` more before its network header.
    #[must_use]
    pub fn behind(self, bytes: usize) -> Self {
        Self { l3: self.l3 + bytes, l4: self.l4 + bytes, payload: self.payload + bytes, ..self }
    }
}
