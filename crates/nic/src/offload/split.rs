//! Splits headers from payload for a header buffer: PSRTYPE names the kinds of frames whose headers are split off (datasheet
//! 7.1.5; the kinds are described in appendix A.1 of the I210's). A kind is an exact one: the headers of TCP over IPv4
//! are split off for the bit of that name and for no other, except that the bit for Ethernet splits behind the
//! Ethernet header whatever no other bit is for.
//!
//! Left out: NFS, whose packets are TCP or UDP here, and IPv6 within IPv4.

use i82576::bits::psrtype;
use offload::headers::{Headers, L3, L4};
use plane::tag::TAG;
use serde::{Deserialize, Serialize};

/// Places to split a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Split {
    /// The bit of PSRTYPE for frames like this; 0 if there is none.
    kind: u32,
    /// Bytes of the Ethernet header, tags included; 0 if it was not looked at.
    ethernet: u16,
    /// Bytes of all headers that the kind is about.
    headers: u16,
}

impl Split {
    /// Returns the places to split a frame with these headers.
    #[must_use]
    pub fn of(headers: &Headers) -> Self {
        let kind = match (headers.l3, headers.l4) {
            (L3::Ipv4, L4::Tcp) => psrtype::IPV4_TCP,
            (L3::Ipv4, L4::Udp) => psrtype::IPV4_UDP,
            (L3::Ipv4, _) if headers.fragment => psrtype::IPV4,
            (L3::Ipv6, L4::Tcp) => psrtype::IPV6_TCP,
            (L3::Ipv6, L4::Udp) => psrtype::IPV6_UDP,
            (L3::Ipv6, _) if headers.fragment => psrtype::IPV6,
            _ => 0,
        };
        Self::at(kind, headers.l3_offset, headers.header_length)
    }

    /// Returns the places of a frame of a kind, given the bytes of its Ethernet header and of all headers.
    #[must_use]
    pub(super) const fn at(kind: u32, ethernet: usize, headers: usize) -> Self {
        Self { kind, ethernet: ethernet as u16, headers: headers as u16 }
    }

    /// The same with one tag more in the frame.
    #[must_use]
    pub fn with_tag(self) -> Self {
        let ethernet = if self.ethernet == 0 { 0 } else { self.ethernet + TAG as u16 };
        Self { ethernet, headers: self.headers + TAG as u16, ..self }
    }

    /// Bytes of headers to split off under a PSRTYPE; 0 for none.
    #[must_use]
    pub fn length(&self, enabled: u32) -> usize {
        match enabled & (self.kind | psrtype::ETHERNET) {
            0 => 0,
            bits if bits & self.kind != 0 => self.headers.into(),
            _ => self.ethernet.into(),
        }
    }
}
