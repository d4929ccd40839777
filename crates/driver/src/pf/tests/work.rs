//! Tests the work that the PF driver measures for VFs, and the VFs whose work waits for credit.

use super::{StoredRegisters, vf};
use crate::hal::Hal;
use crate::pf::Pf;
use core::time::Duration;
use i82576::bits::mbvficr;
use i82576::mailbox::{INFO_SHIFT, id};
use i82576::register as r;
use units::WorkCost;

/// Creates a PF whose two enabled VFs have sent VF_RESET.
fn pf() -> (StoredRegisters, Pf) {
    let mut hal = StoredRegisters::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 2).unwrap();
    for n in [0, 1] {
        request(&mut hal, n, &[id::VF_RESET]);
        pf.visit(&mut hal);
    }
    (hal, pf)
}

/// Puts a request of VF `n` into its mailbox.
fn request(hal: &mut StoredRegisters, n: u8, words: &[u32]) {
    for (i, word) in (0..).zip(words) {
        hal.write(r::vmbmem(vf(n), i), *word);
    }
    let events = hal.read(r::MBVFICR);
    hal.ring(events | 1 << n);
}

/// Serves a request of VF 0. Returns its cost, and true if the switch's tables may have changed.
fn cost(words: &[u32]) -> (u32, bool) {
    let (mut hal, mut pf) = pf();
    request(&mut hal, 0, words);
    let work = pf.visit(&mut hal).work;
    assert_eq!((work.costs[1], work.unpaid), (WorkCost(0), 0));
    (work.costs[0].0, work.changed == 1)
}

#[test]
fn requests_cost_by_kind() {
    let join = cost(&[id::SET_VLAN | 1 << INFO_SHIFT, 7]);
    let kinds = [cost(&[0x7f]), cost(&[id::SET_LPE, 1518]), join, cost(&[id::VF_RESET])];
    assert!(kinds.is_sorted(), "{kinds:?}");
    assert!((60..=90).contains(&kinds[0].0), "an unknown message: {kinds:?}");
    assert!((150..=400).contains(&kinds[3].0), "VF_RESET: {kinds:?}");
    assert_eq!(kinds.map(|(_, changes)| changes), [false, true, true, true]);
}

#[test]
fn look_ups_are_paid_by_the_vf_that_has_changed_vlans() {
    let neighbours_cost = |leaves: bool| {
        let (mut hal, mut pf) = pf();
        // One VLAN more than the filters that are not guaranteed to VF 1.
        let granted = (1..31).take_while(|vlan| pf.set_vlan(&mut hal, vf(0), true, *vlan).is_ok()).count();
        assert_eq!(granted, 29);
        pf.visit(&mut hal);
        if leaves {
            request(&mut hal, 0, &[id::SET_VLAN, 1]);
        }
        request(&mut hal, 1, &[id::SET_LPE, 1518]);
        let work = pf.visit(&mut hal).work;
        assert_eq!(work.changed_vlans == 1, leaves);
        work.costs[1]
    };
    assert_eq!(neighbours_cost(true), neighbours_cost(false));
}

#[test]
fn vf_whose_reset_waits_gets_no_notice() {
    let (mut hal, mut pf) = pf();
    pf.hold_requests(0b01);
    hal.write(r::VFLRE, 0b01);
    // The VFs have read the replies to VF_RESET.
    hal.wait(Duration::from_secs(1));
    pf.notify_all(&mut hal);
    let notices = |pf: &Pf| [0, 1].map(|n| pf.counters(vf(n)).notices);
    assert_eq!(notices(&pf), [0, 1], "the reset drops the notice of VF 0");
    pf.hold_requests(0);
    pf.visit(&mut hal);
    assert_eq!(notices(&pf), [0, 1]);
    pf.notify(&mut hal, vf(0));
    assert_eq!(notices(&pf), [1, 1]);
}

#[test]
fn acknowledgements_are_charged() {
    let (mut hal, mut pf) = pf();
    hal.ring(1 << mbvficr::VFACK_SHIFT);
    assert_eq!(pf.visit(&mut hal).work.costs[0], WorkCost(1));
}

#[test]
fn request_of_a_vf_without_credit_waits() {
    let (mut hal, mut pf) = pf();
    pf.hold_requests(0b01);
    for n in [0, 1] {
        request(&mut hal, n, &[id::VF_RESET]);
    }
    let visit = pf.visit(&mut hal);
    assert_eq!((visit.served, visit.work.unpaid, visit.work.costs[0]), (0b10, 0b01, WorkCost(0)));
    assert_eq!(hal.read(r::MBVFICR), 0b01, "the request stays in the mailbox");
    pf.hold_requests(0);
    let visit = pf.visit(&mut hal);
    assert_eq!((visit.served, visit.work.unpaid), (0b01, 0));
}

#[test]
fn reset_of_a_vf_without_credit_waits() {
    let (mut hal, mut pf) = pf();
    pf.hold_requests(0b01);
    hal.write(r::VFLRE, 0b11);
    let visit = pf.visit(&mut hal);
    assert_eq!((visit.resets, visit.work.unpaid), (0b10, 0b01));
    assert!(pf.vf_is_active(vf(0)) && !pf.vf_is_active(vf(1)));
    hal.write(r::VFLRE, 0b01);
    pf.hold_requests(0);
    let visit = pf.visit(&mut hal);
    assert_eq!((visit.resets, visit.work.unpaid), (0b01, 0));
    assert!(visit.work.costs[0] > WorkCost::SETUP && !pf.vf_is_active(vf(0)));
}
