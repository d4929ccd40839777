//! Frames on which filters are compared with libpcap: every protocol that the language names, with and without tags,
//! labels, PPPoE and Geneve; fragments, options and extension headers; frames that end early, and captures that were
//! truncated.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Captured frame whose length was `length` bytes, of which the capture has `data`.
#[derive(Debug, Clone)]
pub(crate) struct CapturedFrame {
    pub(crate) data: Vec<u8>,
    pub(crate) length: usize,
    /// True if neither the frame nor its capture ends early.
    pub(crate) is_whole: bool,
}

const BROADCAST: [u8; 6] = [0xff; 6];
const UNICAST: [u8; 6] = [2, 0, 0, 0, 0, 9];
const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 1];

fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn to(destination: [u8; 6], kind: u16, payload: &[u8]) -> Vec<u8> {
    join(&[&destination, &SOURCE, &kind.to_be_bytes(), payload])
}

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    to(UNICAST, kind, payload)
}

/// Builds an 802.3 frame with the 802.2 payload `payload`.
fn llc(payload: &[u8]) -> Vec<u8> {
    ethernet(payload.len() as u16, payload)
}

fn snap(organization: [u8; 3], kind: u16, payload: &[u8]) -> Vec<u8> {
    llc(&join(&[&[0xaa, 0xaa, 3], &organization, &kind.to_be_bytes(), payload]))
}

struct Ipv4HeaderFields {
    source: [u8; 4],
    destination: [u8; 4],
    fragment: u16,
    options: &'static [u8],
    ttl: u8,
}

const V4: Ipv4HeaderFields = Ipv4HeaderFields {
    source: [10, 0, 0, 1],
    destination: [10, 0, 0, 2],
    fragment: 0,
    options: &[],
    ttl: 64,
};

fn ipv4(
    protocol: u8,
    payload: &[u8],
    Ipv4HeaderFields { source, destination, fragment, options, ttl }: Ipv4HeaderFields,
) -> Vec<u8> {
    let header = 20 + options.len();
    let length = (header + payload.len()) as u16;
    let start = [0x40 | (header / 4) as u8, 0];
    let middle = [&length.to_be_bytes()[..], &[0, 7], &fragment.to_be_bytes()].concat();
    join(&[&start, &middle, &[ttl, protocol, 0, 0], &source, &destination, options, payload])
}

fn ipv6(next: u8, payload: &[u8], source: &str, destination: &str) -> Vec<u8> {
    let address = |text: &str| text.parse::<Ipv6Addr>().unwrap().octets();
    let length = (payload.len() as u16).to_be_bytes();
    join(&[&[0x60, 0, 0, 0], &length, &[next, 64], &address(source), &address(destination), payload])
}

fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    ipv6(next, payload, "fe80::1", "2001:db8::2")
}

fn tcp(source: u16, destination: u16, flags: u8, payload: &[u8]) -> Vec<u8> {
    let ports = [source.to_be_bytes(), destination.to_be_bytes()].concat();
    join(&[&ports, &[0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 3, 0xe8, 0, 0, 0, 0], payload])
}

fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let words = [source, destination, 8 + payload.len() as u16, 0].map(u16::to_be_bytes).concat();
    join(&[&words, payload])
}

fn arp(operation: u8, source: Ipv4Addr, destination: Ipv4Addr) -> Vec<u8> {
    join(&[&[0, 1, 8, 0, 6, 4, 0, operation], &SOURCE, &source.octets(), &[0; 6], &destination.octets()])
}

fn tag(id: u16, kind: u16, payload: &[u8]) -> Vec<u8> {
    join(&[&id.to_be_bytes(), &kind.to_be_bytes(), payload])
}

/// Returns an MPLS label; `is_last` sets the bottom of the stack.
fn label(number: u32, is_last: bool) -> [u8; 4] {
    (number << 12 | u32::from(is_last) << 8 | 0xff).to_be_bytes()
}

fn pppoe(session: u16, protocol: u16, payload: &[u8]) -> Vec<u8> {
    let length = 2 + payload.len() as u16;
    join(&[&[0x11, 0], &session.to_be_bytes(), &length.to_be_bytes(), &protocol.to_be_bytes(), payload])
}

fn geneve(vni: u32, kind: u16, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let head = [(options.len() / 4) as u8, 0];
    let packet = join(&[&head, &kind.to_be_bytes(), &(vni << 8).to_be_bytes(), options, payload]);
    udp(5000, 6081, &packet)
}

