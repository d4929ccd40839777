//! Tests receive-side scaling against the vectors that Microsoft publishes ("Verifying the RSS Hash Calculation").

use super::frames::{built, ipv4_frame, ipv4_header, ipv6_frame, link, tcp4, tcp6};
use super::parsed;
use crate::file::RegisterFile;
use crate::offload::rss::{FrameHash, RssSettings};
use alloc::vec::Vec;
use i82576::register as r;
use proptest::prelude::proptest;

const KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0,
    0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42,
    0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];
const EVERY_TYPE: u32 = 0x01ff_0000;

fn rss(types: u32) -> RssSettings {
    let mut file = RegisterFile::new();
    file.set(r::MRQC, types);
    for (word, bytes) in (0..).zip(KEY.chunks(4)) {
        file.set(r::rssrk(word), u32::from_le_bytes(bytes.try_into().unwrap()));
    }
    file.set(r::reta(1), 0x0f03_0201);
    RssSettings::load(&file)
}

fn hash(types: u32, frame: &[u8]) -> FrameHash {
    rss(types).hash(frame, &parsed(frame))
}

fn v4(src: [u8; 4], dst: [u8; 4], ports: (u16, u16)) -> Vec<u8> {
    built!(link().ipv4(src, dst, 64).tcp(ports.0, ports.1, 0, 0), &[])
}

fn v6(src: &str, dst: &str, ports: (u16, u16)) -> Vec<u8> {
    let octets = |text: &str| text.parse::<core::net::Ipv6Addr>().unwrap().octets();
    built!(link().ipv6(octets(src), octets(dst), 64).tcp(ports.0, ports.1, 0, 0), &[])
}

#[test]
fn rss_hash_equals_microsofts_published_ipv4_hashes() {
    for (src, dst, ports, addresses_only, with_ports) in [
        ([66, 9, 149, 187], [161, 142, 100, 80], (2794, 1766), 0x323e_8fc2, 0x51cc_c178),
        ([199, 92, 111, 2], [65, 69, 140, 83], (14230, 4739), 0xd718_262a, 0xc626_b0ea),
        ([24, 19, 198, 95], [12, 22, 207, 184], (12898, 38024), 0xd2d0_a5de, 0x5c2b_394a),
        ([38, 27, 205, 30], [209, 142, 163, 6], (48228, 2217), 0x8298_9176, 0xafc7_327f),
        ([153, 39, 163, 191], [202, 188, 127, 2], (44251, 1303), 0x5d18_09c5, 0x10e8_28a2),
    ] {
        let frame = v4(src, dst, ports);
        assert_eq!(hash(1 << 17, &frame), FrameHash { value: addresses_only, rss_type: 2 });
        assert_eq!(hash(EVERY_TYPE, &frame), FrameHash { value: with_ports, rss_type: 1 });
    }
}

#[test]
fn rss_hash_equals_microsofts_published_ipv6_hashes() {
    for (src, dst, ports, addresses_only, with_ports) in [
        ("3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1", (2794, 1766), 0x2cc1_8cd5, 0x4020_7d3d),
        ("3ffe:501:8::260:97ff:fe40:efab", "ff02::1", (14230, 4739), 0x0f0c_461c, 0xdde5_1bbf),
        (
            "3ffe:1900:4545:3:200:f8ff:fe21:67cf",
            "fe80::200:f8ff:fe21:67cf",
            (44251, 38024),
            0x4b61_e985,
            0x02d1_feef,
        ),
    ] {
        let frame = v6(src, dst, ports);
        assert_eq!(hash(1 << 20, &frame), FrameHash { value: addresses_only, rss_type: 5 });
        assert_eq!(hash(EVERY_TYPE, &frame), FrameHash { value: with_ports, rss_type: 3 });
    }
}

#[test]
fn rss_hashes_an_ip_fragment_by_addresses_only() {
    let fragment = ipv4_frame(ipv4_header(6, 0), &[], 8, &[0; 20]);
    assert_eq!(hash(EVERY_TYPE, &fragment).rss_type, 2);
}

#[test]
fn ipv6_extension_headers_select_the_ex_rss_types() {
    let udp = ipv6_frame(60, &[17, 0, 1, 4, 0, 0, 0, 0, 0, 1, 0, 2, 0, 8, 0, 0]);
    assert_eq!(hash(EVERY_TYPE, &udp).rss_type, 9);
    assert_eq!(hash(1 << 23 | 1 << 19 | 1 << 20, &udp).rss_type, 4);
    assert_eq!(hash(1 << 23 | 1 << 20, &udp).rss_type, 5, "by its addresses, if no extended type is enabled");
    let segment = &tcp6(&[])[54..];
    let tcp = ipv6_frame(60, &[&[6, 0, 1, 4, 0, 0, 0, 0], segment].concat());
    assert_eq!(hash(EVERY_TYPE, &tcp).rss_type, 6);
    assert_eq!(hash(1 << 21 | 1 << 19 | 1 << 20, &tcp).rss_type, 4);
}

#[test]
fn rss_skips_disabled_types_and_frames_without_ip() {
    assert_eq!(hash(0, &tcp4(&[])), FrameHash::default());
    assert_eq!(hash(EVERY_TYPE ^ 0x0003_0000, &tcp4(&[])), FrameHash::default());
    assert_eq!(hash(EVERY_TYPE, &[0; 60]), FrameHash::default());
}

#[test]
fn low_seven_hash_bits_index_the_rss_redirection_table() {
    let rss = rss(0);
    assert_eq!([0, 4, 5, 6, 7, 8].map(|hash| rss.redirect(0xffff_ff80 | hash)), [0, 1, 2, 3, 15, 0]);
}

proptest! {
    #[test]
    fn rss_hash_of_arbitrary_bytes_does_not_panic(frame: Vec<u8>, types: u32) {
        hash(types, &frame);
    }
}

/// Returns an IPv6 packet with a home address option, a routing header of type 2, and TCP.
fn readdressed(src: &str, dst: &str, home: &str, routed: &str, ports: (u16, u16)) -> Vec<u8> {
    let octets = |text: &str| text.parse::<core::net::Ipv6Addr>().unwrap().octets();
    let options = [&[43, 2, 1, 2, 0, 0, 0xc9, 16][..], &octets(home)].concat();
    let routing = [&[6, 2, 2, 1, 0, 0, 0, 0][..], &octets(routed)].concat();
    let mut tcp = [0; 20];
    tcp[..2].copy_from_slice(&ports.0.to_be_bytes());
    tcp[2..4].copy_from_slice(&ports.1.to_be_bytes());
    tcp[12] = 0x50;
    let mut frame = ipv6_frame(60, &[&options[..], &routing, &tcp].concat());
    frame[22..38].copy_from_slice(&octets(src));
    frame[38..54].copy_from_slice(&octets(dst));
    frame
}

#[test]
fn rss_ipv6_ex_types_hash_home_and_routing_addresses() {
    // The first of the published vectors, whose addresses are in the extensions.
    let (home, routed) = ("3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1");
    let frame = readdressed("fd00::1", "fd00::2", home, routed, (2794, 1766));
    assert_eq!(hash(1 << 18, &frame), FrameHash { value: 0x4020_7d3d, rss_type: 6 });
    assert_eq!(hash(1 << 19, &frame), FrameHash { value: 0x2cc1_8cd5, rss_type: 4 });
    // Every other type hashes what the IPv6 header says.
    let plain = v6("fd00::1", "fd00::2", (2794, 1766));
    assert_eq!(hash(1 << 20, &frame), hash(1 << 20, &plain));
}
