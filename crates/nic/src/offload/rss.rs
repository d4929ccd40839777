//! Receive-side scaling: the bytes of a frame that are hashed, and the table that turns the hash into a queue
//! (datasheet 7.1.2.8).

use crate::file::RegisterFile;
use core::ops::Range;
use i82576::bits::mrqc;
use i82576::descriptor::rx::rss_type;
use i82576::register as r;
use offload::headers::{FrameHeaders, NetworkHeaderKind, TransportHeaderKind};
use offload::toeplitz::Toeplitz;

/// Length of the RSS hash key, in bytes.
const KEY: usize = 40;
/// RSS type in the receive descriptor: IPv6 with extensions.
const IPV6_EX: u8 = 4;
/// RSS type in the receive descriptor: TCP over IPv6 with extensions.
const TCP_IPV6_EX: u8 = 6;
/// RSS type in the receive descriptor: UDP over IPv6 with extensions.
const UDP_IPV6_EX: u8 = 9;

/// Hash of a frame, and the type of the hashed bytes. Both are zero if the frame is not hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FrameHash {
    /// Value of the RSS hash.
    pub value: u32,
    /// Type of the hashed bytes: a number of `rx::rss_type`.
    pub rss_type: u8,
}

/// Decoded settings of receive-side scaling: key, hash types and redirection table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RssSettings {
    types: u32,
    redirection: [u8; 128],
    toeplitz: Toeplitz,
}

impl RssSettings {
    /// Decodes hash types (MRQC), key (RSSRK) and redirection table (RETA) from the register file.
    #[must_use]
    pub(crate) fn load(file: &RegisterFile) -> Self {
        let mut key = [0; KEY];
        for (bytes, word) in key.chunks_exact_mut(4).zip(0..) {
            bytes.copy_from_slice(&file.get(r::rssrk(word)).to_le_bytes());
        }
        let mut redirection = [0; 128];
        for (entries, word) in redirection.chunks_exact_mut(4).zip(0..) {
            entries.copy_from_slice(&file.get(r::reta(word)).to_le_bytes());
        }
        Self { types: file.get(r::MRQC), redirection, toeplitz: Toeplitz::new(&key) }
    }

    /// Returns the hash of a frame whose headers were parsed from the same bytes.
    #[must_use]
    pub(crate) fn hash(&self, frame: &[u8], headers: &FrameHeaders) -> FrameHash {
        let Some((rss_type, with_ports)) = self.select(headers) else { return FrameHash::default() };
        let addresses = match headers.l3 {
            NetworkHeaderKind::Ipv4 => 12..20,
            _ => 8..40,
        };
        let ports = if with_ports { headers.l4_offset..headers.l4_offset + 4 } else { 0..0 };
        let part = |range: Range<usize>| frame.get(range).unwrap_or_default();
        let start = headers.l3_offset;
        if headers.is_readdressed() && matches!(rss_type, IPV6_EX | TCP_IPV6_EX | UDP_IPV6_EX) {
            let value = self.toeplitz.hash(&ends(frame, headers), part(ports));
            return FrameHash { value, rss_type };
        }
        let value = self.toeplitz.hash(part(start + addresses.start..start + addresses.end), part(ports));
        FrameHash { value, rss_type }
    }

    /// Returns the redirection table's entry for a hash. Its low four bits name a queue, or within a pool the lowest
    /// bit chooses between its two queues.
    #[must_use]
    pub(crate) fn redirect(&self, hash: u32) -> u8 {
        self.redirection[(hash & 0x7f) as usize] & 0xf
    }

    /// Returns the RSS type by which a frame is hashed, and true if its ports are hashed. The most specific enabled
    /// type wins.
    fn select(&self, headers: &FrameHeaders) -> Option<(u8, bool)> {
        let on = |bit: u32| self.types & bit != 0;
        let plain = !headers.extended;
        let choice = match (headers.l3, headers.l4) {
            (NetworkHeaderKind::Ipv4, TransportHeaderKind::Tcp) if on(mrqc::TCP_IPV4) => {
                (rss_type::TCP_IPV4, true)
            }
            (NetworkHeaderKind::Ipv4, TransportHeaderKind::Udp) if on(mrqc::UDP_IPV4) => {
                (rss_type::UDP_IPV4, true)
            }
            (NetworkHeaderKind::Ipv4, _) if on(mrqc::IPV4) => (rss_type::IPV4, false),
            (NetworkHeaderKind::Ipv6, TransportHeaderKind::Tcp) if plain && on(mrqc::TCP_IPV6) => {
                (rss_type::TCP_IPV6, true)
            }
            (NetworkHeaderKind::Ipv6, TransportHeaderKind::Tcp) if on(mrqc::TCP_IPV6_EX) => {
                (TCP_IPV6_EX, true)
            }
            (NetworkHeaderKind::Ipv6, TransportHeaderKind::Udp) if plain && on(mrqc::UDP_IPV6) => {
                (rss_type::UDP_IPV6, true)
            }
            (NetworkHeaderKind::Ipv6, TransportHeaderKind::Udp) if on(mrqc::UDP_IPV6_EX) => {
                (UDP_IPV6_EX, true)
            }
            (NetworkHeaderKind::Ipv6, _) if plain && on(mrqc::IPV6) => (rss_type::IPV6, false),
            (NetworkHeaderKind::Ipv6, _) if on(mrqc::IPV6_EX) => (IPV6_EX, false),
            (NetworkHeaderKind::Ipv6, _) if on(mrqc::IPV6) => (rss_type::IPV6, false),
            _ => return None,
        };
        Some(choice)
    }
}

/// Returns the addresses of a packet's endpoints: those in its IPv6 header, or the addresses that extension headers put
/// in their place.
fn ends(frame: &[u8], headers: &FrameHeaders) -> [u8; 32] {
    let or = |other: usize, own: usize| if other == 0 { headers.l3_offset + own } else { other };
    let mut ends = [0; 32];
    for (end, at) in ends.chunks_exact_mut(16).zip([or(headers.home, 8), or(headers.routed, 24)]) {
        end.copy_from_slice(frame.get(at..at + 16).unwrap_or(&[0; 16]));
    }
    ends
}
