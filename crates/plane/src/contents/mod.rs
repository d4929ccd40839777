//! Guards of a frame's contents: DHCP servers, routers, and the source of IP, ARP and neighbour discovery. Every loop is
//! bounded, and headers that cannot be read are refused: a receiver may read them otherwise.

mod ipv6;
mod link;
mod reason;
mod source;

pub use reason::{GuardCounts, GuardReason};

use crate::bytes::be16;
use ipv6::{HEADER, UpperLayer, upper_layer};
use link::{LinkPayload, is_tag, payload};
use source::SourceGuard;
use units::{IpPrefix, MacAddress};

/// UDP ports of DHCP servers and clients (RFC 2131), and of DHCPv6 servers and clients (RFC 8415).
const DHCP: (u16, u16) = (67, 68);
const DHCPV6: (u16, u16) = (547, 546);
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
/// Types of ICMPv6 messages of routers: advertisement and redirect (RFC 4861).
const ROUTER: [u8; 2] = [134, 137];

/// Rules for the contents of a port's frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContentRules<'a> {
    pub(crate) dhcp_guard: bool,
    pub(crate) router_guard: bool,
    pub(crate) ips: Option<&'a [IpPrefix]>,
}

/// Returns `true` if a frame has a VLAN tag at an offset.
pub(crate) fn has_tag(frame: &[u8], at: usize) -> bool {
    be16(frame, at).is_some_and(is_tag)
}

/// Returns the reason to drop a frame whose ether type is at the offset `at`. `owns` tells whether an Ethernet address is
/// the sender's.
pub(crate) fn violation(
    frame: &[u8],
    at: usize,
    rules: ContentRules<'_>,
    owns: impl Fn(MacAddress) -> bool,
) -> Option<GuardReason> {
    let guard = rules.ips.map(|ips| SourceGuard { ips, owns: &owns });
    match payload(frame, at) {
        LinkPayload::Unreadable => Some(GuardReason::Unreadable),
        LinkPayload::Packet(0x0800, start) => ipv4(&frame[start..], rules, guard),
        LinkPayload::Packet(0x86dd, start) => ipv6_packet(&frame[start..], rules, guard),
        LinkPayload::Packet(kind @ (0x0806 | 0x8035), start) => {
            let packet = frame.get(start..start + 28).and_then(|packet| packet.first_chunk());
            let right = |guard: SourceGuard<'_>| {
                packet.is_some_and(|packet| guard.admits_arp(packet, kind == 0x8035))
            };
            guard.filter(|guard| !right(*guard)).map(|_| GuardReason::SourceArp)
        }
        LinkPayload::Packet(..) | LinkPayload::Llc => guard.map(|_| GuardReason::Protocol),
    }
}

/// Returns the source and the destination port of a UDP header.
fn ports(packet: &[u8], start: usize) -> Option<(u16, u16)> {
    Some((be16(packet, start)?, be16(packet, start + 2)?))
}

fn is_of_server((from, to): (u16, u16), (server, client): (u16, u16)) -> bool {
    // Clients take answers from any port.
    from == server || to == client
}

fn ipv4(packet: &[u8], rules: ContentRules<'_>, guard: Option<SourceGuard<'_>>) -> Option<GuardReason> {
    let Some(header) = packet.first_chunk::<20>().filter(|header| matches!(header[0], 0x45..=0x4f)) else {
        return Some(GuardReason::Unreadable);
    };
    let (place, start) = (u16::from_be_bytes([header[6], header[7]]), usize::from(header[0] & 15) * 4);
    let mut asks = false;
    if header[9] == UDP && place & 0x1fff == 0 {
        let Some(ports) = ports(packet, start) else { return Some(GuardReason::Unreadable) };
        if rules.dhcp_guard && is_of_server(ports, DHCP) {
            return Some(GuardReason::DhcpServer);
        }
        asks = ports == (DHCP.1, DHCP.0) && place & 0x2000 == 0 && header[16..] == [0xff; 4];
    }
    let [.., a, b, c, d, _, _, _, _] = *header;
    guard.filter(|guard| !guard.admits_ipv4([a, b, c, d], asks)).map(|_| GuardReason::SourceIp)
}

fn ipv6_packet(
    packet: &[u8],
    rules: ContentRules<'_>,
    guard: Option<SourceGuard<'_>>,
) -> Option<GuardReason> {
    let Some(header) = packet.first_chunk::<HEADER>().filter(|header| header[0] >> 4 == 6) else {
        return Some(GuardReason::Unreadable);
    };
    let length = HEADER + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let packet = &packet[..length.min(packet.len())];
    let mut message = None;
    match upper_layer(packet) {
        UpperLayer::Unreadable => return Some(GuardReason::Unreadable),
        UpperLayer::LaterFragment => {}
        UpperLayer::Header { protocol: UDP, start, .. } if rules.dhcp_guard => match ports(packet, start) {
            None => return Some(GuardReason::Unreadable),
            Some(ports) if is_of_server(ports, DHCPV6) => return Some(GuardReason::DhcpServer),
            Some(_) => {}
        },
        UpperLayer::Header { protocol: ICMPV6, start, fragmented } => {
            let Some(kind) = packet.get(start) else { return Some(GuardReason::Unreadable) };
            if rules.router_guard && ROUTER.contains(kind) {
                return Some(GuardReason::Router);
            }
            message = Some((&packet[start..], fragmented));
        }
        UpperLayer::Header { .. } => {}
    }
    guard.and_then(|guard| guard.refuses_ipv6(header, message))
}
