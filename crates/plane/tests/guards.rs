//! Guards of frames: what a receiver reads as a forged source, a DHCP server or a router never passes.

use plane::frame::{Frame, HEADROOM};
use plane::guard::{GuardReason, GuardedPlane, PortGuard};
use plane::pacing::TransmitPacing;
use plane::switch::{StormState, SwitchDropReason, SwitchTables, TagInsertion};
use plane::{
    DeliveryError, DeliveryFlags, ForwardingPlane, FrameOrigin, FrameSink, PortCounters, PortIndex, PortSet,
    UnpluggedWire,
};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use units::MacAddress;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 9];
/// Group that [`PORT`] has a filter for.
const GROUP: [u8; 6] = [3, 0, 0, 0, 0, 1];
const PORT: PortIndex = PortIndex::of_field(1);
/// Link-local address that follows from [`MAC`].
const LOCAL: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 1];
const LISTED: [u8; 16] = [0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5];
const FOREIGN: [u8; 16] = [0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5];

/// Takes every frame.
struct TakingSink;

impl FrameSink for TakingSink {
    type Findings = ();

    fn deliver(
        &mut self,
        _: PortIndex,
        frame: &mut Frame<'_>,
        _: DeliveryFlags,
        (): &mut (),
    ) -> Result<usize, DeliveryError> {
        Ok(frame.length())
    }
}

/// Returns the reason of a guard to drop a frame of port 1, whose address is [`MAC`].
fn dropped(guard: PortGuard, port_vlan: bool, bytes: &[u8]) -> Option<GuardReason> {
    let all = PortSet::new(0xff);
    let mut tables = SwitchTables::<8>::closed(4);
    (tables.shared, tables.replicate, tables.loopback) = (true, true, true);
    (tables.all, tables.enabled, tables.guests, tables.check_source) = (all, all, all, all);
    (tables.untagged, tables.broadcast) = (all, all);
    [MAC, GROUP].into_iter().for_each(|mac| tables.exact.add(MacAddress(mac), PORT.only()));
    if port_vlan {
        tables.tags[1] = TagInsertion::Always(100);
    }
    let (pacing, storm) = (TransmitPacing::new(None), StormState::default());
    let mut plane = ForwardingPlane::new(tables, pacing, storm, [PortCounters::default(); 8]);
    plane.set_guards(&[PortGuard::default(), guard], &[], 1);
    let mut buffer = [&[0; HEADROOM], bytes].concat();
    let mut frame = Frame::new(&mut buffer).unwrap();
    frame.take_tag();
    frame.tag = plane.tables().transmit_tag(PORT, frame.tag);
    let result = plane.forward(FrameOrigin::Port(PORT), &mut frame, &mut TakingSink, &mut UnpluggedWire);
    let reason = match result.refused {
        Some(SwitchDropReason::Guarded(reason)) => Some(reason),
        None => None,
        other => panic!("{other:?}"),
    };
    assert_eq!(plane.guarded_frames(PORT).iter().sum::<u64>(), u64::from(reason.is_some()));
    reason
}

fn ips() -> PortGuard {
    let ips = ["10.0.0.5", "fd00:1::/64"].map(|text| text.parse().unwrap());
    PortGuard { ips: Some(ips.into()), ..PortGuard::default() }
}

fn servers() -> PortGuard {
    PortGuard { dhcp_guard: true, router_guard: true, ..PortGuard::default() }
}

/// Returns a frame of [`MAC`] with a link header and a packet.
fn frame(link: &[u8], packet: &[u8]) -> Vec<u8> {
    let mut frame = [&[0xff; 6][..], &MAC, link, packet].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

fn ipv4(source: [u8; 4], to: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len() as u16).to_be_bytes();
    let head = [0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, protocol, 0, 0];
    [&head[..], &source, &to, payload].concat()
}

fn udp(from: u16, to: u16) -> Vec<u8> {
    [&from.to_be_bytes()[..], &to.to_be_bytes(), &[0, 8, 0, 0]].concat()
}

fn ipv6(source: [u8; 16], next: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16).to_be_bytes();
    [
        &[0x60, 0, 0, 0, length[0], length[1], next, 255][..],
        &source,
        &[0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        payload,
    ]
    .concat()
}

fn neighbor(kind: u8, target: [u8; 16], option: &[u8]) -> Vec<u8> {
    [&[kind, 0, 0, 0, 0, 0, 0, 0][..], &target, option].concat()
}

fn arp(hardware: [u8; 6], protocol: [u8; 4], operation: u8) -> Vec<u8> {
    [&[0, 1, 8, 0, 6, 4, 0, operation][..], &hardware, &protocol, &[0; 6], &[10, 0, 0, 1]].concat()
}

/// Link headers that receivers read up to the ether type: tags, also of VLAN 0, and SNAP.
fn link_headers() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just(vec![0x81, 0, 0, 0]),
        Just(vec![0x88, 0xa8, 0, 7]),
        Just(vec![0, 60, 0xaa, 0xaa, 3, 0, 0, 0]),
    ];
    proptest::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
}

