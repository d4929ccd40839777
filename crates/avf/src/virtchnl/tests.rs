//! Tests messages as drivers send them, and arbitrary bytes. The sizes are those of `virtchnl.h`.

use super::filters::promiscuity;
use super::*;
use crate::admin::MAX_BODY;
use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};
use std::vec;
use std::vec::Vec;

fn op(number: u32) -> VirtchnlOpcode {
    VirtchnlOpcode::of(number).unwrap()
}

#[test]
fn version_and_resources_requests_of_linux_are_parsed() {
    let body = [1, 0, 0, 0, 1, 0, 0, 0];
    assert_eq!(VirtchnlRequest::decode(1, &body), Ok(VirtchnlRequest::Version(VirtchnlVersion::V1_1)));
    // Capabilities of iavf in Linux 6.12.
    let body = 0x1abd_8cf9_u32.to_le_bytes();
    let Ok(VirtchnlRequest::Resources(Some(asked))) = VirtchnlRequest::decode(3, &body) else { panic!() };
    assert!(asked.has(VfCapabilities::L2.and(VfCapabilities::VLAN_V2).and(VfCapabilities::RSS_PF)));
    assert!(!asked.has(VfCapabilities::LARGE_NUM_QPAIRS));
}

#[test]
fn resources_request_without_body_names_no_capabilities() {
    assert_eq!(VirtchnlRequest::decode(3, &[]), Ok(VirtchnlRequest::Resources(None)));
    assert_eq!(VirtchnlRequest::decode(3, &[0; 3]), Err(MalformedRequest::Length(op(3), 3)));
}

#[test]
fn virtchnl_reply_bodies_have_the_sizes_of_linuxs_header() {
    assert_eq!(VfResources::SIZE, 20 + 16);
    assert_eq!(VfTrafficStatistics::SIZE, 12 * 8);
    assert_eq!(VirtchnlEvent::SIZE, 16);
    assert_eq!(VlanCapabilities::SIZE, 40);
    assert_eq!((QueuePairInfo::SIZE, VectorMap::SIZE, VlanFilter::SIZE), (64, 12, 32));
}

#[test]
fn resources_of_a_vf_have_the_layout_of_virtchnl_h() {
    let resources = VfResources {
        pairs: 4,
        vectors: 5,
        max_frame: 9728,
        capabilities: VfCapabilities::L2,
        vsi: 7,
        mac: [2, 0, 0, 0, 0, 9],
    };
    let body = reply::encode(&resources);
    assert_eq!(body[..8], [1, 0, 4, 0, 5, 0, 0, 0x26], "one VSI, pairs, vectors, longest frame");
    assert_eq!(body[12..20], [52, 0, 0, 0, 64, 0, 0, 0], "key and table");
    assert_eq!(body[20..28], [7, 0, 4, 0, 6, 0, 0, 0], "VSI, its pairs, SR-IOV");
    assert_eq!(body[30..], [2, 0, 0, 0, 0, 9]);
    assert_eq!(reply::decode(&body), Some(resources));
    let with_a_spare_vsi = [body.as_slice(), &[0; 16]].concat();
    assert_eq!(reply::decode(&with_a_spare_vsi), Some(resources), "i40e sends 52 bytes");
}

#[test]
fn virtchnl_list_may_exceed_its_count_but_not_fall_short() {
    let macs = [EtherAddress { mac: [2, 0, 0, 0, 0, 1], usage: EtherAddressType::Primary }];
    let packed = EncodedMessageList::new(&macs);
    let request = VirtchnlRequest::Addresses(true, 3, packed.list());
    let body = request.encode();
    assert_eq!(body.len(), 4 + 8 + 8, "as all drivers send it");
    for length in [4 + 8, 4 + 8 + 8, 4 + 8 + 100] {
        let mut body = body.clone();
        body.resize(length, 0);
        let Ok(VirtchnlRequest::Addresses(true, 3, list)) = VirtchnlRequest::decode(10, &body) else {
            panic!("ADD_ETH_ADDR with a body of {length} bytes is refused")
        };
        assert!(list.iter().eq(macs));
    }
    for length in [0, 3, 4, 11] {
        assert!(
            matches!(VirtchnlRequest::decode(10, &body[..length]), Err(MalformedRequest::Length(..))),
            "{length}"
        );
    }
}

#[test]
fn most_virtchnl_lists_are_encoded_with_one_extra_element() {
    let pairs = EncodedMessageList::new(&[QueuePairInfo::default(); 4]);
    assert_eq!(VirtchnlRequest::ConfigureQueues(0, pairs.list()).encode().len(), 8 + 64 * 4 + 64);
    let maps = EncodedMessageList::new(&[VectorMap::default(); 5]);
    assert_eq!(VirtchnlRequest::MapVectors(maps.list()).encode().len(), 2 + 12 * 5 + 12);
    let vlans = EncodedMessageList::new(&[1, 2, 3]);
    assert_eq!(VirtchnlRequest::Vlans(true, 0, vlans.list()).encode().len(), 4 + 2 * 3 + 2);
    assert_eq!(VirtchnlRequest::HashKey(0, &[0; 52]).encode().len(), 4 + 52 + 1);
    let filters = EncodedMessageList::new(&[VlanFilter::default(); 2]);
    assert_eq!(
        VirtchnlRequest::VlanFilters(true, 0, filters.list()).encode().len(),
        8 + 32 * 2,
        "this one is exact"
    );
}

