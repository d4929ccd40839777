//! The text of a capture filter, compiled and applied to a frame.
//!
//! The first byte is the length of the text, whose bytes above ASCII are words of the language; the rest is the frame.
//! Checked: no panic, and the same choice for the same frame.
#![cfg_attr(not(test), no_main)]

use capture_filter::{Filter, NameDatabases};
use softiov_fuzz::{FuzzerInput, text};
use std::sync::LazyLock;

softiov_fuzz::target!(run);

const WORDS: [&str; 64] = [
    " and ",
    " or ",
    "not ",
    "(",
    ")",
    "host ",
    "net ",
    "port ",
    "portrange ",
    "src ",
    "dst ",
    "ether ",
    "ip ",
    "ip6 ",
    "arp ",
    "rarp ",
    "tcp ",
    "udp ",
    "sctp ",
    "icmp ",
    "icmp6 ",
    "igmp ",
    "proto ",
    "protochain ",
    "broadcast ",
    "multicast ",
    "vlan ",
    "mpls ",
    "pppoes ",
    "geneve ",
    "vxlan ",
    "len ",
    "less ",
    "greater ",
    "gateway ",
    "mask ",
    "10.0.0.1 ",
    "fe80::1 ",
    "10.0.0.0/8 ",
    "02:00:00:00:00:01 ",
    "80 ",
    "0x800 ",
    "ip[",
    "ether[",
    "tcp[",
    "udp[",
    "ip6[",
    "icmp[",
    "]",
    ":2] ",
    " & ",
    " | ",
    " << ",
    " >> ",
    " = ",
    " != ",
    " > ",
    " <= ",
    "http ",
    "llc ",
    "stp ",
    "atalk ",
    "iso ",
    "isis ",
];

static NAMES: LazyLock<NameDatabases> =
    LazyLock::new(|| NameDatabases::new("http 80/tcp www\ndomain 53/udp\n", "tcp 6 TCP\nospf 89 OSPF\n"));

fn run(data: &[u8]) {
    let mut input = FuzzerInput(data);
    let [length] = input.array().unwrap_or_default();
    let filter = text(input.bytes(length.into()), &WORDS);
    let Ok(filter) = Filter::compile(&filter, &NAMES) else { return };
    let frame = input.0;
    let selects = filter.selects(frame, frame.len());
    assert_eq!(filter.clone().selects(frame, frame.len()), selects);
    let _ = filter.selects(&frame[..frame.len() / 2], frame.len());
}
