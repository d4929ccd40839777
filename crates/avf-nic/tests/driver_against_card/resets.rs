//! Tests resets of a VF, as its driver sees them.

use crate::offloads::two;
use crate::world::{CardFixture, mac};
use avf::bits::{aqlen, rstat};
use avf::pf_register::GLGEN_VFLRSTAT;
use avf::register as r;
use avf::virtchnl::VfTrafficStatistics;
use driver::Hal;
use driver::avf::vf::AvfDriver;
use plane::switch::PortMirrorRules;

fn running() -> (CardFixture, AvfDriver) {
    let mut world = CardFixture::new(2);
    let mut vf = AvfDriver::probe(&mut world.vf(0), mac(1)).unwrap();
    vf.start(&mut world.vf(0)).unwrap();
    (world, vf)
}

#[test]
fn reset_vf_message_clears_the_mailbox_and_deactivates_vf() {
    let (mut world, mut vf) = running();
    vf.reset(&mut world.vf(0));
    world.round();
    let mut side = world.vf(0);
    assert_eq!(side.read(r::VF_ARQLEN) & aqlen::ENABLE, 0, "Linux looks for this");
    assert_eq!(side.read(r::VFGEN_RSTAT), rstat::ACTIVE, "and then for 2, not 1");
    assert_eq!(
        side.read(r::VF_ATQH),
        side.read(r::VF_ATQT),
        "the message was taken: unbinding does not spin"
    );
    assert!(vf.was_reset(&mut side));
    vf.restart(&mut side).unwrap();
    assert!(vf.transmit(&mut side, 0, &[0; 60]));
}

#[test]
fn vf_reset_allocates_memory_only_for_switch_tables() {
    let (mut world, ..) = two(|_| {});
    let mut plane = world.plane.take().unwrap();
    for _ in 0..3 {
        let reset = allocation_counter::measure(|| world.card.function_level_reset(0));
        let round =
            allocation_counter::measure(|| world.card.apply_policy(&mut plane, &PortMirrorRules::NONE));
        assert_eq!((reset.count_total, round.count_total), (0, 2), "addresses, and members of VLANs");
    }
}

#[test]
fn function_level_reset_of_a_vf_ends_when_the_pf_handles_it() {
    let (mut world, mut vf) = running();
    world.card.function_level_reset(0);
    assert_eq!(world.vf(0).read(r::VFGEN_RSTAT), rstat::IN_PROGRESS);
    assert!(vf.was_reset(&mut world.vf(0)));
    world.round();
    assert_eq!(world.vf(0).read(r::VFGEN_RSTAT), rstat::ACTIVE);
    vf.restart(&mut world.vf(0)).unwrap();
}

#[test]
fn vf_reset_for_next_owner_clears_mailbox_and_statistics() {
    let (mut world, mut vf) = running();
    let mut sender = AvfDriver::probe(&mut world.vf(1), mac(2)).unwrap();
    sender.start(&mut world.vf(1)).unwrap();
    assert!(sender.transmit(&mut world.vf(1), 0, &[0; 60]));
    world.round();
    for _ in 0..3 {
        assert_ne!(vf.statistics(&mut world.vf(0)).unwrap(), VfTrafficStatistics::default());
    }
    assert!(world.vf(0).read(r::VF_ATQT) > 0);
    world.card.reset_for_next_owner(0);
    let mut side = world.vf(0);
    assert_eq!([side.read(r::VF_ATQH), side.read(r::VF_ATQT)], [0, 0]);
    world.round();
    assert_eq!(world.vf(0).read(r::VFGEN_RSTAT), rstat::ACTIVE);
    vf.restart(&mut world.vf(0)).unwrap();
    assert_eq!(vf.statistics(&mut world.vf(0)).unwrap(), VfTrafficStatistics::default());
}

#[test]
fn message_sent_before_a_reset_is_not_answered_after_it() {
    let (mut world, mut vf) = running();
    // The card has taken the message, and the PF has not served it.
    let pf = world.pf.take();
    vf.ask(&mut world.vf(0), avf::virtchnl::VirtchnlRequest::GetHashTypes).unwrap_err();
    world.card.function_level_reset(0);
    world.pf = pf;
    world.round();
    let waiting = vf.look(&mut world.vf(0));
    assert_eq!(waiting, Some(25_000), "no new event");
    vf.restart(&mut world.vf(0)).unwrap();
    let (_, dropped) = world.pf.as_ref().unwrap().passed_over();
    assert_eq!(dropped, 1);
}

