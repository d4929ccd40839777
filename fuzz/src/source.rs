//! Reads a frame as its receiver does, with a parser that is not the product's, and finds what it claims that the policy of its
//! sender forbids.

use crate::stations::{ipv4, ipv6};
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};
use units::MacAddress;

/// ICMPv6 types that a station without an address sends: multicast listener messages, router and neighbour solicitations.
const WITHOUT_ADDRESS: [u8; 5] = [131, 132, 143, 133, 135];

/// Policy of a VF for the sources of its frames.
pub struct SourcePolicy<'a> {
    /// Number of the VF, which selects its IP addresses.
    pub vf: u8,
    /// True if the VF sends from its own IP addresses only.
    pub ips: bool,
    /// True if the VF is no DHCP server and no router.
    pub no_server: bool,
    /// Tells whether an Ethernet address is the VF's.
    pub owns: &'a dyn Fn(MacAddress) -> bool,
}

impl SourcePolicy<'_> {
    fn has_ipv4(&self, address: [u8; 4]) -> bool {
        address == ipv4(self.vf)
    }

    /// Returns true for the VF's own address, and for the link-local ones of its Ethernet addresses.
    fn has_ipv6(&self, address: [u8; 16]) -> bool {
        let [head @ .., a, b, c, 0xff, 0xfe, d, e, f] = address else { return address == ipv6(self.vf) };
        let link_local = head == [0xfe, 0x80, 0, 0, 0, 0, 0, 0];
        address == ipv6(self.vf) || link_local && (self.owns)(MacAddress([a ^ 2, b, c, d, e, f]))
    }

    /// Returns what a frame claims although the policy forbids it, or `None`. Frames that a receiver cannot read claim nothing.
    #[must_use]
    pub fn violation(&self, frame: &[u8]) -> Option<&'static str> {
        let (kind, packet) = payload(frame.get(12..)?)?;
        if self.ips && !matches!(kind, 0x0800 | 0x86dd | 0x0806 | 0x8035) {
            return Some("another protocol than IP and ARP");
        }
        let kind = if kind == 0x8035 { 0x0806 } else { kind };
        let sliced = LaxSlicedPacket::from_ether_type(EtherType(kind), packet);
        match &sliced.net? {
            LaxNetSlice::Arp(arp) => {
                let ip = <[u8; 4]>::try_from(arp.sender_protocol_addr()).ok();
                let own = MacAddress::from_slice(arp.sender_hw_addr()).is_some_and(|mac| (self.owns)(mac));
                let right = own && ip.is_some_and(|ip| self.has_ipv4(ip) || ip == [0; 4]);
                (self.ips && !right).then_some("the sender of ARP")
            }
            LaxNetSlice::Ipv4(ip) => {
                let (header, payload) = (ip.header(), ip.payload().payload);
                let first = header.protocol().0 == 17 && header.fragments_offset().value() == 0;
                let ports = first.then(|| ports(payload)).flatten();
                if self.no_server && ports.is_some_and(|(from, to)| from == 67 || to == 68) {
                    return Some("a DHCP server's answer");
                }
                let asks = header.source() == [0; 4] && ports == Some((68, 67));
                (self.ips && !self.has_ipv4(header.source()) && !asks).then_some("the source of IPv4")
            }
            LaxNetSlice::Ipv6(ip) => self.ipv6_violation(ip.header().source(), sliced.transport.as_ref()),
        }
    }

    fn ipv6_violation(
        &self,
        source: [u8; 16],
        transport: Option<&TransportSlice<'_>>,
    ) -> Option<&'static str> {
        let (mut kind, mut target) = (None, None);
        match transport {
            Some(TransportSlice::Udp(udp)) => {
                let server = udp.source_port() == 547 || udp.destination_port() == 546;
                if self.no_server && server {
                    return Some("a DHCPv6 server's answer");
                }
            }
            Some(TransportSlice::Icmpv6(message)) => {
                kind = Some(message.type_u8());
                target = message.slice().get(8..24).and_then(|target| target.first_chunk::<16>());
            }
            _ => {}
        }
        if self.no_server && matches!(kind, Some(134 | 137)) {
            return Some("a router's message");
        }
        if !self.ips {
            return None;
        }
        let may_lack = source == [0; 16] && kind.is_none_or(|kind| WITHOUT_ADDRESS.contains(&kind));
        let claims = kind == Some(136) || kind == Some(135) && source == [0; 16];
        if !may_lack && !self.has_ipv6(source) {
            return Some("the source of IPv6");
        }
        (claims && target.is_some_and(|target| !self.has_ipv6(*target)))
            .then_some("the target of neighbour discovery")
    }
}

/// Returns the ether type and the packet of a frame without its addresses, behind tags and SNAP headers.
fn payload(mut rest: &[u8]) -> Option<(u16, &[u8])> {
    loop {
        let (kind, behind) = rest.split_first_chunk::<2>()?;
        rest = match u16::from_be_bytes(*kind) {
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => behind.get(2..)?,
            0..=1500 => behind.strip_prefix(&[0xaa, 0xaa, 3, 0, 0, 0])?,
            kind => return Some((kind, behind)),
        };
    }
}

/// Returns the source and the destination port at the start of a datagram.
fn ports(datagram: &[u8]) -> Option<(u16, u16)> {
    let [a, b, c, d] = *datagram.first_chunk()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

#[cfg(test)]
mod tests {
    use super::SourcePolicy;
    use crate::FuzzerInput;
    use crate::stations::{address, frame};

    /// Returns what the frame of an input claims although VF 1 with all guards must not.
    fn claimed(input: &[u8]) -> Option<&'static str> {
        let owns = |mac| mac == address(1);
        let policy = SourcePolicy { vf: 1, ips: true, no_server: true, owns: &owns };
        policy.violation(&frame(&mut FuzzerInput(input), address(1), address(5)).expect("a whole frame"))
    }

    #[test]
    fn own_addresses_in_all_kinds_of_frames_are_allowed() {
        for input in [
            [0, 1, 1, 0],
            [1, 1, 1, 0],
            [2, 1, 1, 0],
            [3, 15, 1, 0],
            [6, 15, 1, 0],
            [8, 17, 1, 0],
            [10, 1, 1, 1],
        ] {
            assert_eq!(claimed(&input), None, "{input:?}");
        }
    }

    #[test]
    fn addresses_of_others_are_found_in_all_kinds_of_frames() {
        for (input, expected) in [
            ([0, 5, 1, 0], "the sender of ARP"),
            ([16, 1, 5, 4], "the sender of ARP"),
            ([2, 1, 5, 8], "the target of neighbour discovery"),
            ([3, 15, 5, 0], "the target of neighbour discovery"),
            ([4, 1, 1, 16], "a router's message"),
            ([5, 1, 1, 1], "a DHCP server's answer"),
            ([7, 1, 1, 2], "a DHCPv6 server's answer"),
            ([8, 21, 1, 3], "the source of IPv6"),
            ([10, 5, 1, 3], "the source of IPv4"),
            ([9, 0, 7, 0], "another protocol than IP and ARP"),
        ] {
            assert_eq!(claimed(&input), Some(expected), "{input:?}");
        }
    }
}
