//! Tests requests about rings, vectors, running queues, and their number.

use super::{FourVfPort, VSI};
use crate::avf::pf::{OFFERED, VirtchnlRefusal};
use ::avf::control::QueueInterruptCause;
use ::avf::descriptor::rx::RxDescriptorFormat;
use ::avf::virtchnl::{
    EncodedMessageList, QueueChunk, QueuePairInfo, QueueSet, QueueType, RxQueueInfo, TxQueueInfo, VectorMap,
    VfCapabilities, VirtchnlEvent, VirtchnlRequest, VirtchnlStatus,
};
use std::vec;
use std::vec::Vec;

/// Returns the description of a queue pair as Linux configures it.
fn pair(queue: u16) -> QueuePairInfo {
    QueuePairInfo {
        tx: TxQueueInfo { vsi: VSI, queue, length: 512, base: 0x10_0000, ..TxQueueInfo::default() },
        rx: RxQueueInfo {
            vsi: VSI,
            queue,
            length: 512,
            buffer_bytes: 1536,
            max_frame: 16_382,
            rxdid: 1,
            base: 0x20_0000,
            ..RxQueueInfo::default()
        },
    }
}

fn configure(world: &mut FourVfPort, pairs: &[QueuePairInfo]) -> VirtchnlStatus {
    world.ask(0, VirtchnlRequest::ConfigureQueues(VSI, EncodedMessageList::new(pairs).list())).0
}

fn set(rx: u32, tx: u32) -> QueueSet {
    QueueSet { vsi: VSI, rx, tx }
}

#[test]
fn configure_queues_request_sets_ring_address_and_length() {
    let mut world = FourVfPort::active();
    assert_eq!(configure(&mut world, &[pair(0), pair(3)]), VirtchnlStatus::Success);
    let told = world.told();
    assert!(told.rx.keys().eq(&[0, 3]) && told.tx.keys().eq(&[0, 3]));
    let rx = told.rx[&3];
    assert_eq!(
        (rx.base, rx.length, rx.buffer_bytes, rx.form),
        (0x20_0000, 512, 1536, RxDescriptorFormat::Legacy)
    );
    assert_eq!(rx.max_frame, 9728, "Linux sends 16,382 for any MTU: the port's own limit applies");
}

#[test]
fn ring_configured_with_length_zero_stays_unchanged() {
    let mut world = FourVfPort::active();
    let mut half = pair(1);
    half.tx.length = 0;
    assert_eq!(configure(&mut world, &[half]), VirtchnlStatus::Success, "DPDK with fewer transmit queues");
    assert!(world.told().tx.is_empty() && world.told().rx.contains_key(&1));
}

#[test]
fn one_invalid_ring_makes_the_pf_refuse_the_whole_request() {
    let broken: [fn(&mut QueuePairInfo); 13] = [
        |pair| pair.tx.base += 64,
        |pair| pair.rx.base += 64,
        |pair| pair.tx.length = 513,
        |pair| pair.tx.length = 4104,
        |pair| pair.rx.length = 520,
        |pair| pair.rx.length = 4128,
        |pair| pair.rx.length = 0x1_0000_0000_u64 as u32 | 0x8000_0020,
        |pair| pair.rx.buffer_bytes = 127,
        |pair| pair.rx.buffer_bytes = 16_384,
        |pair| pair.rx.max_frame = 63,
        |pair| pair.rx.max_frame = 16_384,
        |pair| pair.rx.rxdid = 5,
        |pair| pair.rx.split = true,
    ];
    for (case, spoil) in broken.into_iter().enumerate() {
        let mut world = FourVfPort::active();
        let mut bad = pair(1);
        spoil(&mut bad);
        assert_eq!(configure(&mut world, &[pair(0), bad]), VirtchnlStatus::Param, "case {case}");
        assert!(world.told().rx.is_empty() && world.told().tx.is_empty(), "case {case}");
        assert_eq!(world.refusals(VirtchnlRefusal::Ring), 1, "case {case}");
    }
}

#[test]
fn queue_pair_with_mixed_or_invalid_queue_numbers_is_refused() {
    let mut world = FourVfPort::active();
    let mut crossed = pair(1);
    crossed.tx.queue = 2;
    assert_eq!(configure(&mut world, &[crossed]), VirtchnlStatus::Param);
    assert_eq!(configure(&mut world, &[pair(4)]), VirtchnlStatus::Param, "four pairs: 0 to 3");
    assert_eq!(configure(&mut world, &[pair(0); 5]), VirtchnlStatus::Param, "more than the VF has");
    let mut others = pair(0);
    others.rx.vsi = VSI + 1;
    assert_eq!(configure(&mut world, &[others]), VirtchnlStatus::Param);
    assert_eq!(
        (world.refusals(VirtchnlRefusal::NoSuchQueue), world.refusals(VirtchnlRefusal::NotItsVsi)),
        (3, 1)
    );
}

#[test]
fn vf_ring_aligned_to_128_bytes_is_accepted() {
    let mut world = FourVfPort::active();
    let mut dpdk = pair(0);
    (dpdk.tx.base, dpdk.rx.base) = (0x1080, 0x2180);
    assert_eq!(configure(&mut world, &[dpdk]), VirtchnlStatus::Success);
}

#[test]
fn descriptor_format_without_capability_means_legacy() {
    let mut world = FourVfPort::new();
    world.introduce(0, VfCapabilities::L2);
    let mut old = pair(0);
    old.rx.rxdid = 0;
    old.rx.keep_fcs = true;
    assert_eq!(configure(&mut world, &[old]), VirtchnlStatus::Success);
    let rx = world.told().rx[&0];
    assert_eq!(
        (rx.form, rx.keep_fcs),
        (RxDescriptorFormat::Legacy, false),
        "keeping the check sequence was not negotiated"
    );
}

