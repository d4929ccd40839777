//! Splits headers from payload for a header buffer. PSRTYPE names the kinds of frames whose headers are split off
//! (datasheet 7.1.5; appendix A.1 of the I210's describes the kinds). A frame has one exact kind: the bit for TCP over
//! IPv4 splits only such frames. The bit for Ethernet splits every frame behind its Ethernet header, unless another bit
//! applies.
//!
//! NFS packets count as TCP or UDP here. IPv6 within IPv4 is not split.

use i82576::bits::psrtype;
use offload::headers::{FrameHeaders, NetworkHeaderKind, TransportHeaderKind};
use plane::tag::TAG;
use serde::{Deserialize, Serialize};

/// Offsets in a frame at which headers may be split from payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "Split")]
pub(crate) struct HeaderSplitOffsets {
    /// Bit of PSRTYPE for the frame's combination of headers; 0 if no bit stands for this combination.
    kind: u32,
    /// Number of bytes in the Ethernet header, tags included; 0 if it was not parsed.
    ethernet: u16,
    /// Number of bytes in all headers of the frame's kind.
    headers: u16,
}

impl HeaderSplitOffsets {
    /// Returns the offsets at which a frame with the given headers may be split.
    #[must_use]
    pub(crate) fn of(headers: &FrameHeaders) -> Self {
        let kind = match (headers.l3, headers.l4) {
            (NetworkHeaderKind::Ipv4, TransportHeaderKind::Tcp) => psrtype::IPV4_TCP,
            (NetworkHeaderKind::Ipv4, TransportHeaderKind::Udp) => psrtype::IPV4_UDP,
            (NetworkHeaderKind::Ipv4, _) if headers.fragment => psrtype::IPV4,
            (NetworkHeaderKind::Ipv6, TransportHeaderKind::Tcp) => psrtype::IPV6_TCP,
            (NetworkHeaderKind::Ipv6, TransportHeaderKind::Udp) => psrtype::IPV6_UDP,
            (NetworkHeaderKind::Ipv6, _) if headers.fragment => psrtype::IPV6,
            _ => 0,
        };
        Self::at(kind, headers.l3_offset, headers.header_length)
    }

    /// Returns the split offsets of a frame of a PSRTYPE kind: the lengths of its Ethernet header and of all its
    /// headers.
    #[must_use]
    pub(super) const fn at(kind: u32, ethernet: usize, headers: usize) -> Self {
        Self { kind, ethernet: ethernet as u16, headers: headers as u16 }
    }

    /// Returns the offsets for header split of the same frame with one more VLAN tag.
    #[must_use]
    pub(crate) fn with_tag(self) -> Self {
        let ethernet = if self.ethernet == 0 { 0 } else { self.ethernet + TAG as u16 };
        Self { ethernet, headers: self.headers + TAG as u16, ..self }
    }

    /// Returns the number of header bytes to split off under a value of PSRTYPE; 0 for none.
    #[must_use]
    pub(crate) fn length(&self, enabled: u32) -> usize {
        match enabled & (self.kind | psrtype::ETHERNET) {
            0 => 0,
            bits if bits & self.kind != 0 => self.headers.into(),
            _ => self.ethernet.into(),
        }
    }
}