/// Chains of extension headers before an upper-layer header: the type of the first, and the bytes of all.
fn chains(last: u8) -> impl Strategy<Value = (u8, Vec<u8>)> {
    let one = prop_oneof![Just(0u8), Just(43), Just(60), Just(44), Just(135)];
    proptest::collection::vec((one, 0usize..3), 0..10).prop_map(move |headers| {
        let kinds: Vec<u8> = headers.iter().map(|(kind, _)| *kind).chain([last]).collect();
        let mut bytes = Vec::new();
        for ((kind, units), next) in headers.iter().zip(&kinds[1..]) {
            let units = if *kind == 44 { 0 } else { *units };
            bytes.extend([*next, if *kind == 44 { 0 } else { units as u8 }, 0, 0, 0, 0, 0, 0]);
            bytes.extend(vec![0; units * 8]);
        }
        (kinds[0], bytes)
    })
}

proptest! {
    #[test]
    fn no_router_advertisement_passes_the_router_guard(link in link_headers(), (first, chain) in chains(58), kind in prop_oneof![Just(134u8), Just(137)]) {
        let packet = ipv6(LOCAL, first, &[&chain[..], &[kind], &[0; 40]].concat());
        assert!(dropped(servers(), false, &frame(&[&link[..], &[0x86, 0xdd]].concat(), &packet)).is_some());
    }

    #[test]
    fn no_dhcp_server_passes_the_dhcp_guard(link in link_headers(), (first, chain) in chains(17), from in any::<u16>(), options in 0usize..10) {
        for ports in [udp(67, from), udp(from, 68)] {
            let mut packet = ipv4([10, 0, 0, 5], [255; 4], 17, &[&vec![0; options * 4][..], &ports].concat());
            packet[0] += options as u8;
            assert!(dropped(servers(), false, &frame(&[&link[..], &[8, 0]].concat(), &packet)).is_some());
        }
        for ports in [udp(547, from), udp(from, 546)] {
            let packet = ipv6(LOCAL, first, &[&chain[..], &ports].concat());
            assert!(dropped(servers(), false, &frame(&[&link[..], &[0x86, 0xdd]].concat(), &packet)).is_some());
        }
    }

    #[test]
    fn no_foreign_source_passes_the_source_guard(link in link_headers(), source in any::<[u8; 4]>(), high in any::<[u8; 16]>(), payload in proptest::collection::vec(any::<u8>(), 28..80), kind in any::<u16>()) {
        let foreign = source != [10, 0, 0, 5];
        let packets = [
            (vec![8, 0], ipv4(source, [10, 0, 0, 1], payload[0], &payload), foreign),
            (vec![8, 6], arp(MAC, source, 2), foreign),
            (vec![8, 6], arp(OTHER, [10, 0, 0, 5], 2), true),
            (vec![0x86, 0xdd], ipv6(high, payload[0], &payload), high[..8] != LISTED[..8] && high != LOCAL && high != [0; 16]),
            (kind.to_be_bytes().to_vec(), payload.clone(), kind > 0x600 && ![0x800, 0x806, 0x86dd, 0x8035, 0x8100, 0x88a8, 0x9100, 0x9200].contains(&kind)),
        ];
        for (kind, packet, foreign) in packets {
            let reason = dropped(ips(), false, &frame(&[&link[..], &kind].concat(), &packet));
            assert!(!foreign || reason.is_some());
        }
    }

    #[test]
    fn random_frames_do_not_break_a_guard(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in prop_oneof![Just([8u8, 0]), Just([8, 6]), Just([0x86, 0xdd]), Just([0x81, 0]), Just([0, 40])]) {
        let all = PortGuard { dhcp_guard: true, router_guard: true, ..ips() };
        let _ = dropped(all, true, &[&[0xff; 6][..], &MAC, &kind, &bytes].concat());
    }
}

#[test]
fn own_traffic_passes_every_guard() {
    let all = || PortGuard { dhcp_guard: true, router_guard: true, ..ips() };
    let source_link = [1, 1, MAC[0], MAC[1], MAC[2], MAC[3], MAC[4], MAC[5]];
    let target_link = [2, 1, MAC[0], MAC[1], MAC[2], MAC[3], MAC[4], MAC[5]];
    let listener_report = [&[58, 0, 5, 2, 0, 0, 1, 0][..], &[143, 0, 0, 0, 0, 0, 0, 0]].concat();
    for (kind, packet) in [
        ([8, 0], ipv4([10, 0, 0, 5], [10, 0, 0, 1], 6, &[0; 20])),
        ([8, 0], ipv4([0; 4], [255; 4], 17, &udp(68, 67))),
        ([8, 6], arp(MAC, [10, 0, 0, 5], 1)),
        ([8, 6], arp(MAC, [0; 4], 1)),
        ([0x80, 0x35], arp(MAC, [0; 4], 3)),
        ([0x86, 0xdd], ipv6(LISTED, 6, &[0; 20])),
        ([0x86, 0xdd], ipv6(LOCAL, 17, &udp(546, 547))),
        ([0x86, 0xdd], ipv6([0; 16], 58, &neighbor(135, LISTED, &[]))),
        ([0x86, 0xdd], ipv6([0; 16], 0, &listener_report)),
        ([0x86, 0xdd], ipv6(LISTED, 58, &neighbor(135, FOREIGN, &source_link))),
        ([0x86, 0xdd], ipv6(LOCAL, 58, &neighbor(136, LISTED, &target_link))),
        ([0x86, 0xdd], ipv6(LOCAL, 58, &[&[133, 0, 0, 0, 0, 0, 0, 0][..], &source_link].concat())),
    ] {
        for link in [&[][..], &[0x81, 0, 0, 7]] {
            let bytes = frame(&[link, &kind].concat(), &packet);
            assert_eq!(dropped(all(), false, &bytes), None, "{kind:x?} {packet:x?}");
        }
    }
}