#[test]
fn vlan_v2_filter_list_with_a_surplus_byte_is_refused() {
    let filters = EncodedMessageList::new(&[VlanFilter::default()]);
    let mut body = VirtchnlRequest::VlanFilters(true, 0, filters.list()).encode();
    assert!(VirtchnlRequest::decode(52, &body).is_ok());
    body.push(0);
    assert_eq!(VirtchnlRequest::decode(52, &body), Err(MalformedRequest::Length(op(52), 41)));
}

#[test]
fn virtchnl_request_with_an_empty_list_is_malformed() {
    for (number, length) in [(6, 72), (7, 14), (10, 12), (12, 6), (23, 5), (24, 5), (52, 8), (107, 16)] {
        assert_eq!(
            VirtchnlRequest::decode(number, &vec![0; length]),
            Err(MalformedRequest::Empty(op(number)))
        );
    }
}

#[test]
fn fixed_size_virtchnl_message_of_another_length_is_refused() {
    for (number, length) in [
        (1, 8),
        (2, 0),
        (8, 12),
        (9, 12),
        (14, 4),
        (15, 12),
        (18, 8),
        (25, 0),
        (26, 8),
        (27, 0),
        (29, 2),
        (44, 0),
        (51, 0),
        (54, 16),
    ] {
        assert!(VirtchnlRequest::decode(number, &vec![0; length]).is_ok(), "{number}");
        for wrong in [length + 1, length.wrapping_sub(1)] {
            if wrong <= MAX_BODY {
                let body = vec![0; wrong];
                let refused = VirtchnlRequest::decode(number, &body);
                assert_eq!(refused, Err(MalformedRequest::Length(op(number), wrong)));
                assert_eq!(refused.unwrap_err().status(), VirtchnlStatus::Param);
            }
        }
    }
}

#[test]
fn unknown_virtchnl_operation_is_not_supported() {
    for number in [0, 4, 5, 17, 20, 45, 47, 60, 66, 112, 113, u32::MAX] {
        let refused = VirtchnlRequest::decode(number, &[]).unwrap_err();
        assert_eq!(
            (refused, refused.status()),
            (MalformedRequest::Unknown(number), VirtchnlStatus::NotSupported)
        );
    }
}

#[test]
fn virtchnl_operation_and_status_numbers_match_the_header() {
    let numbers: Vec<u32> = VirtchnlOpcode::ALL.iter().map(|op| op.number()).collect();
    assert!(numbers.is_sorted());
    assert!(
        VirtchnlOpcode::ALL
            .iter()
            .enumerate()
            .all(|(at, op)| op.index() == at && VirtchnlOpcode::of(op.number()) == Some(*op))
    );
    for number in [0, -5, -18, -38, -40, -53, -64, -22] {
        assert_eq!(VirtchnlStatus::of(number).number(), number);
    }
    assert_eq!(VirtchnlStatus::NotSupported.cookie(), 0xffff_ffc0);
}

