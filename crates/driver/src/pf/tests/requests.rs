//! Requests and acknowledgements as the registers show them, one visit each. Left out: that both ends understand each
//! other, which is the backplane's.

use super::{Registers, vf};
use crate::hal::Hal;
use crate::pf::Pf;
use core::time::Duration;
use i82576::Pool;
use i82576::bits::{mbvficr, p2v, vmolr};
use i82576::ids::MAX_FRAME;
use i82576::mailbox::{ACK, CTS, INFO_SHIFT, MULTICAST_OVERFLOW, NACK, id, promisc};
use i82576::register as r;
use policy::{Link, PortPolicy, Thresholds, VfPolicy};

/// Two VFs, of which VF 0 has introduced itself.
fn pf() -> (Registers, Pf) {
    let mut hal = Registers::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 2).unwrap();
    ask(&mut hal, &mut pf, 0, &[id::VF_RESET]);
    (hal, pf)
}

/// VF `n` has asked, and the PF looks; answers P2VMAILBOX.
fn ask(hal: &mut Registers, pf: &mut Pf, n: u8, words: &[u32]) -> u32 {
    for (i, word) in (0..).zip(words) {
        hal.write(r::vmbmem(vf(n), i), *word);
    }
    hal.ring(1 << n);
    pf.visit(hal);
    hal.read(r::p2v_mailbox(vf(n)))
}

/// What VF 0 is answered.
fn reply(hal: &mut Registers, pf: &mut Pf, words: &[u32]) -> u32 {
    assert_eq!(ask(hal, pf, 0, words), p2v::ACK | p2v::STS);
    hal.read(r::vmbmem(vf(0), 0))
}

/// VF `n` has acknowledged something; whether it is answered.
fn is_answered(hal: &mut Registers, pf: &mut Pf, n: u8) -> bool {
    hal.write(r::p2v_mailbox(vf(n)), 0);
    hal.ring(1 << n << mbvficr::VFACK_SHIFT);
    pf.visit(hal);
    hal.read(r::p2v_mailbox(vf(n))) == p2v::STS
}

fn hears_every_multicast(hal: &mut Registers) -> bool {
    hal.read(r::vmolr(Pool::FIRST)) & vmolr::MPME != 0
}

#[test]
fn what_is_no_request_is_acknowledged_and_not_answered() {
    let (mut hal, mut pf) = pf();
    for (n, first) in [(0, ACK | id::SET_VLAN), (0, NACK | id::VF_RESET), (2, id::VF_RESET)] {
        assert_eq!(ask(&mut hal, &mut pf, n, &[first]), p2v::ACK, "{first:#x} of VF {n}");
        assert_eq!(hal.read(r::vmbmem(vf(n), 0)), first, "the message is left alone");
    }
    assert_eq!([0, 2].map(|n| pf.counters(vf(n)).unanswered), [2, 1]);
    assert!(!pf.vf_is_active(vf(2)), "there is no such VF");
}

#[test]
fn a_request_that_a_reset_took_back_is_not_served() {
    let mut hal = Registers { race: true, ..Registers::default() };
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 1).unwrap();
    assert_eq!(ask(&mut hal, &mut pf, 0, &[id::VF_RESET]), 0, "the buffer is given back");
    assert!(!pf.vf_is_active(vf(0)));
    hal.race = false;
    ask(&mut hal, &mut pf, 0, &[id::VF_RESET]);
    assert!(pf.vf_is_active(vf(0)));
}

#[test]
fn a_buffer_that_a_vf_keeps_is_taken_from_it_at_the_tenth_visit() {
    let (mut hal, mut pf) = pf();
    hal.held = true;
    for visit in 1..=10 {
        assert_eq!(pf.counters(vf(0)).dropped, 0, "visit {visit}");
        hal.ring(0x0001_0001);
        pf.visit(&mut hal);
    }
    assert_eq!(pf.counters(vf(0)).dropped, 1);
    hal.held = false;
    assert_eq!(hal.read(r::p2v_mailbox(vf(0))), p2v::RVFU);
    assert_eq!(hal.read(r::MBVFICR), 0, "request and acknowledgement are cleared");
}

