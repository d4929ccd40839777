//! Tests receive descriptors in each form, and the choice of a frame's queue.

use crate::built::{built, ipv4, ipv4_frame, ipv4_header, ipv6_frame, link, tcp4, tcp6, udp4, udp6};
use crate::world::{CardFixture, mac};
use avf::control::CardControl;
use avf::descriptor::rx::{RxChecksumResult, RxDescriptorFormat, RxWriteBack};
use avf::packet_type::{self, HASH_TYPES, IpPayloadKind, IpVersion};
use avf::register as r;
use avf::virtchnl::{EncodedMessageList, VfCapabilities, VirtchnlRequest, VlanOffloadKind, VlanSetting};
use driver::Hal;
use driver::avf::vf::{AvfDriver, AvfDriverConfig};
use offload::crc::{crc32c, frame_check_sequence};
use policy::VfPolicy;
use proptest::prelude::{any, prop, proptest};

const FORMS: [RxDescriptorFormat; 4] = [
    RxDescriptorFormat::Legacy,
    RxDescriptorFormat::Short,
    RxDescriptorFormat::Flex(2),
    RxDescriptorFormat::FlexLate,
];
const RIGHT: RxChecksumResult = RxChecksumResult { ip_wrong: false, l4_wrong: false };
/// Key of Microsoft's RSS verification suite ("Verifying the RSS Hash Calculation"); its last 12 bytes are zero.
const KEY: [u8; 52] = {
    let mut key = [0; 52];
    let (bytes, mut at) = (*b"\x6d\x5a\x56\xda\x25\x5b\x0e\xc2\x41\x67\x25\x3d\x43\xa3\x8f\xb0\xd0\xca\x2b\xcb\xae\x7b\x30\xb4\x77\xcb\x2d\xa3\x80\x30\xf2\x0c\x6a\x42\xb7\x3b\xbe\xac\x01\xfa", 0);
    while at < bytes.len() {
        key[at] = bytes[at];
        at += 1;
    }
    key
};

fn wishes(form: RxDescriptorFormat) -> AvfDriverConfig {
    let AvfDriverConfig { capabilities, .. } = AvfDriverConfig::default();
    let flex = if form == RxDescriptorFormat::Legacy {
        VfCapabilities::default()
    } else {
        VfCapabilities::RX_FLEX_DESC
    };
    AvfDriverConfig { capabilities: capabilities.and(flex), form, ..AvfDriverConfig::default() }
}

/// Creates a card with a plane and starts its VFs 0 and 1 with `pairs` queue pairs. VF 1's driver requests the
/// configuration `wishes`.
fn two(wishes: AvfDriverConfig, pairs: u16) -> (CardFixture, AvfDriver, AvfDriver) {
    let mut world = CardFixture::new(2).across_a_plane();
    for n in 0..2 {
        world.with_pf(|pf, side| {
            let policy = VfPolicy { mac: Some(mac(n)), ..VfPolicy::default() };
            pf.set_policy(side, n, policy).unwrap();
            assert!(pf.set_pairs(side, n, pairs, 16));
        });
    }
    let a = world.start(0);
    let mut b = AvfDriver::probe_with(&mut world.vf(1), mac(1), wishes).unwrap();
    b.start(&mut world.vf(1)).unwrap();
    (world, a, b)
}

/// Sends a frame from VF 0 to VF 1. Returns the receive queue of VF 1 in which the frame arrived, the frame's
/// descriptor and its bytes.
fn heard(
    world: &mut CardFixture,
    a: &mut AvfDriver,
    b: &mut AvfDriver,
    frame: &[u8],
) -> Option<(u8, RxWriteBack, Vec<u8>)> {
    assert!(a.transmit(&mut world.vf(0), 0, frame));
    world.round();
    let mut into = [0; 12_000];
    (0..b.pairs() as u8).find_map(|queue| {
        let received = b.receive(&mut world.vf(1), queue, &mut into)?;
        Some((queue, received.said, into[..received.length].to_vec()))
    })
}

fn sctp() -> Vec<u8> {
    let mut packet = [0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 9, 9, 9, 9].to_vec();
    let crc = crc32c(&[&packet]).to_le_bytes();
    packet[8..12].copy_from_slice(&crc);
    ipv4_frame(ipv4_header(132, 0), &[], 0, &packet)
}

