//! Packet types: numbers by which the card classifies a frame's headers. Drivers look the number up to
//! interpret checksums and hash. The numbers of tunnels, and those that only real cards distinguish, are
//! missing.

use serde::{Deserialize, Serialize};

/// Packet type of an unclassified frame: drivers use neither checksum nor hash.
pub const UNKNOWN: u8 = 0;
/// Packet type of a frame without a header that the card knows.
pub const L2: u8 = 1;
/// Packet type of an ARP packet.
pub const ARP: u8 = 11;

/// Version of a packet's IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "Ip")]
pub enum IpVersion {
    /// IP header of version 4.
    V4,
    /// IP header of version 6.
    V6,
}

/// Payload of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "IpPayload")]
pub enum IpPayloadKind {
    /// Payload that is a fragment of an IP packet.
    Fragment,
    /// Payload of a protocol other than UDP, TCP, SCTP and ICMP.
    Other,
    /// Payload that is a UDP datagram.
    Udp,
    /// Payload that is a TCP segment.
    Tcp,
    /// Payload that is an SCTP packet.
    Sctp,
    /// Payload that is an ICMP message.
    Icmp,
}

const IPV4: u8 = 22;
const IPV6: u8 = 88;

/// Returns the packet type of an IP packet.
#[must_use]
pub const fn ip(ip: IpVersion, payload: IpPayloadKind) -> u8 {
    let base = match ip {
        IpVersion::V4 => IPV4,
        IpVersion::V6 => IPV6,
    };
    base + match payload {
        IpPayloadKind::Fragment => 0,
        IpPayloadKind::Other => 1,
        IpPayloadKind::Udp => 2,
        IpPayloadKind::Tcp => 4,
        IpPayloadKind::Sctp => 5,
        IpPayloadKind::Icmp => 6,
    }
}

/// Returns the IP version and the payload of a packet type, or `None` for a packet type without IP.
#[must_use]
pub const fn parse(packet_type: u8) -> Option<(IpVersion, IpPayloadKind)> {
    let (ip, kind) = match packet_type {
        IPV4..=28 => (IpVersion::V4, packet_type - IPV4),
        IPV6..=94 => (IpVersion::V6, packet_type - IPV6),
        _ => return None,
    };
    let payload = match kind {
        0 => IpPayloadKind::Fragment,
        1 => IpPayloadKind::Other,
        2 => IpPayloadKind::Udp,
        4 => IpPayloadKind::Tcp,
        5 => IpPayloadKind::Sctp,
        6 => IpPayloadKind::Icmp,
        _ => return None,
    };
    Some((ip, payload))
}

/// Returns the bit of a packet type in VFQF_HENA and SET_RSS_HENA, which enables the hash of such packets.
#[must_use]
pub const fn hash_type(ip: IpVersion, payload: IpPayloadKind) -> u64 {
    let base = match ip {
        IpVersion::V4 => 31,
        IpVersion::V6 => 41,
    };
    1 << (base
        + match payload {
            IpPayloadKind::Udp => 0,
            IpPayloadKind::Tcp => 2,
            IpPayloadKind::Sctp => 3,
            IpPayloadKind::Other | IpPayloadKind::Icmp => 4,
            IpPayloadKind::Fragment => 5,
        })
}

/// Bit that enables the hash of frames without IP.
pub const HASH_L2: u64 = 1 << 63;

/// Bits of every packet type that can be hashed.
pub const HASH_TYPES: u64 = {
    let kinds = [
        IpPayloadKind::Udp,
        IpPayloadKind::Tcp,
        IpPayloadKind::Sctp,
        IpPayloadKind::Other,
        IpPayloadKind::Fragment,
    ];
    let (mut all, mut at) = (0, 0);
    while at < kinds.len() {
        all |= hash_type(IpVersion::V4, kinds[at]) | hash_type(IpVersion::V6, kinds[at]);
        at += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [IpPayloadKind; 6] = [
        IpPayloadKind::Fragment,
        IpPayloadKind::Other,
        IpPayloadKind::Udp,
        IpPayloadKind::Tcp,
        IpPayloadKind::Sctp,
        IpPayloadKind::Icmp,
    ];

    #[test]
    fn packet_type_numbers_equal_those_in_the_linux_driver() {
        assert_eq!(ALL.map(|payload| ip(IpVersion::V4, payload)), [22, 23, 24, 26, 27, 28]);
        assert_eq!(ALL.map(|payload| ip(IpVersion::V6, payload)), [88, 89, 90, 92, 93, 94]);
    }

    #[test]
    fn only_packet_type_numbers_of_ip_packets_parse_as_ip() {
        let made: std::vec::Vec<_> = [IpVersion::V4, IpVersion::V6]
            .into_iter()
            .flat_map(|version| ALL.map(|payload| (version, payload)))
            .collect();
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
