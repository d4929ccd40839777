//! Receive-side scaling: the Toeplitz hash of addresses and ports, and the table that turns it into a queue
//! (datasheet 7.1.2.8; the algorithm and its test vectors are Microsoft's).

use super::headers::{Headers, L3, L4};
use crate::file::RegisterFile;
use core::ops::Range;
use i82576::bits::mrqc;
use i82576::descriptor::rx::rss_type;
use i82576::register as r;

/// Bytes of the key.
const KEY: usize = 40;
/// Half-bytes of the longest hash input: two IPv6 addresses and two ports.
const NIBBLES: usize = 72;
/// RSS type: IPv6 with extensions.
const IPV6_EX: u8 = 4;
/// RSS type: TCP over IPv6 with extensions.
const TCP_IPV6_EX: u8 = 6;
/// RSS type: UDP over IPv6 with extensions.
const UDP_IPV6_EX: u8 = 9;

/// A frame's hash and what it was taken over. Not hashed: both zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hash {
    /// The hash.
    pub value: u32,
    /// A number of `rx::rss_type`.
    pub rss_type: u8,
}

/// Key, hash types and redirection table, ready for use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rss {
    types: u32,
    redirection: [u8; 128],
    /// What each value of each half-byte of the input contributes.
    contributions: [[u32; 16]; NIBBLES],
}

impl Rss {
    /// Takes MRQC, RSSRK and RETA from the register file.
    #[must_use]
    pub fn load(file: &RegisterFile) -> Self {
        let mut key = [0; KEY];
        for (bytes, word) in key.chunks_exact_mut(4).zip(0..) {
            bytes.copy_from_slice(&file.get(r::rssrk(word)).to_le_bytes());
        }
        let mut redirection = [0; 128];
        for (entries, word) in redirection.chunks_exact_mut(4).zip(0..) {
            entries.copy_from_slice(&file.get(r::reta(word)).to_le_bytes());
        }
        Self { types: file.get(r::MRQC), redirection, contributions: contributions(&key) }
    }

    /// The hash of a frame whose headers were parsed from the same bytes.
    #[must_use]
    pub fn hash(&self, frame: &[u8], headers: &Headers) -> Hash {
        let Some((rss_type, with_ports)) = self.select(headers) else { return Hash::default() };
        let addresses = match headers.l3 {
            L3::Ipv4 => 12..20,
            _ => 8..40,
        };
        let ports = if with_ports { headers.l4_offset..headers.l4_offset + 4 } else { 0..0 };
        let part = |range: Range<usize>| frame.get(range).unwrap_or_default();
        let start = headers.l3_offset;
        if headers.is_readdressed() && matches!(rss_type, IPV6_EX | TCP_IPV6_EX | UDP_IPV6_EX) {
            let value = self.toeplitz(&ends(frame, headers), part(ports));
            return Hash { value, rss_type };
        }
        let value = self.toeplitz(part(start + addresses.start..start + addresses.end), part(ports));
        Hash { value, rss_type }
    }

    /// The redirection table's entry for a hash: the low four bits name a queue, or within a pool the lowest
    /// bit chooses between its two.
    #[must_use]
    pub fn redirect(&self, hash: u32) -> u8 {
        self.redirection[(hash & 0x7f) as usize] & 0xf
    }

    /// The RSS type by which a frame is hashed, and whether its ports count. The most specific enabled wins.
    fn select(&self, headers: &Headers) -> Option<(u8, bool)> {
        let on = |bit: u32| self.types & bit != 0;
        let plain = !headers.extended;
        let choice = match (headers.l3, headers.l4) {
            (L3::Ipv4, L4::Tcp) if on(mrqc::TCP_IPV4) => (rss_type::TCP_IPV4, true),
            (L3::Ipv4, L4::Udp) if on(mrqc::UDP_IPV4) => (rss_type::UDP_IPV4, true),
            (L3::Ipv4, _) if on(mrqc::IPV4) => (rss_type::IPV4, false),
            (L3::Ipv6, L4::Tcp) if plain && on(mrqc::TCP_IPV6) => (rss_type::TCP_IPV6, true),
            (L3::Ipv6, L4::Tcp) if on(mrqc::TCP_IPV6_EX) => (TCP_IPV6_EX, true),
            (L3::Ipv6, L4::Udp) if plain && on(mrqc::UDP_IPV6) => (rss_type::UDP_IPV6, true),
            (L3::Ipv6, L4::Udp) if on(mrqc::UDP_IPV6_EX) => (UDP_IPV6_EX, true),
            (L3::Ipv6, _) if plain && on(mrqc::IPV6) => (rss_type::IPV6, false),
            (L3::Ipv6, _) if on(mrqc::IPV6_EX) => (IPV6_EX, false),
            (L3::Ipv6, _) if on(mrqc::IPV6) => (rss_type::IPV6, false),
            _ => return None,
        };
        Some(choice)
    }

    fn toeplitz(&self, addresses: &[u8], ports: &[u8]) -> u32 {
        let bytes = addresses.iter().chain(ports);
        bytes.zip(self.contributions.as_chunks::<2>().0).fold(0, |hash, (byte, [high, low])| {
            hash ^ high[usize::from(byte >> 4)] ^ low[usize::from(byte & 0xf)]
        })
    }
}

/// The addresses of a packet's ends: those of its IPv6 header, but for the ones that extensions have instead.
fn ends(frame: &[u8], headers: &Headers) -> [u8; 32] {
    let or = |other: usize, own: usize| if other == 0 { headers.l3_offset + own } else { other };
    let mut ends = [0; 32];
    for (end, at) in ends.chunks_exact_mut(16).zip([or(headers.home, 8), or(headers.routed, 24)]) {
        end.copy_from_slice(frame.get(at..at + 16).unwrap_or(&[0; 16]));
    }
    ends
}

/// Bit `b` of the input (from the most significant of the first byte) contributes key bits `b..b + 32`.
fn contributions(key: &[u8; KEY]) -> [[u32; 16]; NIBBLES] {
    let window = |bit: usize| {
        let bytes: [u8; 8] = core::array::from_fn(|i| key.get(bit / 8 + i).copied().unwrap_or(0));
        (u64::from_be_bytes(bytes) << (bit % 8) >> 32) as u32
    };
    core::array::from_fn(|nibble| {
        core::array::from_fn(|value| {
            let bits = (0..4).filter(|bit| value & (8 >> bit) != 0);
            bits.fold(0, |sum, bit| sum ^ window(4 * nibble + bit))
        })
    })
}
