//! Frames by which stations and guests claim addresses: announcements, ARP, neighbour discovery, DHCP and routers, each with
//! sources that the fuzzer chooses.

use crate::FuzzerInput;
use units::MacAddress;

/// Number of addresses that stations and guests use, and claim from each other.
pub const ADDRESSES: u8 = 16;
/// Address of the host, which no guest may claim.
pub const HOST: MacAddress = MacAddress([2, 0, 0, 0, 0, 12]);
/// UDP ports of DHCP and DHCPv6: server and client.
const DHCP: [u16; 2] = [67, 68];
const DHCPV6: [u16; 2] = [547, 546];

/// Returns address `n` of [`ADDRESSES`]. VF n has address n by policy. The last ones are the host's, a virtual router's, a group's
/// and none.
#[must_use]
pub fn address(n: u8) -> MacAddress {
    match n % ADDRESSES {
        13 => MacAddress([0, 0, 0x5e, 0, 1, 9]),
        14 => MacAddress([3, 0, 0, 0, 0, 1]),
        15 => MacAddress::ZERO,
        n => MacAddress([2, 0, 0, 0, 0, n]),
    }
}

/// Returns the destination that a byte selects: an address, all nodes by IPv6, or all stations.
#[must_use]
pub fn destination(n: u8) -> MacAddress {
    match n >> 4 & 3 {
        1 => MacAddress::BROADCAST,
        2 => MacAddress([0x33, 0x33, 0, 0, 0, 1]),
        _ => address(n),
    }
}

/// Returns the IPv4 address of VF or station `n`; 15 is none.
#[must_use]
pub fn ipv4(n: u8) -> [u8; 4] {
    if n % ADDRESSES == 15 { [0; 4] } else { [10, 0, 0, n % ADDRESSES] }
}

/// Returns the IPv6 address of VF or station `n`: one of a prefix, the link-local one of [`address`]`(n)` from 16 on, or none for
/// 15.
#[must_use]
pub fn ipv6(n: u8) -> [u8; 16] {
    let MacAddress([a, b, c, d, e, f]) = address(n);
    match n & 0x1f {
        15 => [0; 16],
        n @ 0..16 => [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n],
        _ => [0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f],
    }
}

/// Takes the next frame of a station or a guest from the input: a kind, the addresses that it names as its sender's, and how its
/// headers are hidden or damaged. Returns `None` at the end of the input.
pub fn frame(input: &mut FuzzerInput<'_>, from: MacAddress, to: MacAddress) -> Option<Vec<u8>> {
    let [kind, who, named, twist] = input.array()?;
    let own = if twist & 4 == 0 { from } else { address(named) };
    let (ethertype, packet) = match kind & 15 {
        0 => (0x0806, arp(1 + (kind >> 4 & 1), own, ipv4(who))),
        1 => (0x8035, arp(3, own, ipv4(who))),
        2 => (0x86dd, ipv6_packet(who, twist, 58, &neighbor(136, ipv6(named), 2, own))),
        3 => (0x86dd, ipv6_packet(who, twist, 58, &neighbor(135, ipv6(named), 1, own))),
        4 => (0x86dd, ipv6_packet(who | 16, twist, 58, &router(134 + 3 * (kind >> 4 & 1), own))),
        5 => (0x0800, ipv4_packet(who, twist, &udp(DHCP))),
        6 => (0x0800, ipv4_packet(who, twist, &udp([DHCP[1], DHCP[0]]))),
        7 => (0x86dd, ipv6_packet(who, twist, 17, &udp(DHCPV6))),
        8 => (0x86dd, ipv6_packet(who, twist, 17, &udp([5_000, 53]))),
        9 => (u16::from_be_bytes([8, named]), input.bytes(usize::from(who)).to_vec()),
        _ => (0x0800, ipv4_packet(who, twist, &udp([5_000, 53]))),
    };
    let mut frame =
        [&to.0[..], &from.0, &link(twist, packet.len() + 8), &ethertype.to_be_bytes(), &packet].concat();
    if twist & 0x80 != 0 {
        // The addresses stay: others would be unknown to the checks.
        let [at, bits] = input.array()?;
        let place = 12 + usize::from(at) % (frame.len() - 12);
        frame[place] ^= bits;
    }
    Some(frame)
}