#[test]
fn reset_by_the_pf_is_preceded_by_a_reset_impending_event() {
    let (mut world, mut vf) = running();
    world.with_pf(|pf, side| {
        let mut policy = *pf.policy(0).unwrap();
        policy.trust = true;
        pf.set_policy(side, 0, policy).unwrap();
    });
    vf.look(&mut world.vf(0));
    assert!(vf.is_reset_impending() && vf.was_reset(&mut world.vf(0)));
    vf.restart(&mut world.vf(0)).unwrap();
    world.round();
    assert!(!vf.is_reset_impending());
    assert_eq!(vf.look(&mut world.vf(0)), Some(25_000));
}

/// Tests a driver that has not noticed a reset and stores the tails of its old rings. DPDK stores the tails of its new
/// rings before CONFIG_VSI_QUEUES, and Linux sends before its reply; both enable the mailbox first.
#[test]
fn ring_tails_stored_before_mailbox_enable_are_discarded() {
    let (mut world, mut vf) = running();
    world.card.function_level_reset(0);
    world.round();
    let tails = [r::qtx_tail(0), r::qtx_tail(15), r::qrx_tail(0), r::qrx_tail(15)];
    let store = |world: &mut CardFixture| tails.into_iter().for_each(|tail| world.vf(0).write(tail, 5));
    let stored = |world: &mut CardFixture| tails.map(|tail| world.vf(0).read(tail));
    store(&mut world);
    world.round();
    assert_eq!(stored(&mut world), [5; 4], "a register keeps what is written");
    world.vf(0).write(r::VF_ARQLEN, aqlen::ENABLE | 32);
    assert_eq!(stored(&mut world), [5; 4], "the receive queue's enabling alone");
    world.vf(0).write(r::VF_ATQLEN, aqlen::ENABLE | 32);
    assert_eq!(stored(&mut world), [0; 4]);
    store(&mut world);
    world.vf(0).write(r::VF_ATQLEN, aqlen::ENABLE | 32);
    assert_eq!(stored(&mut world), [5; 4], "it is enabled already");
    vf.restart(&mut world.vf(0)).unwrap();
    world.vf(0).write(r::VF_ATQLEN, 0);
    world.vf(0).write(r::VF_ATQLEN, aqlen::ENABLE | 32);
    assert_ne!(world.vf(0).read(r::qrx_tail(0)), 0, "a queue that is set up keeps its tail");
}

#[test]
fn restarted_driver_sends_no_frame_of_its_old_rings() {
    let (mut world, mut vf) = running();
    for sent_late in [1, 3, 40] {
        (0..3).for_each(|_| assert!(vf.transmit(&mut world.vf(0), 0, &[0; 60])));
        world.round();
        world.card.function_level_reset(0);
        world.round();
        (0..sent_late).for_each(|_| assert!(vf.transmit(&mut world.vf(0), 0, &[1; 60])));
        world.round();
        world.packets.clear();
        vf.restart(&mut world.vf(0)).unwrap();
        world.round();
        assert!(world.packets.is_empty(), "nothing is sent of the old ring");
        assert!(vf.transmit(&mut world.vf(0), 0, &[2; 60]));
        world.round();
        let sent: Vec<_> = world.packets.iter().map(|(_, _, bytes)| bytes.as_slice()).collect();
        assert_eq!(sent, [[2; 60]]);
        assert_eq!(world.card.counters(0).unwrap().malformed, 0);
    }
}

#[test]
fn vf_reset_does_not_disturb_another_vf() {
    let (mut world, _) = running();
    let mut other = AvfDriver::probe(&mut world.vf(1), mac(2)).unwrap();
    other.start(&mut world.vf(1)).unwrap();
    world.card.function_level_reset(0);
    world.round();
    assert!(!other.was_reset(&mut world.vf(1)));
    assert!(other.statistics(&mut world.vf(1)).is_ok());
}

/// Tests 32 resets at once: their bits in GLGEN_VFLRSTAT make a word of ones, the value that a removed card reads as.
#[test]
fn simultaneous_function_level_reset_of_every_vf_is_served() {
    let mut world = CardFixture::new(64);
    (0..64).for_each(|vf| world.card.function_level_reset(vf));
    assert_eq!([0, 4].map(|word| world.card.pf_read(GLGEN_VFLRSTAT + word)), [u32::MAX; 2]);
    world.round();
    assert!((0..64).all(|vf| world.card.read(vf, r::VFGEN_RSTAT) == rstat::ACTIVE));
}