#[test]
fn only_a_vf_that_has_not_introduced_itself_is_told_so() {
    let (mut hal, mut pf) = pf();
    let answered = [0, 1, 2].map(|n| is_answered(&mut hal, &mut pf, n));
    assert_eq!(answered, [false, true, false], "VF 0 has, and there is no VF 2");
}

#[test]
fn it_is_told_so_no_more_often_than_every_two_seconds() {
    let (mut hal, mut pf) = pf();
    assert!(is_answered(&mut hal, &mut pf, 1));
    hal.wait(Duration::from_secs(2));
    assert!(!is_answered(&mut hal, &mut pf, 1));
    hal.wait(Duration::from_micros(1));
    assert!(is_answered(&mut hal, &mut pf, 1));
}

#[test]
fn a_notice_never_overwrites_a_request() {
    let (mut hal, mut pf) = pf();
    hal.wait(Duration::from_secs(2));
    hal.write(r::vmbmem(vf(0), 0), id::SET_VLAN);
    hal.ring(1);
    pf.notify(&mut hal, vf(0));
    assert_eq!(hal.read(r::vmbmem(vf(0), 0)), id::SET_VLAN);
    assert_eq!(hal.read(r::p2v_mailbox(vf(0))), 0, "the buffer is given back");
    hal.ring(0);
    pf.visit(&mut hal);
    assert_eq!(hal.read(r::vmbmem(vf(0), 0)), id::PF_CONTROL | CTS, "said at the next visit");
}

#[test]
fn a_notice_waits_for_a_reply_to_be_read_for_a_second_at_the_most() {
    let (mut hal, mut pf) = pf();
    let said = hal.now();
    let reply = hal.read(r::vmbmem(vf(0), 0));
    pf.notify(&mut hal, vf(0));
    for micros in [0, 999_999] {
        hal.now = said + Duration::from_micros(micros);
        assert_eq!(pf.visit(&mut hal).deadline, Some(said + Duration::from_secs(1)));
        assert_eq!(hal.read(r::vmbmem(vf(0), 0)), reply, "after {micros} us");
    }
    hal.now = said + Duration::from_secs(1);
    assert_eq!(pf.visit(&mut hal).deadline, None);
    assert_eq!(hal.read(r::vmbmem(vf(0), 0)), id::PF_CONTROL | CTS);
}

#[test]
fn a_notice_is_tried_again_after_as_long_as_it_has_waited() {
    let (mut hal, mut pf) = pf();
    hal.held = true;
    hal.wait(Duration::from_secs(2));
    let since = hal.now();
    pf.notify(&mut hal, vf(0));
    for (waited, retry) in [(0, 1), (1, 1), (300, 300), (1_000, 1_000), (5_000, 1_000)] {
        hal.now = since + Duration::from_millis(waited);
        let next = hal.now() + Duration::from_millis(retry);
        assert_eq!(pf.visit(&mut hal).deadline, Some(next), "after {waited} ms");
    }
    ask(&mut hal, &mut pf, 0, &[]);
    let next = hal.now() + Duration::from_millis(1);
    assert_eq!(pf.visit(&mut hal).deadline, Some(next), "a VF that keeps its own request waiting");
}

#[test]
fn only_vfs_that_there_are_hear_notices() {
    let (mut hal, mut pf) = pf();
    pf.notify(&mut hal, vf(2));
    assert_eq!((pf.counters(vf(2)).notices, hal.read(r::vmbmem(vf(2), 0))), (0, 0));
}

