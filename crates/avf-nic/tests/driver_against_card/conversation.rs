//! Tests conversations of a well-behaved driver with the PF, from probe to link.

use crate::world::{CardFixture, mac};
use avf::bits::aqlen;
use avf::register as r;
use avf::virtchnl::VirtchnlRequest;
use core::time::Duration;
use driver::Hal;
use driver::avf::vf::{AvfDriver, AvfDriverError};
use pcie::Function;

#[test]
fn vf_starts_its_queues_and_receives_the_link_event() {
    let mut world = CardFixture::new(2);
    let mut vf = AvfDriver::probe(&mut world.vf(0), mac(1)).unwrap();
    assert_eq!((vf.pairs(), vf.mac()), (4, mac(1)));
    vf.start(&mut world.vf(0)).unwrap();
    world.round();
    assert_eq!(vf.look(&mut world.vf(0)), Some(25_000));
    let filters = world.card.filters(0).unwrap();
    assert_eq!(filters.addresses, [mac(1).0]);
    assert!(filters.vlans.iter().eq([0]));
    assert!(world.pf.as_ref().unwrap().vf_is_active(0) && !world.pf.as_ref().unwrap().vf_is_active(1));
}

#[test]
fn vf_request_is_answered_within_one_poll_round() {
    let mut world = CardFixture::new(1);
    let mut vf = AvfDriver::probe(&mut world.vf(0), mac(1)).unwrap();
    let before = world.now;
    vf.ask(&mut world.vf(0), VirtchnlRequest::GetHashTypes).unwrap();
    assert_eq!(world.now.since(before), Duration::from_millis(1), "Linux's probe looks once after 4 ms");
}

#[test]
fn vf_request_without_a_pf_driver_times_out() {
    let mut world = CardFixture::new(1);
    world.pf = None;
    assert_eq!(AvfDriver::probe(&mut world.vf(0), mac(1)).unwrap_err(), AvfDriverError::NoAnswer(1));
}

#[test]
fn vf_request_descriptor_is_completed_before_its_answer() {
    let mut world = CardFixture::new(1);
    let mut vf = AvfDriver::probe(&mut world.vf(0), mac(1)).unwrap();
    vf.ask(&mut world.vf(0), VirtchnlRequest::GetHashTypes).unwrap();
    let mut side = world.vf(0);
    assert_eq!(side.read(r::VF_ATQH), side.read(r::VF_ATQT), "Linux judges by the head");
}

#[test]
fn clearing_admin_ring_error_bits_keeps_the_ring_enabled() {
    let mut world = CardFixture::new(1);
    let mut vf = AvfDriver::probe(&mut world.vf(0), mac(1)).unwrap();
    let mut side = world.vf(0);
    let length = side.read(r::VF_ARQLEN);
    side.write(r::VF_ARQLEN, length & !aqlen::ERRORS);
    assert_eq!(side.read(r::VF_ARQLEN), length);
    assert!(vf.ask(&mut side, VirtchnlRequest::GetHashTypes).is_ok());
}

#[test]
fn vf_request_after_a_refused_request_is_served() {
    let mut world = CardFixture::new(1);
    let mut vf = AvfDriver::probe(&mut world.vf(0), mac(1)).unwrap();
    let mut side = world.vf(0);
    assert_eq!(vf.ask(&mut side, VirtchnlRequest::VlanCapabilities), Err(AvfDriverError::Refused(51, -64)));
    assert!(vf.ask(&mut side, VirtchnlRequest::GetHashTypes).is_ok());
}

#[test]
fn all_requests_of_eight_vfs_are_answered() {
    let mut world = CardFixture::new(8);
    let mut vfs: Vec<_> = (0..8).map(|n| AvfDriver::probe(&mut world.vf(n), mac(n)).unwrap()).collect();
    for (vf, n) in vfs.iter_mut().zip(0..) {
        vf.start(&mut world.vf(n)).unwrap();
    }
    assert!((0..8).all(|n| world.card.counters(n).unwrap().messages == 7), "2 to introduce it, 5 to start");
    assert!(
        !world.memories.interrupts.iter().any(|(function, _)| *function == Function::Pf),
        "the PF takes no interrupts"
    );
}

#[test]
fn copied_card_answers_a_vf_request_sent_before_the_copy() {
    let mut world = CardFixture::new(1);
    let mut vf = AvfDriver::probe(&mut world.vf(0), mac(1)).unwrap();
    world.card = world.card.clone();
    vf.start(&mut world.vf(0)).unwrap();
    world.round();
    assert_eq!(vf.look(&mut world.vf(0)), Some(25_000));
}