#[test]
fn three_link_headers_and_seven_extension_headers_are_read() {
    let tags = |count| [0x81, 0, 0, 0].repeat(count);
    let read = |tags: &[u8], extensions: usize| {
        // Destination options, each of 8 bytes; the last names UDP.
        let mut chain = [60, 0, 1, 4, 0, 0, 0, 0].repeat(extensions);
        let first = if extensions > 0 { 60 } else { 17 };
        if let Some(at) = chain.len().checked_sub(8) {
            chain[at] = 17;
        }
        let packet = ipv6(LOCAL, first, &[&chain[..], &udp(1, 2)].concat());
        dropped(servers(), false, &frame(&[tags, &[0x86, 0xdd]].concat(), &packet))
    };
    // The port's switch takes the first tag.
    assert_eq!((read(&tags(4), 7), read(&tags(5), 0)), (None, Some(GuardReason::Unreadable)));
    assert_eq!(read(&tags(0), 8), Some(GuardReason::Unreadable));
}

#[test]
fn group_address_is_no_sender_of_arp() {
    let bytes = frame(&[8, 6], &arp(GROUP, [10, 0, 0, 5], 2));
    assert_eq!(dropped(ips(), false, &bytes), Some(GuardReason::SourceArp));
}

#[test]
fn forged_neighbor_discovery_is_dropped() {
    let forged = [1, 1, OTHER[0], OTHER[1], OTHER[2], OTHER[3], OTHER[4], OTHER[5]];
    let target = [2, 1, OTHER[0], OTHER[1], OTHER[2], OTHER[3], OTHER[4], OTHER[5]];
    for message in [
        neighbor(136, FOREIGN, &[]),
        neighbor(136, LISTED, &target),
        neighbor(135, FOREIGN, &forged),
        neighbor(135, FOREIGN, &[1, 0, 0, 0, 0, 0, 0, 0]),
        neighbor(135, FOREIGN, &[1, 9, 0, 0, 0, 0, 0, 0]),
    ] {
        let bytes = frame(&[0x86, 0xdd], &ipv6(LISTED, 58, &message));
        assert_eq!(dropped(ips(), false, &bytes), Some(GuardReason::SourceNeighbor), "{message:x?}");
    }
    let fragment = [&[58, 0, 0, 1, 0, 0, 0, 1][..], &neighbor(136, LISTED, &[])].concat();
    let bytes = frame(&[0x86, 0xdd], &ipv6(LISTED, 44, &fragment));
    assert_eq!(dropped(ips(), false, &bytes), Some(GuardReason::SourceNeighbor));
    let hidden = [&[60, 0, 0, 8, 0, 0, 0, 1][..], &[0; 24]].concat();
    let bytes = frame(&[0x86, 0xdd], &ipv6(LISTED, 44, &hidden));
    assert_eq!(dropped(servers(), false, &bytes), Some(GuardReason::Unreadable));
}

#[test]
fn tag_behind_the_port_vlan_is_dropped_unless_allowed() {
    let allowed = PortGuard { double_tags: true, ..PortGuard::default() };
    let plain = frame(&[8, 0], &ipv4([10, 0, 0, 5], [10, 0, 0, 1], 6, &[0; 20]));
    for kind in [[0x88, 0xa8], [0x91, 0]] {
        let tagged = frame(&[kind[0], kind[1], 0, 7, 8, 0], &[0; 46]);
        assert_eq!(dropped(PortGuard::default(), true, &tagged), Some(GuardReason::DoubleTag));
        assert_eq!(dropped(PortGuard::default(), false, &tagged), None);
        assert_eq!(dropped(allowed.clone(), true, &tagged), None);
    }
    let twice = frame(&[0x81, 0, 0, 5, 0x81, 0, 0, 7, 8, 0], &[0; 46]);
    assert_eq!(dropped(PortGuard::default(), true, &twice), Some(GuardReason::DoubleTag));
    assert_eq!(dropped(PortGuard::default(), true, &plain), None);
}