#[test]
fn virtchnl_events_have_the_layout_that_drivers_read() {
    let up = reply::encode(&VirtchnlEvent::Link { speed: 25_000, up: true });
    assert_eq!(up, [1, 0, 0, 0, 0xa8, 0x61, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    let reset = reply::encode(&VirtchnlEvent::ResetImpending);
    assert_eq!(reset, [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0], "severity: certain doom");
    for event in
        [VirtchnlEvent::Link { speed: 2, up: false }, VirtchnlEvent::ResetImpending, VirtchnlEvent::Other(3)]
    {
        assert_eq!(reply::decode(&reply::encode(&event)), Some(event));
    }
}

#[test]
fn old_link_speed_field_has_one_bit_per_speed_up_to_40_gb_s() {
    let speeds = [2_500, 100, 1_000, 10_000, 40_000, 20_000, 25_000, 5_000];
    for (bit, mbps) in speeds.into_iter().enumerate() {
        assert_eq!(LinkSpeed::bit_of(mbps), 1 << bit, "{mbps}");
    }
    assert_eq!(LinkSpeed::bit_of(100_000), 0, "only ADV_LINK_SPEED can say it");
}

#[test]
fn vlan_capabilities_have_the_layout_of_virtchnl_h() {
    let body = reply::encode(&VlanCapabilities::one_tag(64));
    let words: Vec<u32> = body.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    assert_eq!(words, [1, 0, 1, 64, 0x8000_0101, 0, 0x8000_0101, 0, 1, 0]);
}

fn pair() -> impl Strategy<Value = QueuePairInfo> {
    let ring = (any::<u16>(), any::<u16>(), any::<u64>(), any::<u32>());
    (ring, ring, any::<(bool, u8, u8)>()).prop_map(|(t, r, (flag, rxdid, flags))| QueuePairInfo {
        tx: TxQueueInfo {
            vsi: t.0,
            queue: t.1,
            length: t.3 as u16,
            head_write_back: flag,
            base: t.2,
            head_address: r.2,
        },
        rx: RxQueueInfo {
            vsi: r.0,
            queue: r.1,
            length: r.3,
            header_bytes: t.0,
            split: flag,
            buffer_bytes: t.3,
            max_frame: r.3,
            keep_fcs: !flag,
            rxdid,
            flags,
            base: r.2,
            split_at: t.3,
        },
    })
}

/// Generates numbers of operations: mostly below 120, where operations are defined, and some arbitrary ones.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![9 => 0..120_u32, 1 => any::<u32>()]
}

proptest! {
    #[test]
    fn arbitrary_virtchnl_request_is_parsed_or_refused(
        number in number(), body in prop::collection::vec(any::<u8>(), 0..600)
    ) {
        if let Ok(request) = VirtchnlRequest::decode(number, &body) {
            assert_eq!(request.op().number(), number);
            let again = request.encode();
            assert_eq!(VirtchnlRequest::decode(number, &again), Ok(request), "what was read can be sent");
        }
    }

    #[test]
    fn virtchnl_ring_configuration_is_decoded_as_encoded(pairs in prop::collection::vec(pair(), 1..20), vsi: u16) {
        let packed = EncodedMessageList::new(&pairs);
        let body = VirtchnlRequest::ConfigureQueues(vsi, packed.list()).encode();
        let Ok(VirtchnlRequest::ConfigureQueues(read, list)) = VirtchnlRequest::decode(6, &body) else { panic!() };
        assert_eq!(read, vsi);
        assert!(list.len() == pairs.len() && list.iter().eq(pairs));
    }

    #[test]
    fn virtchnl_maps_and_lists_are_decoded_as_encoded(raw in prop::collection::vec(any::<[u16; 6]>(), 1..60)) {
        let maps: Vec<_> = raw.iter().map(|[vsi, vector, rx, tx, rx_itr, tx_itr]| VectorMap {
            vsi: *vsi, vector: *vector, rx: *rx, tx: *tx, rx_itr: *rx_itr, tx_itr: *tx_itr,
        }).collect();
        let packed = EncodedMessageList::new(&maps);
        let body = VirtchnlRequest::MapVectors(packed.list()).encode();
        let Ok(VirtchnlRequest::MapVectors(list)) = VirtchnlRequest::decode(7, &body) else { panic!() };
        assert!(list.iter().eq(maps));
        let tag = |raw: &[u16; 6], at: usize| VlanFilterTag { tci: raw[at], mask: raw[at + 1], tpid: raw[at + 2] };
        let filters: Vec<_> = raw.iter().map(|raw| VlanFilter { inner: tag(raw, 0), outer: tag(raw, 3) }).collect();
        let packed = EncodedMessageList::new(&filters);
        let body = VirtchnlRequest::VlanFilters(false, 1, packed.list()).encode();
        let Ok(VirtchnlRequest::VlanFilters(false, 1, list)) = VirtchnlRequest::decode(53, &body) else { panic!() };
        assert!(list.iter().eq(filters));
    }

    #[test]
    fn statistics_of_a_vf_are_encoded_as_decoded(values in any::<[u64; 12]>()) {
        let body: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let read: VfTrafficStatistics = reply::decode(&body).unwrap();
        assert_eq!(reply::encode(&read), body);
    }

    #[test]
    fn promiscuous_mode_request_is_decoded_as_encoded(vsi: u16) {
        let flags = promiscuity::UNICAST | promiscuity::MULTICAST;
        let body = VirtchnlRequest::Promiscuity(vsi, flags).encode();
        assert_eq!(VirtchnlRequest::decode(14, &body), Ok(VirtchnlRequest::Promiscuity(vsi, flags)));
    }
}

#[test]
fn requests_of_any_length_are_refused_or_encoded_again() {
    let mut decoded = 0;
    for (number, fill) in (0..130).flat_map(|number| [0, 1, 2, 0xff_u8].map(|fill| (number, fill))) {
        for length in 0..=300 {
            let body = std::vec![fill; length];
            let Ok(request) = VirtchnlRequest::decode(number, &body) else { continue };
            let again = request.encode();
            assert_eq!(
                VirtchnlRequest::decode(number, &again),
                Ok(request),
                "operation {number}, {length} bytes"
            );
            decoded += 1;
        }
    }
    assert!(decoded > 100, "{decoded}");
}
