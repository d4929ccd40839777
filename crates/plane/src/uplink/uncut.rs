//! Offsets of the headers and the payload in a TCP packet that leaves by the uplink unsegmented.

/// Offsets of the headers and payload in an unsegmented TCP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsegmentedPacketLayout {
    /// True if the network header is IPv4, false if IPv6.
    pub ipv4: bool,
    /// Offset of the network header in the packet, in bytes.
    pub l3: usize,
    /// Offset of the TCP header in the packet, in bytes.
    pub l4: usize,
    /// Offset of the payload in the packet, in bytes.
    pub payload: usize,
    /// Number of payload bytes in a segment (maximum segment size).
    pub mss: u16,
}

impl UnsegmentedPacketLayout {
    /// Returns the number of segments of a packet of `length` bytes.
    #[must_use]
    pub fn frames(&self, length: usize) -> u64 {
        self.segments(length) as u64
    }

    fn segments(&self, length: usize) -> usize {
        length.saturating_sub(self.payload).div_ceil(usize::from(self.mss).max(1))
    }

    /// Iterates over the bytes of each segment of a packet of `length` bytes.
    pub fn lengths(self, length: usize) -> impl Iterator<Item = usize> {
        let (mss, payload) = (usize::from(self.mss), length.saturating_sub(self.payload));
        (0..self.segments(length)).map(move |n| self.payload + mss.min(payload - n * mss))
    }

    /// Returns the number of bytes in the longest segment.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.payload + usize::from(self.mss)
    }

    /// Returns the offsets in a packet with `bytes` fewer bytes before the network header, such as a tag that was taken out.
    #[must_use]
    pub fn before(self, bytes: usize) -> Self {
        let fewer = |offset: usize| offset.saturating_sub(bytes);
        Self { l3: fewer(self.l3), l4: fewer(self.l4), payload: fewer(self.payload), ..self }
    }

    /// Returns the offsets in a packet with `bytes` more bytes before the network header, such as a tag.
    #[must_use]
    pub fn behind(self, bytes: usize) -> Self {
        Self { l3: self.l3 + bytes, l4: self.l4 + bytes, payload: self.payload + bytes, ..self }
    }
}
