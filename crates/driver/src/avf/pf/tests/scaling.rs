//! Tests RSS (key, table, types, function), and the handling of arbitrary messages.

use super::{FourVfPort, VSI};
use crate::avf::pf::VirtchnlRefusal;
use ::avf::control::RssHashFunction;
use ::avf::packet_type::HASH_TYPES;
use ::avf::virtchnl::{VfCapabilities, VirtchnlRequest, VirtchnlStatus};
use proptest::prelude::{any, prop, proptest};
use std::vec::Vec;

/// The card's table names queue 0 alone after a reset, as an X710's does (VFQF_HLUT resets to 0).
#[test]
fn vf_rss_hashes_every_packet_type_to_queue_0_by_default() {
    let world = FourVfPort::active();
    assert_eq!(world.told().types, HASH_TYPES);
    assert_eq!(world.told().table, [0; 64]);
}

#[test]
fn rss_key_or_table_of_wrong_size_or_queue_is_refused() {
    let mut world = FourVfPort::active();
    world.granted(VirtchnlRequest::HashKey(VSI, &[7; 52]));
    world.granted(VirtchnlRequest::LookupTable(VSI, &[3; 64]));
    assert_eq!(
        (world.told().key.as_slice(), world.told().table.as_slice()),
        ([7; 52].as_slice(), [3; 64].as_slice())
    );
    world.refused(VirtchnlRequest::HashKey(VSI, &[7; 40]), VirtchnlRefusal::Hash);
    world.refused(VirtchnlRequest::LookupTable(VSI, &[0; 63]), VirtchnlRefusal::Hash);
    world.refused(VirtchnlRequest::LookupTable(VSI, &[4; 64]), VirtchnlRefusal::Hash);
}

#[test]
fn unsupported_rss_types_in_a_vfs_request_are_ignored() {
    let mut world = FourVfPort::active();
    assert_eq!(
        world.ask(0, VirtchnlRequest::GetHashTypes),
        (VirtchnlStatus::Success, HASH_TYPES.to_le_bytes().to_vec())
    );
    world.granted(VirtchnlRequest::SetHashTypes(0));
    assert_eq!(world.told().types, 0, "DPDK begins with none");
    world.granted(VirtchnlRequest::SetHashTypes(u64::MAX));
    assert_eq!(world.told().types, HASH_TYPES);
}

#[test]
fn rss_function_other_than_toeplitz_or_symmetric_is_refused() {
    let mut world = FourVfPort::active();
    world.granted(VirtchnlRequest::HashFunction(VSI, 2));
    assert_eq!(world.told().function, RssHashFunction::Symmetric);
    world.granted(VirtchnlRequest::HashFunction(VSI, 0));
    assert_eq!(world.told().function, RssHashFunction::Toeplitz);
    world.refused(VirtchnlRequest::HashFunction(VSI, 1), VirtchnlRefusal::Hash);
}

#[test]
fn rss_request_without_the_rss_capability_is_refused() {
    let mut world = FourVfPort::new();
    world.introduce(0, VfCapabilities::L2);
    world.refused(VirtchnlRequest::HashKey(VSI, &[7; 52]), VirtchnlRefusal::NotAgreed);
}

/// Asserts that every message gets a reply (unless the VF resets itself), that no other VF receives one, and that
/// the PF's state of the VF is bounded.
fn assert_answered(messages: Vec<(u32, Vec<u8>)>) {
    let mut world = FourVfPort::active();
    world.set(|policy| policy.trust = true);
    world.introduce(0, crate::avf::pf::OFFERED);
    for (number, mut body) in messages {
        // Half of the messages name the right VSI.
        if number % 2 == 0 && body.len() > 1 {
            body[..2].copy_from_slice(&VSI.to_le_bytes());
        }
        let resets = world.told().resets;
        world.card.sent.clear();
        world.card.arrive(0, number, &body);
        world.pf.visit(&mut world.card);
        assert!(world.card.sent.keys().all(|vf| *vf == 0), "other VFs receive nothing");
        let replies = world.card.sent.get(&0).map_or(0, std::vec::Vec::len);
        assert!(replies > 0 || world.told().resets > resets);
        assert!(replies <= 2 && world.told().addresses.len() <= 128 && world.told().vlans.len() <= 4096);
    }
}

#[test]
fn each_of_several_invalid_vf_messages_gets_a_reply() {
    let unknown = [(0, 0); 8].into_iter().chain([(0, 146), (84, 124), (92, 113)]);
    let then = [(26, 138), (74, 103), (95, 196), (0, 198), (71, 195), (60, 126), (114, 182), (67, 38)];
    let rest = [(60, 25), (20, 133), (87, 149), (50, 43), (100, 101), (116, 93)];
    let messages = unknown.chain(then).chain(rest);
    assert_answered(messages.map(|(number, bytes)| (number, std::vec![0xe3; bytes])).collect());
}

proptest! {
    #[test]
    fn arbitrary_vf_message_gets_a_reply_and_harms_no_other_vf(
        messages in prop::collection::vec((0..120_u32, prop::collection::vec(any::<u8>(), 0..200)), 1..40),
    ) {
        assert_answered(messages);
    }
}