fn spoiled(mut frame: Vec<u8>, at: usize) -> Vec<u8> {
    frame[at] ^= 0x10;
    frame
}

#[test]
fn every_rx_descriptor_format_has_packet_type_and_checksums() {
    let wrong_ip = RxChecksumResult { ip_wrong: true, l4_wrong: false };
    let wrong_l4 = RxChecksumResult { ip_wrong: false, l4_wrong: true };
    let of = packet_type::ip;
    let mut unsummed = udp4(&[3; 30]);
    unsummed[40..42].fill(0);
    let arp = [&mac(1).0[..], &mac(0).0, &[8, 6], &[0; 46]].concat();
    let other = [&mac(1).0[..], &mac(0).0, &[0x88, 0xb5], &[0; 46]].concat();
    let cases = [
        (tcp4(&[1; 30]), of(IpVersion::V4, IpPayloadKind::Tcp), Some(RIGHT)),
        (udp4(&[1; 30]), of(IpVersion::V4, IpPayloadKind::Udp), Some(RIGHT)),
        (tcp6(&[1; 30]), of(IpVersion::V6, IpPayloadKind::Tcp), Some(RIGHT)),
        (udp6(&[1; 30]), of(IpVersion::V6, IpPayloadKind::Udp), Some(RIGHT)),
        (sctp(), of(IpVersion::V4, IpPayloadKind::Sctp), Some(RIGHT)),
        (spoiled(tcp4(&[1; 30]), 60), of(IpVersion::V4, IpPayloadKind::Tcp), Some(wrong_l4)),
        (spoiled(udp6(&[1; 30]), 70), of(IpVersion::V6, IpPayloadKind::Udp), Some(wrong_l4)),
        (spoiled(sctp(), 48), of(IpVersion::V4, IpPayloadKind::Sctp), Some(wrong_l4)),
        (spoiled(udp4(&[1; 30]), 22), of(IpVersion::V4, IpPayloadKind::Udp), Some(wrong_ip)),
        (unsummed, of(IpVersion::V4, IpPayloadKind::Udp), None),
        (built!(ipv4().icmpv4_echo_request(1, 2), &[0; 40]), of(IpVersion::V4, IpPayloadKind::Icmp), None),
        (ipv4_frame(ipv4_header(17, 0), &[], 9, &[7; 40]), of(IpVersion::V4, IpPayloadKind::Fragment), None),
        (ipv4_frame(ipv4_header(89, 0), &[], 0, &[7; 40]), of(IpVersion::V4, IpPayloadKind::Other), None),
        (ipv6_frame(58, &[7; 40]), of(IpVersion::V6, IpPayloadKind::Icmp), None),
        (ipv6_frame(44, &[17, 0, 0, 8, 0, 0, 0, 1, 7, 7]), of(IpVersion::V6, IpPayloadKind::Fragment), None),
        (arp, packet_type::ARP, None),
        (other, packet_type::L2, None),
    ];
    for form in FORMS {
        let (mut world, mut a, mut b) = two(wishes(form), 4);
        for (frame, packet_type, checksums) in &cases {
            let (_, said, got) = heard(&mut world, &mut a, &mut b, frame).unwrap();
            assert_eq!(
                (said.packet_type, said.checksums),
                (*packet_type, *checksums),
                "{form:?} {frame:02x?}"
            );
            assert_eq!(&got[..frame.len()], frame);
            assert!(said.loopback, "{form:?}");
        }
    }
}

/// Computes the Toeplitz hash of `input` bit by bit, by the hash's definition.
fn toeplitz(input: &[u8]) -> u32 {
    let bit = |bytes: &[u8], n: usize| bytes[n / 8] >> (7 - n % 8) & 1 == 1;
    (0..input.len() * 8).filter(|n| bit(input, *n)).fold(0, |hash, n| {
        hash ^ (0..32).fold(0, |window, more| window << 1 | u32::from(bit(&KEY, n + more)))
    })
}

