//! Tests transmit offloads: checksums, segmentation, VLAN tags.

use crate::built::{pseudo, tcp4, tcp6, udp4, udp6};
use crate::world::{CardFixture, mac};
use avf::control::{CardCommand, CardControl, TxQueueContext};
use avf::descriptor::rx::RxChecksumResult;
use avf::descriptor::tx::{self, TxContextDescriptor, TxDataDescriptor, TxIpHeaderKind, TxL4Checksum};
use avf::register as r;
use avf::virtchnl::{VfCapabilities, VirtchnlRequest, VlanOffloadKind, VlanSetting};
use driver::Hal;
use driver::avf::vf::{AvfDriver, AvfReceivedFrame, TxOffload};
use offload::crc::crc32c;
use offload::{FrameHeaders, verify};
use pcie::Function;
use plane::switch::PortMirrorRules;
use policy::VfPolicy;
use proptest::prelude::{any, prop, proptest};

const RIGHT: Option<RxChecksumResult> = Some(RxChecksumResult { ip_wrong: false, l4_wrong: false });
pub(crate) const SUMS: TxOffload = TxOffload { ip_checksum: true, l4_checksum: true, tso: None, vlan: None };
const FIN_PSH_CWR: u8 = 0x01 | 0x08 | 0x80;

pub(crate) fn cut(mss: u16) -> TxOffload {
    TxOffload { tso: Some(mss), ..SUMS }
}

/// Creates a card with a plane and starts its VFs 0 and 1, with policies that `change` adjusts.
pub(crate) fn two(change: impl Fn(&mut VfPolicy)) -> (CardFixture, AvfDriver, AvfDriver) {
    let mut world = CardFixture::new(2).across_a_plane();
    let start = |world: &mut CardFixture, n| {
        world.with_pf(|pf, side| {
            let mut policy = VfPolicy { mac: Some(mac(n)), ..VfPolicy::default() };
            change(&mut policy);
            pf.set_policy(side, n, policy).unwrap();
        });
        world.start(n)
    };
    let (a, b) = (start(&mut world, 0), start(&mut world, 1));
    (world, a, b)
}

/// Returns the frames that VF 1 has received in all of its queues, and their descriptors.
pub(crate) fn all_of(world: &mut CardFixture, b: &mut AvfDriver) -> Vec<(AvfReceivedFrame, Vec<u8>)> {
    let mut into = [0; 12_000];
    let mut frames = Vec::new();
    for queue in 0..b.pairs() as u8 {
        while let Some(received) = b.receive(&mut world.vf(1), queue, &mut into) {
            frames.push((received, into[..received.length].to_vec()));
        }
    }
    frames
}

/// Sends a packet from VF 0. Returns the frames that VF 1 receives.
fn sent(packet: &[u8], offload: &TxOffload) -> Vec<(AvfReceivedFrame, Vec<u8>)> {
    let (mut world, mut a, mut b) = two(|_| {});
    assert!(a.transmit_with(&mut world.vf(0), 0, packet, offload));
    world.round();
    all_of(&mut world, &mut b)
}

#[test]
fn inserted_checksums_equal_those_of_an_independent_stack() {
    let payload = b"twenty bytes or more of payload";
    for (right, l4, field) in
        [(tcp4(payload), 34, 16), (udp4(payload), 34, 6), (tcp6(payload), 54, 16), (udp6(payload), 54, 6)]
    {
        let mut packet = right.clone();
        packet[l4 + field..l4 + field + 2].fill(0xee);
        if l4 == 34 {
            packet[24..26].fill(0xee);
        }
        let received = sent(&packet, &SUMS);
        assert_eq!(received[0].1, right);
        assert_eq!(received[0].0.said.checksums, RIGHT);
    }
}