fn of_ipv4() -> Vec<Vec<u8>> {
    let (web, dns) = (tcp(1234, 80, 2, b"GET / HT"), udp(53, 1024, &[7; 20]));
    let text = join(&[b"GET ", &[7; 1400]]);
    let plain = |protocol, payload: &[u8]| ethernet(0x800, &ipv4(protocol, payload, V4));
    let with = |protocol, payload: &[u8], header: Ipv4HeaderFields| {
        ethernet(0x800, &ipv4(protocol, payload, header))
    };
    let between = |source, destination| Ipv4HeaderFields { source, destination, ..V4 };
    let group = |last, protocol, payload: &[u8]| {
        let header = Ipv4HeaderFields { destination: [224, 0, 0, last], ttl: 1, ..V4 };
        to([1, 0, 0x5e, 0, 0, last], 0x800, &ipv4(protocol, payload, header))
    };
    let ip_broadcast = Ipv4HeaderFields { destination: [255; 4], ..V4 };
    let mut frames = vec![
        plain(6, &web),
        plain(17, &dns),
        with(6, &tcp(22, 5000, 0x12, &[]), between([1, 2, 3, 4], [128, 3, 0, 1])),
        with(6, &tcp(443, 6000, 0x11, b"tls"), Ipv4HeaderFields { options: &[1; 12], ..V4 }),
        with(6, &tcp(80, 6000, 0x18, &text), Ipv4HeaderFields { options: &[1; 40], ..V4 }),
        with(17, &udp(67, 68, &[0; 240]), Ipv4HeaderFields { fragment: 0x2000, ..V4 }),
        with(17, &udp(80, 80, &[0; 24]), Ipv4HeaderFields { fragment: 0x20, ..V4 }),
        with(6, &web, Ipv4HeaderFields { fragment: 0x4000, ttl: 5, ..V4 }),
        with(1, b"\x08\0\0\0ping", Ipv4HeaderFields { fragment: 0x2001, ..V4 }),
        plain(1, b"\x08\0\0\0abcdefgh"),
        plain(1, b"\0\0\0\0abcdefgh"),
        plain(1, b"\x03\x01\0\0\0\0\0\0E"),
        plain(132, &tcp(80, 81, 0, &[])),
        plain(51, &join(&[b"\x06\x04\0\0", &[0; 20], &web])),
        plain(50, &[9; 30]),
        plain(41, &v6(6, &web)),
        plain(4, &ipv4(6, &web, V4)),
        plain(47, b"\0\0\x08\0gre"),
        plain(255, &[]),
        with(6, &web, between([192, 168, 1, 7], [192, 168, 1, 255])),
        with(6, &web, between([127, 0, 0, 1], [127, 0, 0, 1])),
        with(6, &tcp(80, 80, 4, &[]), between([10, 0, 0, 2], [10, 0, 0, 1])),
        with(17, &udp(0, 65535, &[]), between([0; 4], [172, 16, 254, 3])),
        to(
            BROADCAST,
            0x800,
            &ipv4(17, &udp(68, 67, &[5; 60]), Ipv4HeaderFields { source: [0; 4], ..ip_broadcast }),
        ),
        plain(17, &udp(80, 9, &[8; 900])),
        plain(9, b"igrp"),
        group(1, 2, b"\x16\0\0\0\xe0\0\0\x01"),
        group(18, 112, &[0x21; 12]),
        group(13, 103, &[0x20; 12]),
        group(5, 89, &[2; 30]),
    ];
    frames.extend(
        [1, 0x10, 0x14, 0x20, 0x40, 0x80, 0xc2, 0].map(|flags| plain(6, &tcp(1000, 2000, flags, b"data"))),
    );
    frames
}