#[test]
fn vector_map_of_queues_not_yet_configured_is_accepted() {
    let mut world = FourVfPort::active();
    // Like Linux: a vector per pair, and the mailbox's last without queues.
    let pairs =
        (0..4).map(|n| VectorMap { vsi: VSI, vector: n + 1, rx: 1 << n, tx: 1 << n, rx_itr: 0, tx_itr: 1 });
    let maps: Vec<_> = pairs.chain([VectorMap { vsi: VSI, ..VectorMap::default() }]).collect();
    world.granted(VirtchnlRequest::MapVectors(EncodedMessageList::new(&maps).list()));
    assert_eq!(world.told().rx_causes[&2], QueueInterruptCause { vector: 3, itr: 0 });
    assert_eq!(world.told().tx_causes[&2], QueueInterruptCause { vector: 3, itr: 1 });
}

#[test]
fn mailbox_vector_may_also_serve_queues() {
    let mut world = FourVfPort::active();
    let map = VectorMap { vsi: VSI, vector: 0, rx: 0b11, ..VectorMap::default() };
    world.granted(VirtchnlRequest::MapVectors(EncodedMessageList::new(&[map]).list()));
    assert_eq!(world.told().rx_causes.len(), 2);
}

#[test]
fn vector_map_of_invalid_vector_queue_or_itr_is_refused() {
    let mut world = FourVfPort::active();
    let good = VectorMap { vsi: VSI, vector: 1, rx: 1, ..VectorMap::default() };
    for (map, why) in [
        (VectorMap { vector: 5, ..good }, VirtchnlRefusal::NoSuchVector),
        (VectorMap { rx_itr: 4, ..good }, VirtchnlRefusal::NoSuchVector),
        (VectorMap { tx: 1 << 4, ..good }, VirtchnlRefusal::NoSuchQueue),
        (VectorMap { vsi: 9, ..good }, VirtchnlRefusal::NotItsVsi),
    ] {
        world.refused(VirtchnlRequest::MapVectors(EncodedMessageList::new(&[good, map]).list()), why);
        assert!(world.told().rx_causes.is_empty(), "no part of the message takes effect");
    }
}

#[test]
fn queues_are_enabled_singly_or_together() {
    let mut world = FourVfPort::active();
    world.granted(VirtchnlRequest::SwitchQueues(true, set(0b0001, 0)));
    world.granted(VirtchnlRequest::SwitchQueues(true, set(0b0110, 0b0001)));
    assert_eq!(world.told().running, (0b0111, 0b0001), "DPDK sends one for each queue and direction");
    world.granted(VirtchnlRequest::SwitchQueues(false, set(0b0101, 0b0001)));
    assert_eq!(world.told().running, (0b0010, 0));
}

#[test]
fn empty_or_invalid_queue_set_is_refused() {
    let mut world = FourVfPort::active();
    for queues in [set(0, 0), set(1 << 4, 0), set(1, 1 << 16), set(0, 1 << 31)] {
        world.refused(VirtchnlRequest::SwitchQueues(true, queues), VirtchnlRefusal::NoSuchQueue);
    }
}

#[test]
fn queues_are_enabled_by_ranges_and_invalid_ranges_refused() {
    let mut world = FourVfPort::active();
    let chunk = |direction, start, count| QueueChunk { direction, start, count };
    let chunks =
        EncodedMessageList::new(&[chunk(QueueType::Receive, 0, 4), chunk(QueueType::Transmit, 2, 2)]);
    world.granted(VirtchnlRequest::SwitchRanges(true, VSI, chunks.list()));
    assert_eq!(world.told().running, (0b1111, 0b1100));
    for bad in [
        chunk(QueueType::Receive, 3, 2),
        chunk(QueueType::Other(2), 0, 1),
        chunk(QueueType::Receive, u16::MAX, u16::MAX),
    ] {
        world.refused(
            VirtchnlRequest::SwitchRanges(true, VSI, EncodedMessageList::new(&[bad]).list()),
            VirtchnlRefusal::NoSuchQueue,
        );
    }
}

#[test]
fn disabled_vf_cannot_start_its_queues() {
    let mut world = FourVfPort::active();
    world.set(|policy| policy.enabled = false);
    world.introduce(0, OFFERED);
    world.refused(VirtchnlRequest::SwitchQueues(true, set(1, 1)), VirtchnlRefusal::Disabled);
}

#[test]
fn queue_pair_count_change_resets_the_vf_without_a_reply() {
    let mut world = FourVfPort::active();
    world.events();
    world.card.arrive(0, 29, &[16, 0]);
    world.pf.visit(&mut world.card);
    assert_eq!(world.events(), [VirtchnlEvent::ResetImpending]);
    let resources = world.introduce(0, OFFERED);
    assert_eq!((resources.pairs, resources.vectors), (16, 17));
}

#[test]
fn reply_to_too_many_queue_pairs_has_the_maximum() {
    let mut world = FourVfPort::active();
    assert!(world.pf.set_pairs(&mut world.card, 0, 4, 8));
    world.introduce(0, OFFERED);
    for asked in [0, 9, 17, u16::MAX] {
        assert_eq!(
            world.ask(0, VirtchnlRequest::Queues(asked)),
            (VirtchnlStatus::Success, vec![8, 0]),
            "{asked}"
        );
    }
    assert_eq!(world.refusals(VirtchnlRefusal::TooManyQueues), 4);
}
