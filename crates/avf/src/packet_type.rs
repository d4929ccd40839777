//! Packet types: the number by which the card classifies a frame's headers. Drivers look it up to interpret
//! checksums and hash. The numbers of tunnels, and those that only real cards distinguish, are missing.

use serde::{Deserialize, Serialize};

/// Packet type of an unclassified frame: drivers use neither checksum nor hash.
pub const UNKNOWN: u8 = 0;
/// Packet type of a frame without a header that the card knows.
pub const L2: u8 = 1;
/// Packet type of an ARP packet.
pub const ARP: u8 = 11;

/// Version of a packet's IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ip {
    /// IP version 4.
    V4,
    /// IP version 6.
    V6,
}

/// Payload of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Payload {
    /// The payload is a fragment.
    Fragment,
    /// The payload is of any other protocol.
    Other,
    /// The payload is a UDP datagram.
    Udp,
    /// The payload is a TCP segment.
    Tcp,
    /// The payload is an SCTP packet.
    Sctp,
    /// The payload is an ICMP message.
    Icmp,
}

const IPV4: u8 = 22;
const IPV6: u8 = 88;

/// Returns the packet type of an IP packet.
#[must_use]
pub const fn ip(ip: Ip, payload: Payload) -> u8 {
    let base = match ip {
        Ip::V4 => IPV4,
        Ip::V6 => IPV6,
    };
    base + match payload {
        Payload::Fragment => 0,
        Payload::Other => 1,
        Payload::Udp => 2,
        Payload::Tcp => 4,
        Payload::Sctp => 5,
        Payload::Icmp => 6,
    }
}

/// Returns the IP version and the payload of a packet type; `None` for other packets.
#[must_use]
pub const fn parse(packet_type: u8) -> Option<(Ip, Payload)> {
    let (ip, kind) = match packet_type {
        IPV4..=28 => (Ip::V4, packet_type - IPV4),
        IPV6..=94 => (Ip::V6, packet_type - IPV6),
        _ => return None,
    };
    let payload = match kind {
        0 => Payload::Fragment,
        1 => Payload::Other,
        2 => Payload::Udp,
        4 => Payload::Tcp,
        5 => Payload::Sctp,
        6 => Payload::Icmp,
        _ => return None,
    };
    Some((ip, payload))
}

/// Returns the bit of VFQF_HENA and of SET_RSS_HENA that enables the hash of such packets.
#[must_use]
pub const fn hash_type(ip: Ip, payload: Payload) -> u64 {
    let base = match ip {
        Ip::V4 => 31,
        Ip::V6 => 41,
    };
    1 << (base
        + match payload {
            Payload::Udp => 0,
            Payload::Tcp => 2,
            Payload::Sctp => 3,
            Payload::Other | Payload::Icmp => 4,
            Payload::Fragment => 5,
        })
}

/// Bit that enables the hash of frames without IP.
pub const HASH_L2: u64 = 1 << 63;

/// Bits of every packet type that can be hashed.
pub const HASH_TYPES: u64 = {
    let kinds = [Payload::Udp, Payload::Tcp, Payload::Sctp, Payload::Other, Payload::Fragment];
    let (mut all, mut at) = (0, 0);
    while at < kinds.len() {
        all |= hash_type(Ip::V4, kinds[at]) | hash_type(Ip::V6, kinds[at]);
        at += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Payload; 6] =
        [Payload::Fragment, Payload::Other, Payload::Udp, Payload::Tcp, Payload::Sctp, Payload::Icmp];

    #[test]
    fn packet_type_numbers_are_those_of_linuxs_table() {
        assert_eq!(ALL.map(|payload| ip(Ip::V4, payload)), [22, 23, 24, 26, 27, 28]);
        assert_eq!(ALL.map(|payload| ip(Ip::V6, payload)), [88, 89, 90, 92, 93, 94]);
    }

    #[test]
    fn only_the_packet_types_of_ip_are_parsed_as_ip() {
        let made: std::vec::Vec<_> =
            [Ip::V4, Ip::V6].into_iter().flat_map(|version| ALL.map(|payload| (version, payload))).collect();
        for pair in &made {
            assert_eq!(parse(ip(pair.0, pair.1)), Some(*pair));
        }
        assert_eq!((0..=255).filter(|number| parse(*number).is_some()).count(), made.len());
    }

    #[test]
    fn hash_types_of_rss_are_the_bits_that_drivers_request() {
        let bits: std::vec::Vec<_> = (0..64).filter(|bit| HASH_TYPES >> bit & 1 == 1).collect();
        assert_eq!(bits, [31, 33, 34, 35, 36, 41, 43, 44, 45, 46]);
    }
}