#[test]
fn each_tcp_segment_has_own_ip_id_sequence_number_and_flags() {
    let mut packet = tcp4(&[7; 2_500]);
    packet[18..20].copy_from_slice(&[0xff, 0xff]);
    packet[47] |= FIN_PSH_CWR;
    let received = sent(&packet, &cut(1_000));
    let of = |at: usize, n: usize| {
        received.iter().map(|(_, frame)| frame[at..at + n].to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(of(18, 2), [[0xff, 0xff], [0, 0], [0, 1]], "IPID counts and wraps");
    assert_eq!(of(38, 4), [1_u32, 1_001, 2_001].map(u32::to_be_bytes));
    assert_eq!(
        of(47, 1).concat().iter().map(|flags| flags & FIN_PSH_CWR).collect::<Vec<_>>(),
        [0x80, 0, 0x09]
    );
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]
    #[test]
    fn segments_have_right_checksums_and_the_whole_payload(
        payload in prop::collection::vec(any::<u8>(), 1..20_000),
        six: bool,
        mss in 512_u16..9_600,
    ) {
        let packet = if six { tcp6(&payload) } else { tcp4(&payload) };
        let headers = if six { 74 } else { 54 };
        let received = sent(&packet, &cut(mss));
        assert_eq!(received.len(), payload.len().div_ceil(mss.into()));
        let mut arrived = Vec::new();
        for (said, frame) in &received {
            assert_eq!(said.said.checksums, RIGHT);
            // The IP length excludes the padding of a short frame.
            let length = usize::from(u16::from_be_bytes([frame[if six { 18 } else { 16 }], frame[if six { 19 } else { 17 }]]));
            arrived.extend_from_slice(&frame[headers..14 + length + if six { 40 } else { 0 }]);
        }
        assert_eq!(arrived, payload);
    }
}

#[test]
fn descriptors_vlan_tag_is_inserted_unless_a_port_vlan_is_set() {
    let tagged = TxOffload { vlan: Some(0x2007), ..TxOffload::default() };
    let (mut world, mut a, _) = two(|policy| policy.spoofchk = false);
    let mut to_all = udp4(&[1; 30]);
    to_all[..6].fill(0xff);
    assert!(a.transmit_with(&mut world.vf(0), 0, &to_all, &tagged));
    world.round();
    assert_eq!(world.cable.0[0][12..16], [0x81, 0, 0x20, 7]);
    let fixed = policy::PortVlan { id: 5, qos: 0 };
    let (mut world, mut a, _) = two(|policy| policy.vlan = Some(fixed));
    assert!(a.transmit_with(&mut world.vf(0), 0, &to_all, &tagged));
    world.round();
    assert_eq!(world.cable.0[0][12..18], [0x81, 0, 0, 5, 8, 0], "the port VLAN's tag only");
}

#[test]
fn each_segment_of_a_packet_gets_the_vlan_tag() {
    let (mut world, mut a, _) = two(|policy| policy.spoofchk = false);
    let mut away = tcp4(&[1; 2_000]);
    away[..6].copy_from_slice(&[2, 9, 9, 9, 9, 9]);
    assert!(a.transmit_with(&mut world.vf(0), 0, &away, &TxOffload { vlan: Some(7), ..cut(1_000) }));
    world.round();
    assert_eq!(
        world.cable.0.iter().map(|frame| frame[12..16].to_vec()).collect::<Vec<_>>(),
        [[0x81, 0, 0, 7]; 2]
    );
}

#[test]
fn padding_of_a_short_sent_frame_is_zero() {
    let (mut world, mut a, mut b) = two(|_| {});
    for length in [2_000, 1_001] {
        assert!(a.transmit_with(&mut world.vf(0), 0, &tcp4(&vec![7; length]), &cut(1_000)));
    }
    assert!(a.transmit(&mut world.vf(0), 0, &udp4(&[7; 1])));
    world.round();
    let received = all_of(&mut world, &mut b);
    let short: Vec<_> = received.iter().filter(|(_, frame)| frame.len() == 60).collect();
    assert_eq!(
        (short[0].1[54..].to_vec(), short[1].1[42..].to_vec()),
        (vec![7, 0, 0, 0, 0, 0], [&[7][..], &[0; 17]].concat())
    );
}

#[test]
fn descriptors_vlan_tag_is_inserted_only_if_the_pf_allows_it() {
    let (mut world, mut a, _) = two(|policy| policy.spoofchk = false);
    let asked = VfCapabilities::L2.and(VfCapabilities::VLAN_V2);
    a.ask(&mut world.vf(0), VirtchnlRequest::Resources(Some(asked))).unwrap();
    let (packet, _) = away(udp4(&[1; 30]));
    for (grant, kind) in [(false, [8, 0]), (true, [0x81, 0])] {
        let setting = VlanSetting { outer: 1, inner: 0, vsi: 1 };
        a.ask(&mut world.vf(0), VirtchnlRequest::VlanOffload(VlanOffloadKind::Insert, grant, setting))
            .unwrap();
        assert!(a.transmit_with(
            &mut world.vf(0),
            0,
            &packet,
            &TxOffload { vlan: Some(7), ..TxOffload::default() }
        ));
        world.round();
        assert_eq!(world.cable.0.pop().unwrap()[12..14], kind);
    }
}

/// Tests Linux iavf after a reset: Linux requests VLAN stripping and insertion only once, before the reset, but keeps
/// its VLANs.
#[test]
fn strip_request_after_a_vf_reset_keeps_vlan_insertion_on() {
    let (mut world, mut a, _) = two(|policy| policy.spoofchk = false);
    a.reset(&mut world.vf(0));
    world.round();
    a.restart(&mut world.vf(0)).unwrap();
    let asked = VfCapabilities::L2.and(VfCapabilities::VLAN_V2);
    a.ask(&mut world.vf(0), VirtchnlRequest::Resources(Some(asked))).unwrap();
    let setting = VlanSetting { outer: 1, inner: 0, vsi: 1 };
    a.ask(&mut world.vf(0), VirtchnlRequest::VlanOffload(VlanOffloadKind::Strip, true, setting)).unwrap();
    let (packet, _) = away(udp4(&[1; 30]));
    assert!(a.transmit_with(
        &mut world.vf(0),
        0,
        &packet,
        &TxOffload { vlan: Some(7), ..TxOffload::default() }
    ));
    world.round();
    assert_eq!(world.cable.0.pop().unwrap()[12..16], [0x81, 0, 0, 7]);
}

/// Sends the given descriptors from transmit queue 0 of VF 0, with a packet at bus address 0x1000. Returns the frames
/// that left by the uplink.
pub(crate) fn ring_of(descriptors: &[[u8; tx::SIZE]], packet: &[u8]) -> (CardFixture, Vec<Vec<u8>>) {
    let mut world = ring_with(descriptors, packet);
    world.round();
    let left = core::mem::take(&mut world.cable.0);
    (world, left)
}

/// Puts the given descriptors into transmit queue 0 of VF 0, and a packet at bus address 0x1000.
fn ring_with(descriptors: &[[u8; tx::SIZE]], packet: &[u8]) -> CardFixture {
    let (mut world, _, _) = two(|policy| policy.spoofchk = false);
    world
        .card
        .order(0, CardCommand::ConfigureTx(0, TxQueueContext { base: 0, length: 256, head_address: None }));
    world.card.order(0, CardCommand::Run { rx: 1, tx: 1 });
    let memory = world.memories.of(Function::Vf(0));
    memory[..descriptors.len() * tx::SIZE].copy_from_slice(descriptors.as_flattened());
    memory[0x1000..0x1000 + packet.len()].copy_from_slice(packet);
    world.vf(0).write(r::qtx_tail(0), descriptors.len() as u32);
    world
}

/// Readdresses a packet to a station beyond the uplink. Returns the packet and its data descriptor.
pub(crate) fn away(mut packet: Vec<u8>) -> (Vec<u8>, TxDataDescriptor) {
    packet[..6].copy_from_slice(&[2, 9, 9, 9, 9, 9]);
    let length = packet.len() as u16;
    let data = TxDataDescriptor {
        address: 0x1000,
        length,
        end_of_packet: true,
        report_status: true,
        ..TxDataDescriptor::default()
    };
    (packet, data)
}

/// Requests the checksums of IPv4 and of a transport protocol, and describes headers without options.
pub(crate) fn with_checksums(l4: TxL4Checksum, data: TxDataDescriptor) -> TxDataDescriptor {
    let l4_length = if l4 == TxL4Checksum::Udp { 8 } else { 20 };
    TxDataDescriptor { ip: TxIpHeaderKind::V4Checksum, l4, mac_length: 14, ip_length: 20, l4_length, ..data }
}

/// Returns a context descriptor that asks the card to divide `payload` bytes of a packet into segments of `mss` bytes.
pub(crate) fn segments(payload: u32, mss: u16) -> TxContextDescriptor {
    TxContextDescriptor { segment: true, payload, mss, ..TxContextDescriptor::default() }
}

#[test]
fn packet_with_vlan_tags_in_two_descriptors_is_malformed() {
    let (packet, data) = away(udp4(&[1; 30]));
    let context = TxContextDescriptor { tag2: Some(9), ..TxContextDescriptor::default() };
    let (_, left) = ring_of(&[context.emit(), data.emit()], &packet);
    assert_eq!(left[0][12..16], [0x81, 0, 0, 9]);
    let both = TxDataDescriptor { tag: Some(8), ..data };
    let (world, left) = ring_of(&[context.emit(), both.emit()], &packet);
    assert_eq!((left.len(), world.card.counters(0).unwrap().malformed), (0, 1));
}

#[test]
fn inserted_sctp_checksum_is_crc32c() {
    let sctp = [&[0, 1, 0, 2, 0, 0, 0, 3, 0xee, 0xee, 0xee, 0xee][..], &[5; 20]].concat();
    let header = crate::built::ipv4_header(132, 0);
    let (packet, data) = away(crate::built::ipv4_frame(header, &[], 0, &sctp));
    let data = TxDataDescriptor {
        ip: TxIpHeaderKind::V4,
        l4: TxL4Checksum::Sctp,
        mac_length: 14,
        ip_length: 20,
        l4_length: 12,
        ..data
    };
    let (_, left) = ring_of(&[data.emit()], &packet);
    let crc = crc32c(&[&sctp[..8], &[0; 4], &sctp[12..]]);
    assert_eq!(left[0][42..46], crc.to_le_bytes());
}

#[test]
fn udp_packet_is_segmented_into_datagrams() {
    let (mut packet, data) = away(udp4(&[7; 2_500]));
    let seed = pseudo(&packet, false, 17, 0).to_be_bytes();
    packet[40..42].copy_from_slice(&seed);
    let data = with_checksums(TxL4Checksum::Udp, data);
    let context = segments(2_500, 1_000);
    let (_, left) = ring_of(&[context.emit(), data.emit()], &packet);
    for (datagram, payload) in left.iter().zip([1_000, 1_000, 500]) {
        let headers = FrameHeaders::parse(datagram);
        assert_eq!(datagram.len(), 42 + payload);
        assert_eq!(
            (verify::network(datagram, &headers), verify::transport(datagram, &headers, None)),
            (Some(true), Some(true))
        );
    }
    assert_eq!(left.len(), 3);
}

#[test]
fn malformed_offload_requests_are_dropped_and_counted() {
    let (packet, data) = away(tcp4(&[7; 3_000]));
    let data = with_checksums(TxL4Checksum::Tcp, data);
    let context = segments(3_000, 1_000);
    let good = TxDataDescriptor { length: 60, ip: TxIpHeaderKind::None, l4: TxL4Checksum::None, ..data };
    let cases = [
        ("an MSS below 64", TxContextDescriptor { mss: 63, ..context }, data),
        (
            "a segment beyond the longest frame",
            TxContextDescriptor { mss: 9_700, payload: 12_000, ..context },
            TxDataDescriptor { length: 12_054, ..data },
        ),
        ("a payload length other than the packet's", TxContextDescriptor { payload: 2_999, ..context }, data),
        ("no transport", context, TxDataDescriptor { l4: TxL4Checksum::None, ..data }),
        ("SCTP", context, TxDataDescriptor { l4: TxL4Checksum::Sctp, ..data }),
        ("no IP", context, TxDataDescriptor { ip: TxIpHeaderKind::None, ..data }),
        ("a short IP header", context, TxDataDescriptor { ip_length: 16, ..data }),
        ("a short Ethernet header", context, TxDataDescriptor { mac_length: 12, ..data }),
        ("a short TCP header", context, TxDataDescriptor { l4_length: 16, ..data }),
        (
            "headers beyond the packet",
            TxContextDescriptor { payload: 0, ..context },
            TxDataDescriptor { length: 50, ..data },
        ),
        ("a tunnel", TxContextDescriptor { tunnel: 1 << 9, ..context }, data),
        (
            "a checksum beyond the frame",
            TxContextDescriptor::default(),
            TxDataDescriptor { length: 40, ..data },
        ),
        (
            "an IP header beyond the frame",
            TxContextDescriptor::default(),
            TxDataDescriptor { length: 30, l4: TxL4Checksum::None, ..data },
        ),
    ];
    for (case, context, data) in cases {
        let (world, left) = ring_of(&[context.emit(), data.emit(), good.emit()], &packet);
        assert_eq!((world.card.counters(0).unwrap().malformed, left.len()), (1, 1), "{case}");
    }
}

#[test]
fn queue_with_64_malformed_packets_is_stopped() {
    let (packet, data) = away(tcp4(&[7; 100]));
    let bad = TxDataDescriptor { length: 40, ..with_checksums(TxL4Checksum::Tcp, data) };
    let (world, left) = ring_of(&[&[bad.emit(); 70][..], &[data.emit()]].concat(), &packet);
    let counters = world.card.counters(0).unwrap();
    assert_eq!((counters.malformed, counters.stopped, left.len()), (64, 1, 0));
}

#[test]
fn queue_stopped_for_malformed_packets_sends_no_more() {
    let (packet, data) = away(tcp4(&[7; 100]));
    let bad = TxDataDescriptor { length: 40, ..with_checksums(TxL4Checksum::Tcp, data) };
    let mut world = ring_with(&[bad.emit(); 70], &packet);
    let mut plane = world.plane.take().unwrap();
    world.card.apply_policy(&mut plane, &PortMirrorRules::NONE);
    assert!(!world.card.visit_ready(&mut plane, 128, &mut world.memories, &mut world.cable));
    assert_eq!(world.card.counters(0).unwrap().stopped, 1);
}