/// Configures VF 1's RSS with [`KEY`], all hash types, and a table that names each of its `pairs` queues. Returns the
/// table.
fn scale(world: &mut CardFixture, b: &mut AvfDriver, pairs: u8) -> [u8; 64] {
    let table: [u8; 64] = core::array::from_fn(|n| (n * 7) as u8 % pairs);
    for request in [
        VirtchnlRequest::HashKey(2, &KEY),
        VirtchnlRequest::LookupTable(2, &table),
        VirtchnlRequest::SetHashTypes(HASH_TYPES),
    ] {
        b.ask(&mut world.vf(1), request).unwrap();
    }
    table
}

fn v4(source: [u8; 4], destination: [u8; 4], ports: (u16, u16)) -> Vec<u8> {
    built!(link().ipv4(source, destination, 64).tcp(ports.0, ports.1, 0, 0), &[1; 20])
}

#[test]
fn rss_hash_equals_microsofts_vector_and_selects_the_queue() {
    let frame = v4([66, 9, 149, 187], [161, 142, 100, 80], (2794, 1766));
    for form in FORMS {
        let (mut world, mut a, mut b) = two(wishes(form), 4);
        let table = scale(&mut world, &mut b, 4);
        let (queue, said, _) = heard(&mut world, &mut a, &mut b, &frame).unwrap();
        assert_eq!((said.hash, queue), (Some(0x51cc_c178), table[0x38]), "{form:?}");
    }
}

/// iavf enables its queues, sets the key, and sets the table some milliseconds later. It may have enabled fewer queues
/// than the PF granted, as on a guest with one processor.
#[test]
fn frames_between_rss_key_and_table_arrive_in_queue_0() {
    let one_pair = AvfDriverConfig { pairs: 1, spread: false, ..AvfDriverConfig::default() };
    let (mut world, mut a, mut b) = two(one_pair, 4);
    for request in [VirtchnlRequest::SetHashTypes(HASH_TYPES), VirtchnlRequest::HashKey(2, &KEY)] {
        b.ask(&mut world.vf(1), request).unwrap();
    }
    for host in 1..=64 {
        let frame = v4([66, 9, 149, host], [161, 142, 100, 80], (2794, 1766));
        let (queue, said, _) = heard(&mut world, &mut a, &mut b, &frame).unwrap();
        assert_eq!((queue, said.hash), (0, Some(toeplitz(&[&frame[26..34], &frame[34..38]].concat()))));
    }
}

#[test]
fn frames_of_disabled_rss_types_go_unhashed_to_queue_0() {
    let (mut world, mut a, mut b) = two(wishes(RxDescriptorFormat::Legacy), 4);
    scale(&mut world, &mut b, 4);
    let types = HASH_TYPES & !packet_type::hash_type(IpVersion::V4, IpPayloadKind::Tcp);
    b.ask(&mut world.vf(1), VirtchnlRequest::SetHashTypes(types)).unwrap();
    let frame = v4([66, 9, 149, 187], [161, 142, 100, 80], (2794, 1766));
    let (queue, said, _) = heard(&mut world, &mut a, &mut b, &frame).unwrap();
    assert_eq!((queue, said.hash), (0, None));
    let (_, said, _) = heard(&mut world, &mut a, &mut b, &udp4(&[1; 30])).unwrap();
    assert!(said.hash.is_some());
}

#[test]
fn rss_hashes_an_ip_fragment_without_ports() {
    let (mut world, mut a, mut b) = two(wishes(RxDescriptorFormat::Legacy), 4);
    scale(&mut world, &mut b, 4);
    let fragment = ipv4_frame(ipv4_header(17, 0), &[], 9, &[7; 40]);
    let (_, said, _) = heard(&mut world, &mut a, &mut b, &fragment).unwrap();
    assert_eq!(said.hash, Some(toeplitz(&fragment[26..34])));
}

#[test]
fn symmetric_rss_hash_is_equal_in_both_directions() {
    let (mut world, mut a, mut b) = two(wishes(RxDescriptorFormat::Legacy), 4);
    scale(&mut world, &mut b, 4);
    b.ask(&mut world.vf(1), VirtchnlRequest::HashFunction(2, 2)).unwrap();
    let hashes = [v4([10, 0, 0, 1], [10, 0, 0, 9], (1000, 80)), v4([10, 0, 0, 9], [10, 0, 0, 1], (80, 1000))]
        .map(|frame| heard(&mut world, &mut a, &mut b, &frame).unwrap().1.hash.unwrap());
    assert_eq!(hashes[0], hashes[1]);
}