fn of_ipv6() -> Vec<Vec<u8>> {
    let (web, dns) = (tcp(1234, 80, 2, b"GET / HT"), udp(53, 1024, &[7; 20]));
    let icmp = |kind: u8| join(&[&[kind, 0, 0, 0], &[7; 20]]);
    let plain = |next, payload: &[u8]| ethernet(0x86dd, &v6(next, payload));
    vec![
        plain(6, &web),
        plain(17, &dns),
        plain(6, &tcp(22, 22, 0x10, &[])),
        to([0x33, 0x33, 0, 0, 0, 1], 0x86dd, &ipv6(58, &icmp(135), "fe80::1", "ff02::1")),
        plain(58, &icmp(128)),
        plain(58, &icmp(136)),
        plain(44, &join(&[b"\x06\0\0\0\0\0\0\x01", &web])),
        plain(44, &join(&[b"\x11\0\x05\xa0\0\0\0\x01", &dns])),
        plain(0, &join(&[b"\x3a\0\x05\x02\0\0\x01\0", &icmp(143)])),
        plain(60, &join(&[b"\x2b\0\0\0\0\0\0\0", b"\x06\0\0\0\0\0\0\0", &web])),
        plain(43, &join(&[b"\x11\0\0\0\0\0\0\0", &dns])),
        plain(51, &join(&[b"\x06\x04\0\0", &[0; 20], &web])),
        plain(59, &[]),
        plain(132, &tcp(80, 81, 0, &[])),
        plain(103, b"pim"),
        plain(50, &[3; 40]),
        plain(4, &ipv4(6, &web, V4)),
        ethernet(0x86dd, &ipv6(6, &tcp(80, 5, 0x12, &[]), "2001:db8::2", "2001:db8:1::3")),
        ethernet(0x86dd, &ipv6(17, &udp(5, 53, &[]), "::1", "::ffff:10.0.0.1")),
    ]
}

