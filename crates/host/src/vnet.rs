//! Header of frames of taps and packet sockets: `struct virtio_net_hdr` (linux/virtio_net.h), in the machine's byte
//! order. The frame may lack its checksum, or be a packet that is to be segmented.
//!
//! The header is not checked against the frame.

/// Segmentation that a packet still needs before it fits on a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GsoType {
    /// The packet is one frame and needs no segmentation.
    #[default]
    None,
    /// The packet is TCP over IPv4 to be segmented (VIRTIO_NET_HDR_GSO_TCPV4).
    TcpV4,
    /// The packet is TCP over IPv6 to be segmented (VIRTIO_NET_HDR_GSO_TCPV6).
    TcpV6,
    /// Segmentation type that this enumeration does not name (VIRTIO_NET_HDR_GSO_*).
    Other(u8),
}

/// Fields of a frame's virtio-net header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// Offset of the first byte covered by a missing checksum, from the start of the frame, and the checksum's offset
    /// from there. The checksum's field holds the pseudo header's sum.
    pub checksum: Option<(u16, u16)>,
    /// Segmentation that the packet still needs before it fits on a network, or none.
    pub segments: GsoType,
    /// Length of all headers, in bytes, of a packet that is to be segmented.
    pub headers: u16,
    /// Payload bytes of each segment of the packet.
    pub size: u16,
}

/// Flag of a missing checksum (VIRTIO_NET_HDR_F_NEEDS_CSUM).
const NEEDS_CHECKSUM: u8 = 1;
/// Segmentation type of a packet that needs no segmentation (VIRTIO_NET_HDR_GSO_NONE). The types of TCP and the flag
/// for a set TCP CWR bit follow.
const NONE: u8 = 0;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const ECN: u8 = 0x80;

impl VnetHeader {
    /// Size of the virtio-net header in bytes.
    pub const SIZE: usize = 10;

    /// Parses the virtio-net header of a frame.
    #[must_use]
    pub fn parse(bytes: &[u8; Self::SIZE]) -> Self {
        let [flags, kind, numbers @ ..] = bytes;
        let number = |n: usize| u16::from_ne_bytes([numbers[2 * n], numbers[2 * n + 1]]);
        let segments = match kind & !ECN {
            NONE => GsoType::None,
            TCP_V4 => GsoType::TcpV4,
            TCP_V6 => GsoType::TcpV6,
            other => GsoType::Other(other),
        };
        let checksum = (flags & NEEDS_CHECKSUM != 0).then(|| (number(2), number(3)));
        Self { checksum, segments, headers: number(0), size: number(1) }
    }

    /// Returns the bytes of the virtio-net header.
    #[must_use]
    pub fn emit(&self) -> [u8; Self::SIZE] {
        let kind = match self.segments {
            GsoType::None => NONE,
            GsoType::TcpV4 => TCP_V4,
            GsoType::TcpV6 => TCP_V6,
            GsoType::Other(other) => other,
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
    fn parsed_virtio_net_header_is_emitted_unchanged() {
        let plain = VnetHeader::default();
        assert_eq!(plain.emit(), [0; VnetHeader::SIZE]);
        for segments in [GsoType::None, GsoType::TcpV4, GsoType::TcpV6, GsoType::Other(5)] {
            let header = VnetHeader { checksum: Some((34, 16)), segments, headers: 54, size: 1448 };
            assert_eq!(VnetHeader::parse(&header.emit()), header);
        }
    }

    #[test]
    fn cwr_flag_does_not_change_the_segmentation_type() {
        let mut bytes = VnetHeader { segments: GsoType::TcpV6, ..VnetHeader::default() }.emit();
        bytes[1] |= ECN;
        assert_eq!(VnetHeader::parse(&bytes).segments, GsoType::TcpV6);
    }
}
