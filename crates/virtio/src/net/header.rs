//! Header in front of each packet (section 5.1.6): 12 bytes, little endian, or the first ten for some legacy drivers.

use crate::feature::VirtioFeatures;

/// Flags of a packet's header.
pub mod flag {
    /// Header flag: the packet's checksum is partial, and the side that receives the packet completes it.
    pub const NEEDS_CSUM: u8 = 1;
    /// Header flag: the device has verified the packet's checksum.
    pub const DATA_VALID: u8 = 2;
}

/// Types of segmentation in a packet's header.
pub mod gso {
    /// Segmentation type: the packet is a single frame.
    pub const NONE: u8 = 0;
    /// Segmentation type: TCP over IPv4.
    pub const TCPV4: u8 = 1;
    /// Segmentation type: UDP that is divided into IP fragments.
    pub const UDP: u8 = 3;
    /// Segmentation type: TCP over IPv6.
    pub const TCPV6: u8 = 4;
    /// Segmentation type: UDP that is divided into datagrams.
    pub const UDP_L4: u8 = 5;
    /// Flag added to a segmentation type: the TCP packet has a congestion mark (ECN).
    pub const ECN: u8 = 0x80;
}

/// Format of the headers of a device's packets, which follows from the accepted features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetHeaderFormat {
    /// Packet header of ten bytes, without the number of buffers: legacy drivers that do not merge receive buffers
    /// (section 5.1.6.1).
    Legacy,
    /// Packet header of twelve bytes.
    Standard,
}

impl NetHeaderFormat {
    /// Returns the packet header format that accepted features imply.
    #[must_use]
    pub const fn of(accepted: VirtioFeatures) -> Self {
        if accepted.intersects(VirtioFeatures::VERSION_1.with(VirtioFeatures::MRG_RXBUF)) {
            Self::Standard
        } else {
            Self::Legacy
        }
    }

    /// Returns the number of bytes of a packet header.
    #[must_use]
    #[inline]
    pub const fn size(self) -> usize {
        match self {
            Self::Legacy => 10,
            Self::Standard => NetHeader::SIZE,
        }
    }
}

/// Header of a packet, as driver or device wrote it. [`NetHeader::check`](Self::check) makes a checked request of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NetHeader {
    /// Flags of the packet header: [`flag`].
    pub flags: u8,
    /// Type of the packet's segmentation: [`gso`].
    pub gso_type: u8,
    /// Length of the packet's headers in bytes. Drivers get it wrong, so it is a hint only (section 5.1.6.2.2).
    pub header_length: u16,
    /// Number of payload bytes in a segment of the packet.
    pub gso_size: u16,
    /// Offset in the packet at which the checksum begins.
    pub checksum_start: u16,
    /// Offset of the checksum field from `checksum_start`.
    pub checksum_offset: u16,
    /// Number of receive buffers that hold the packet; 0 in packets that a driver sends.
    pub buffers: u16,
}

impl NetHeader {
    /// Number of bytes of a packet header that includes the number of buffers.
    pub const SIZE: usize = 12;

    /// Parses a packet header from its bytes. A legacy header has zeros behind its ten bytes.
    #[must_use]
    #[inline]
    pub fn parse(raw: &[u8; Self::SIZE]) -> Self {
        let field = |at: usize| u16::from_le_bytes([raw[at], raw[at + 1]]);
        Self {
            flags: raw[0],
            gso_type: raw[1],
            header_length: field(2),
            gso_size: field(4),
            checksum_start: field(6),
            checksum_offset: field(8),
            buffers: field(10),
        }
    }

    /// Returns the packet header's bytes. A legacy header is the first ten of them.
    #[must_use]
    #[inline]
    pub fn emit(&self) -> [u8; Self::SIZE] {
        let mut raw = [0; Self::SIZE];
        (raw[0], raw[1]) = (self.flags, self.gso_type);
        let fields =
            [self.header_length, self.gso_size, self.checksum_start, self.checksum_offset, self.buffers];
        for (bytes, field) in raw[2..].as_chunks_mut().0.iter_mut().zip(fields) {
            *bytes = field.to_le_bytes();
        }
        raw
    }

    /// Returns true if the packet header requests nothing: the packet is a frame with all its checksums.
    #[must_use]
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.flags & flag::NEEDS_CSUM == 0 && self.gso_type == gso::NONE
    }
}