#[test]
fn a_throttle_ends_with_a_visit_in_time() {
    let (mut hal, mut pf) = pf();
    let flood = [0, 0, 0, 0, 0, 100];
    let limits = [Thresholds { warn: 0, throttle: 50, quarantine: 0 }; 6];
    pf.set_port_policy(&mut hal, PortPolicy { limits, ..PortPolicy::default() }).unwrap();
    pf.watch(&mut hal, vf(0), [0; 6]);
    hal.wait(Duration::from_secs(1));
    pf.watch(&mut hal, vf(0), flood).unwrap();
    let ends = hal.now() + Duration::from_secs(10);
    assert_eq!(pf.visit(&mut hal).deadline, Some(ends));
    hal.now = ends;
    assert_eq!((pf.visit(&mut hal).deadline, pf.conduct(vf(0)).throttled()), (None, false));
}

#[test]
fn groups_come_two_hashes_a_dword() {
    let (mut hal, mut pf) = pf();
    let message = [id::SET_MULTICAST | 3 << INFO_SHIFT, 0x0fb0_0021, 0x0000_0042];
    assert_eq!(reply(&mut hal, &mut pf, &message), message[0] | ACK | CTS);
    let table = [0x021, 0xfb0, 0x042].map(|hash| hal.read(r::mta(hash >> 5)) & 1 << (hash & 31) != 0);
    assert_eq!(table, [true; 3]);
}

#[test]
fn more_groups_than_thirty_are_all_groups() {
    for (info, all) in [(30, false), (31, true), (2, false), (MULTICAST_OVERFLOW | 2, true)] {
        let (mut hal, mut pf) = pf();
        ask(&mut hal, &mut pf, 0, &[id::SET_MULTICAST | info << INFO_SHIFT]);
        assert_eq!(hears_every_multicast(&mut hal), all, "{info:#x}");
    }
}

#[test]
fn a_list_that_did_not_fit_is_no_longer_all_groups_once_that_is_forbidden() {
    let (mut hal, mut pf) = pf();
    ask(&mut hal, &mut pf, 0, &[id::SET_MULTICAST | 31 << INFO_SHIFT]);
    let policy = VfPolicy { allmulti: false, ..*pf.policy(vf(0)) };
    pf.set_policy(&mut hal, vf(0), policy).unwrap();
    assert!(!hears_every_multicast(&mut hal));
    let policy = VfPolicy { allmulti: true, ..policy };
    pf.set_policy(&mut hal, vf(0), policy).unwrap();
    assert!(!hears_every_multicast(&mut hal), "the VF has to ask again");
}

#[test]
fn a_policy_is_noticed_by_the_guest_if_it_is_about_the_link() {
    let (mut hal, mut pf) = pf();
    hal.wait(Duration::from_secs(2));
    let policy = VfPolicy { spoofchk: false, ..*pf.policy(vf(0)) };
    pf.set_policy(&mut hal, vf(0), policy).unwrap();
    assert_eq!(pf.counters(vf(0)).notices, 0);
    pf.set_policy(&mut hal, vf(0), VfPolicy { state: Link::Disable, ..policy }).unwrap();
    assert_eq!(pf.counters(vf(0)).notices, 1);
}

#[test]
fn every_multicast_is_heard_until_it_is_no_longer_asked_for() {
    let (mut hal, mut pf) = pf();
    for on in [true, false] {
        let bit = if on { promisc::MULTICAST } else { 0 };
        let message = id::SET_PROMISC | bit << INFO_SHIFT;
        assert_eq!(reply(&mut hal, &mut pf, &[message]), id::SET_PROMISC | ACK | CTS);
        assert_eq!(hears_every_multicast(&mut hal), on);
    }
}

#[test]
fn a_frame_may_be_as_long_as_the_card_takes() {
    let (mut hal, mut pf) = pf();
    let mut asked = |bytes| reply(&mut hal, &mut pf, &[id::SET_LPE, bytes]);
    assert_eq!(asked(MAX_FRAME as u32), id::SET_LPE | ACK | CTS);
    assert_eq!(asked(MAX_FRAME as u32 + 1), id::SET_LPE | NACK | CTS);
}