#[test]
fn rss_set_by_registers_or_by_messages_hashes_alike() {
    let (mut world, mut a, mut b) = two(wishes(RxDescriptorFormat::Legacy), 4);
    let (_, said, _) = heard(&mut world, &mut a, &mut b, &udp4(&[1; 30])).unwrap();
    assert_eq!(said.hash, None, "nothing is hashed before hash types are set");
    let mut side = world.vf(1);
    for (word, types) in [HASH_TYPES as u32, (HASH_TYPES >> 32) as u32].into_iter().enumerate() {
        side.write(r::VFQF_HENA + 4 * word as u32, types);
    }
    let (_, said, _) = heard(&mut world, &mut a, &mut b, &udp4(&[1; 30])).unwrap();
    assert_eq!(said.hash, Some(0), "no key yet");
    let mut side = world.vf(1);
    for (word, bytes) in (0..).zip(KEY.chunks(4)) {
        side.write(r::VFQF_HKEY + 4 * word, u32::from_le_bytes(bytes.try_into().unwrap()));
    }
    for word in 0..16 {
        side.write(r::VFQF_HLUT + 4 * word, 0x0303_0303);
    }
    let frame = v4([66, 9, 149, 187], [161, 142, 100, 80], (2794, 1766));
    let (queue, said, _) = heard(&mut world, &mut a, &mut b, &frame).unwrap();
    assert_eq!((queue, said.hash), (3, Some(0x51cc_c178)));
}

#[test]
fn frame_of_an_rss_table_entry_without_running_queue_is_dropped() {
    let (mut world, mut a, mut b) = two(wishes(RxDescriptorFormat::Legacy), 4);
    scale(&mut world, &mut b, 4);
    for queue in [4_u8, 15, 16, 255] {
        for word in 0..16 {
            world.vf(1).write(r::VFQF_HLUT + 4 * word, u32::from_le_bytes([queue; 4]));
        }
        assert_eq!(heard(&mut world, &mut a, &mut b, &udp4(&[1; 30])), None);
    }
}

/// Asserts that packets between the given endpoints (addresses and ports; true for IPv6) go to the receive queue that
/// the hash of the endpoints selects.
fn assert_spread_by_hash(ends: &[([u8; 12], bool)]) {
    let (mut world, mut a, mut b) = two(wishes(RxDescriptorFormat::Legacy), 16);
    let table = scale(&mut world, &mut b, 16);
    for (bytes, six) in ends {
        let (one, other) =
            ([bytes[0], bytes[1], bytes[2], bytes[3]], [bytes[4], bytes[5], bytes[6], bytes[7]]);
        let ports = (u16::from_be_bytes([bytes[8], bytes[9]]), u16::from_be_bytes([bytes[10], bytes[11]]));
        let wide = |short: [u8; 4]| core::array::from_fn(|n| short[n % 4] ^ n as u8);
        let (frame, at) = if *six {
            (built!(link().ipv6(wide(one), wide(other), 64).udp(ports.0, ports.1), &[1; 20]), 22..58)
        } else {
            (v4(one, other, ports), 26..38)
        };
        let (queue, said, _) = heard(&mut world, &mut a, &mut b, &frame).unwrap();
        let hash = toeplitz(&frame[at]);
        assert_eq!((said.hash, queue), (Some(hash), table[hash as usize % 64]));
    }
}

#[test]
fn ipv6_udp_datagram_is_spread_by_its_own_rss_hash() {
    assert_spread_by_hash(&[([0, 0, 0, 0, 2, 192, 179, 181, 118, 209, 154, 193], true)]);
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(16))]
    #[test]
    fn rss_spreads_udp_datagrams_over_sixteen_queue_pairs(
        ends in prop::collection::vec((any::<[u8; 12]>(), any::<bool>()), 1..40),
    ) {
        assert_spread_by_hash(&ends);
    }
}