/// Returns the bytes between the addresses and the ether type: VLAN tags, or a SNAP header of a frame with `length` bytes.
fn link(twist: u8, length: usize) -> Vec<u8> {
    match twist & 3 {
        0 => vec![],
        1 => vec![0x81, 0, 0, 7],
        2 => vec![0x88, 0xa8, 0, 7, 0x81, 0, 0, 9],
        _ => [&(length as u16).to_be_bytes()[..], &[0xaa, 0xaa, 3, 0, 0, 0]].concat(),
    }
}

/// Returns an ARP or RARP packet from an Ethernet and an IPv4 address.
fn arp(operation: u8, own: MacAddress, ip: [u8; 4]) -> Vec<u8> {
    [&[0, 1, 8, 0, 6, 4, 0, operation][..], &own.0, &ip, &[0; 6], &[10, 0, 0, 1]].concat()
}

/// Returns a neighbour solicitation or advertisement of a target, with an option that has an Ethernet address.
fn neighbor(kind: u8, target: [u8; 16], option: u8, own: MacAddress) -> Vec<u8> {
    [&[kind, 0, 0, 0, 0x60, 0, 0, 0][..], &target, &[option, 1], &own.0].concat()
}

/// Returns a router advertisement or a redirect, with the sender's Ethernet address.
fn router(kind: u8, own: MacAddress) -> Vec<u8> {
    let rest = if kind == 137 { 36 } else { 12 };
    [&[kind, 0, 0, 0][..], &vec![1; rest], &[1, 1], &own.0].concat()
}

/// Returns a UDP datagram from one port to another.
fn udp([from, to]: [u16; 2]) -> Vec<u8> {
    [&from.to_be_bytes()[..], &to.to_be_bytes(), &[0, 28, 0, 0], &[7; 20]].concat()
}

/// Returns a UDP packet of an IPv4 sender, with options or as a fragment.
fn ipv4_packet(who: u8, twist: u8, payload: &[u8]) -> Vec<u8> {
    let options = if twist & 8 == 0 { 0 } else { 4 };
    let place = [0x4000_u16, 0x4000, 0x2000, 0x2001][usize::from(twist >> 4 & 3)];
    let length = (20 + options + payload.len()) as u16;
    let to = if twist & 0x40 == 0 { [0xff; 4] } else { [10, 0, 0, 2] };
    let [first, second] = place.to_be_bytes();
    let head =
        [0x45 + (options / 4) as u8, 0, (length >> 8) as u8, length as u8, 0, 1, first, second, 64, 17, 0, 0];
    [&head[..], &ipv4(who), &to, &vec![1; options], payload].concat()
}

/// Returns a packet of an IPv6 sender, behind extension headers or as a fragment.
fn ipv6_packet(who: u8, twist: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let (first, extension): (u8, &[u8]) = match twist >> 3 & 7 {
        1 => (0, &[protocol, 0, 1, 4, 0, 0, 0, 0]),
        2 => (60, &[60, 0, 1, 4, 0, 0, 0, 0, protocol, 0, 1, 4, 0, 0, 0, 0]),
        3 => (44, &[protocol, 0, 0, 1, 0, 0, 0, 9]),
        4 => (44, &[protocol, 0, 0, 0, 0, 0, 0, 9]),
        _ => (protocol, &[]),
    };
    let length = ((extension.len() + payload.len()) as u16).to_be_bytes();
    let all = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    [&[0x60, 0, 0, 0][..], &length, &[first, 255], &ipv6(who), &all, extension, payload].concat()
}
