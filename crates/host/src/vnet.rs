//! What the kernel says of a frame, and is told of one: `struct virtio_net_hdr` of `linux/virtio_net.h`, in the machine's
//! own byte order, in front of frames of taps and packet sockets. The checksum may be missing, and the frame may be a
//! packet that is to be cut into segments.
//!
//! Left out: whether what it says is true of the frame.

/// What a packet is that is to be cut into segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Segments {
    /// It is a frame as it is.
    #[default]
    None,
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// Something else, as the kernel numbers it.
    Other(u8),
}

/// The header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// Where the checksum begins that is still missing, bytes from the start of the frame, and where from there it
    /// belongs. Its place has the pseudo header's sum.
    pub checksum: Option<(u16, u16)>,
    /// Whether it is to be cut, and into what.
    pub segments: Segments,
    /// Bytes of all headers of a packet to be cut.
    pub headers: u16,
    /// Payload bytes of a segment.
    pub size: u16,
}

/// Flags: the checksum is missing.
const NEEDS_CHECKSUM: u8 = 1;
/// Kinds of segmentation, and a bit beside them: TCP's CWR is set.
const NONE: u8 = 0;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const ECN: u8 = 0x80;

impl VnetHeader {
    /// Bytes of it.
    pub const SIZE: usize = 10;

    /// Reads it.
    #[must_use]
    pub fn parse(bytes: &[u8; Self::SIZE]) -> Self {
        let [flags, kind, numbers @ ..] = bytes;
        let number = |n: usize| u16::from_ne_bytes([numbers[2 * n], numbers[2 * n + 1]]);
        let segments = match kind & !ECN {
            NONE => Segments::None,
            TCP_V4 => Segments::TcpV4,
            TCP_V6 => Segments::TcpV6,
            other => Segments::Other(other),
        };
        let checksum = (flags & NEEDS_CHECKSUM != 0).then(|| (number(2), number(3)));
        Self { checksum, segments, headers: number(0), size: number(1) }
    }

    /// Writes it.
    #[must_use]
    pub fn emit(&self) -> [u8; Self::SIZE] {
        let kind = match self.segments {
            Segments::None => NONE,
            Segments::TcpV4 => TCP_V4,
            Segments::TcpV6 => TCP_V6,
            Segments::Other(other) => other,
        };
        let (start, offset) = self.checksum.unwrap_or_default();
        let mut bytes = [0; Self::SIZE];
        bytes[..2].copy_from_slice(&[if self.checksum.is_some() { NEEDS_CHECKSUM } else { 0 }, kind]);
        for (to, number) in bytes[2..].chunks_exact_mut(2).zip([self.headers, self.size, start, offset]) {
            to.copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_as_it_was_written() {
        let plain = VnetHeader::default();
        assert_eq!(plain.emit(), [0; VnetHeader::SIZE]);
        for segments in [Segments::None, Segments::TcpV4, Segments::TcpV6, Segments::Other(5)] {
            let header = VnetHeader { checksum: Some((34, 16)), segments, headers: 54, size: 1448 };
            assert_eq!(VnetHeader::parse(&header.emit()), header);
        }
    }

    #[test]
    fn that_a_packet_has_cwr_set_makes_it_no_other_kind() {
        let mut bytes = VnetHeader { segments: Segments::TcpV6, ..VnetHeader::default() }.emit();
        bytes[1] |= ECN;
        assert_eq!(VnetHeader::parse(&bytes).segments, Segments::TcpV6);
    }
}