#[test]
fn frame_check_sequence_is_kept_if_the_vf_requests_it() {
    for form in [RxDescriptorFormat::Legacy, RxDescriptorFormat::FlexLate] {
        let wishes = wishes(form);
        let capabilities = wishes.capabilities.and(VfCapabilities::CRC);
        let (mut world, mut a, mut b) = two(AvfDriverConfig { capabilities, keep_fcs: true, ..wishes }, 4);
        for length in [30, 3_000] {
            let frame = udp4(&vec![1; length]);
            let (_, said, got) = heard(&mut world, &mut a, &mut b, &frame).unwrap();
            assert!(said.fcs);
            assert_eq!(got, [&frame[..], &frame_check_sequence(&frame).to_le_bytes()].concat());
        }
    }
}

#[test]
fn rx_byte_counter_excludes_a_kept_frame_check_sequence() {
    let octets = [false, true].map(|keep_fcs| {
        let wishes = wishes(RxDescriptorFormat::Legacy);
        let capabilities = wishes.capabilities.and(VfCapabilities::CRC);
        let (mut world, mut a, mut b) = two(AvfDriverConfig { capabilities, keep_fcs, ..wishes }, 4);
        heard(&mut world, &mut a, &mut b, &udp4(&[1; 58])).unwrap();
        world.card.statistics(1).rx_bytes
    });
    assert_eq!(octets, [100; 2]);
}

/// Returns a frame with a tag of VLAN 7.
fn tagged() -> Vec<u8> {
    let mut frame = udp4(&[1; 30]);
    frame.splice(12..12, [0x81, 0, 0x60, 7]);
    frame
}

#[test]
fn joining_a_vlan_strips_tags_until_the_vf_disables_stripping() {
    let (mut world, mut a, mut b) = two(wishes(RxDescriptorFormat::Legacy), 4);
    let vlans = EncodedMessageList::new(&[7]);
    a.ask(&mut world.vf(0), VirtchnlRequest::Vlans(true, 1, vlans.list())).unwrap();
    b.ask(&mut world.vf(1), VirtchnlRequest::Vlans(true, 2, vlans.list())).unwrap();
    let (_, said, got) = heard(&mut world, &mut a, &mut b, &tagged()).unwrap();
    assert_eq!((said.tag, got), (Some(0x6007), udp4(&[1; 30])), "adding a VLAN turns stripping on");
    b.ask(&mut world.vf(1), VirtchnlRequest::Strip(false)).unwrap();
    let (_, said, got) = heard(&mut world, &mut a, &mut b, &tagged()).unwrap();
    assert_eq!((said.tag, got), (None, tagged()));
    assert_eq!(said.checksums, Some(RIGHT), "a tag in the frame does not hide its headers");
}

#[test]
fn enabled_vlan_stripping_works_in_every_rx_descriptor_format() {
    for form in FORMS {
        let wishes = wishes(form);
        let capabilities = wishes.capabilities.without(VfCapabilities::VLAN).and(VfCapabilities::VLAN_V2);
        let (mut world, mut a, mut b) = two(AvfDriverConfig { capabilities, ..wishes }, 4);
        let vlans = EncodedMessageList::new(&[7]);
        a.ask(&mut world.vf(0), VirtchnlRequest::Vlans(true, 1, vlans.list())).unwrap();
        let filter = avf::virtchnl::VlanFilter {
            outer: avf::virtchnl::filters::VlanFilterTag { tci: 7, tpid: 0x8100, ..Default::default() },
            ..Default::default()
        };
        b.ask(
            &mut world.vf(1),
            VirtchnlRequest::VlanFilters(true, 2, EncodedMessageList::new(&[filter]).list()),
        )
        .unwrap();
        let (_, said, got) = heard(&mut world, &mut a, &mut b, &tagged()).unwrap();
        assert_eq!((said.tag, got), (None, tagged()), "{form:?}");
        let setting = VlanSetting { outer: 1, inner: 0, vsi: 2 };
        b.ask(&mut world.vf(1), VirtchnlRequest::VlanOffload(VlanOffloadKind::Strip, true, setting)).unwrap();
        let (_, said, got) = heard(&mut world, &mut a, &mut b, &tagged()).unwrap();
        assert_eq!((said.tag, got), (Some(0x6007), udp4(&[1; 30])), "{form:?}");
    }
}