fn behind_tags_and_labels() -> Vec<Vec<u8>> {
    let (web, dns) = (tcp(1234, 80, 2, b"GET / HT"), udp(53, 1024, &[7; 20]));
    let (four, six) = (ipv4(6, &web, V4), v6(17, &dns));
    let ask = arp(1, [10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let one = |id, kind, payload: &[u8]| ethernet(0x8100, &tag(id, kind, payload));
    let labels = |numbers: &[u32], payload: &[u8]| {
        let all = numbers.iter().enumerate().flat_map(|(n, number)| label(*number, n + 1 == numbers.len()));
        all.chain(payload.iter().copied()).collect::<Vec<_>>()
    };
    vec![
        one(100, 0x800, &four),
        one(100, 0x800, &ipv4(17, &dns, V4)),
        one(0x6000 | 200, 0x86dd, &six),
        one(0x1000 | 300, 0x806, &ask),
        one(0, 0x800, &four),
        one(4095, 0x88cc, &[1; 30]),
        one(100, 0x8864, &pppoe(0x27, 0x21, &four)),
        one(100, 0x8847, &labels(&[100], &four)),
        one(7, 4, b"\x42\x42\x03\0"),
        one(100, 0x8100, &tag(200, 0x800, &four)),
        one(300, 0x8100, &tag(100, 0x8100, &tag(5, 0x800, &four))),
        ethernet(0x88a8, &tag(100, 0x8100, &tag(200, 0x800, &ipv4(17, &dns, V4)))),
        ethernet(0x88a8, &tag(100, 0x800, &four)),
        ethernet(0x9100, &tag(7, 0x8100, &tag(8, 0x8100, &tag(9, 0x800, &four)))),
        to([1, 0x80, 0xc2, 0, 0, 0x21], 0x8100, &tag(10, 0x800, &four)),
        ethernet(0x8847, &labels(&[100_000], &four)),
        ethernet(0x8847, &labels(&[100_000, 1024], &ipv4(17, &dns, V4))),
        ethernet(0x8847, &labels(&[16], &six)),
        ethernet(0x8847, &labels(&[1, 2, 3], &four)),
        ethernet(0x8848, &labels(&[16], &four)),
        ethernet(0x8863, b"\x11\x09\0\0\0\x081111"),
        ethernet(0x8864, &pppoe(0x27, 0x21, &four)),
        ethernet(0x8864, &pppoe(0x28, 0x57, &six)),
        ethernet(0x8864, &pppoe(0x27, 0xc021, b"lcp-lcp-lcp")),
        ethernet(0x8864, &pppoe(1, 0x281, &labels(&[100], &four))),
        ethernet(0x800, &ipv4(17, &geneve(42, 0x6558, &[], &ethernet(0x800, &four)), V4)),
        ethernet(0x800, &ipv4(17, &geneve(43, 0x800, &[1, 2, 3, 0], &four), V4)),
        ethernet(0x86dd, &v6(17, &geneve(42, 0x6558, &[0; 8], &one(100, 0x86dd, &six)))),
        ethernet(0x86dd, &v6(17, &geneve(1, 0x86dd, &[], &six))),
    ]
}

fn of_other_types() -> Vec<Vec<u8>> {
    let (web, host) = (tcp(1234, 80, 2, b"GET / HT"), |last| Ipv4Addr::new(10, 0, 0, last));
    let osi = |first: u8, kind: u8| llc(&join(&[b"\xfe\xfe\x03", &[first, 0x1b, 1, 0, kind], &[0; 30]]));
    let other = |kind| ethernet(kind, &[0x61; 46]);
    let decnet = |bytes: &[u8]| ethernet(0x6003, &join(&[&[20, 0], bytes, &[0; 20]]));
    // 10.15, little-endian.
    let node = [0x0f, 0x28];
    let mut frames = vec![
        to(BROADCAST, 0x806, &arp(1, host(1), host(2))),
        ethernet(0x806, &arp(2, host(2), host(1))),
        to(BROADCAST, 0x806, &arp(1, host(7), host(7))),
        ethernet(0x8035, &arp(3, host(1), host(2))),
        to([1, 0x80, 0xc2, 0, 0, 0], 38, &join(&[b"\x42\x42\x03", &[0; 35]])),
        llc(&join(&[b"\xe0\xe0\x03", &[0; 35]])),
        llc(&join(&[b"\xff\xff", &[0; 35]])),
        llc(&join(&[b"\xf0\xf0\x03", &[0; 35]])),
        llc(&join(&[b"\x06\x06\x03", &ipv4(6, &web, V4)])),
        llc(b"\x04\x04\x01\x02zz"),
        llc(b"\x04\x04\x7fzzz"),
        llc(b"\x04\x04\xe3zzz"),
        llc(b"\x04\x04\x05\x01zz"),
        llc(b"\x04\x04\x00\x00zz"),
        osi(0x83, 15),
        osi(0x83, 16),
        osi(0x83, 17),
        osi(0x83, 18),
        osi(0x83, 20),
        osi(0x83, 24),
        osi(0x83, 27),
        osi(0x82, 0),
        osi(0x81, 0),
        snap([8, 0, 7], 0x809b, &[1; 30]),
        snap([0; 3], 0x80f3, &[1; 30]),
        snap([0; 3], 0x800, &ipv4(6, &web, V4)),
        snap([0; 3], 0x8137, &[1; 30]),
        snap([0, 0, 0xc], 0x2000, &[1; 30]),
        decnet(&join(&[&[2], &node, &[1, 4, 0]])),
        decnet(&join(&[&[0x81, 2, 1, 4], &node, &[0]])),
        decnet(&join(&[&[6], &[0; 6], &node, &[0; 6], &[1, 4]])),
        decnet(&join(&[&[0x81, 6], &[0; 6], &[1, 4], &[0; 6], &node])),
    ];
    let kinds = [
        0x6001, 0x6002, 0x6003, 0x6004, 0x6007, 0x8137, 0x809b, 0x80f3, 0x88cc, 0x88f7, 0x88b5, 0x9000,
        0x888e,
    ];
    frames.extend(kinds.map(other));
    frames.extend([
        ethernet(1500, &[1; 60]),
        ethernet(1501, &[1; 60]),
        ethernet(0, &[0; 46]),
        ethernet(0xffff, &[1; 46]),
    ]);
    frames
}

/// Returns all frames: the whole ones first, then frames that end early, and captures that were truncated.
pub(crate) fn all() -> Vec<CapturedFrame> {
    let groups = [of_ipv4(), of_ipv6(), behind_tags_and_labels(), of_other_types()];
    let whole: Vec<_> = groups.into_iter().flatten().collect();
    let mut frames: Vec<_> = whole
        .iter()
        .map(|data| CapturedFrame { data: data.clone(), length: data.len(), is_whole: true })
        .collect();
    let ends =
        [0, 1, 5, 11, 12, 13, 14, 15, 17, 18, 20, 23, 24, 27, 30, 33, 34, 36, 38, 40, 46, 53, 54, 56, 58, 62];
    for (n, data) in whole.iter().enumerate() {
        for end in ends.into_iter().skip(n % 3).step_by(3).filter(|end| *end < data.len()) {
            let length = if n % 2 == 0 { end } else { data.len() };
            frames.push(CapturedFrame { data: data[..end].to_vec(), length, is_whole: false });
        }
    }
    frames
}
