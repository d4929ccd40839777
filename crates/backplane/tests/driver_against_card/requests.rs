//! Tests requests that the PF refuses, with their reasons, and messages that only a broken or hostile driver sends.

use crate::support::{DrivenCardFixture, between, index};
use backplane::{Backplane, PORT_MAC, vf_mac};
use driver::Hal;
use driver::pf::{MailboxCounters, MailboxRefusal};
use driver::vf::{MailboxError, VfError};
use i82576::MacAddress;
use i82576::register::vf::{CTRL, V2PMAILBOX, VMBMEM};
use policy::VfPolicy;

fn policy(bench: &mut DrivenCardFixture, vf: u8, change: impl FnOnce(&mut VfPolicy)) {
    let mut policy = *bench.card.pf_driver().unwrap().policy(index(vf));
    change(&mut policy);
    bench.card.with_pf_driver(|pf, hal| pf.set_policy(hal, index(vf), policy)).unwrap().unwrap();
}

fn counters(bench: &DrivenCardFixture) -> MailboxCounters {
    *bench.card.pf_driver().unwrap().counters(index(0))
}

const REFUSED_MAC: Result<(), VfError> = Err(VfError::Mailbox(MailboxError::Refused(2)));
const NEW: MacAddress = MacAddress([2, 7, 7, 7, 7, 7]);

#[test]
fn vf_receives_frames_only_at_its_changed_mac_address() {
    let mut bench = DrivenCardFixture::new(2);
    bench.on(1, |vf, hal| vf.set_mac(hal, NEW)).unwrap();
    let frame = crate::support::frame(NEW, vf_mac(0), 64, 1);
    bench.send(0, &frame);
    bench.send(0, &between(0, 1, 64, 2));
    assert_eq!(bench.receive_all(1), [frame]);
}

#[test]
fn untrusted_vf_cannot_change_its_assigned_mac_address() {
    let mut bench = DrivenCardFixture::new(1);
    policy(&mut bench, 0, |p| p.admin_mac = true);
    assert_eq!(bench.on(0, |vf, hal| vf.set_mac(hal, NEW)), REFUSED_MAC);
    bench.on(0, |vf, hal| vf.set_mac(hal, vf_mac(0))).unwrap();
    let add = bench.on(0, |vf, hal| vf.add_mac(hal, NEW));
    assert_eq!(add, Err(VfError::Mailbox(MailboxError::Refused(0x2_0002))));
    assert_eq!(counters(&bench).refused(MailboxRefusal::AddressFixed), 2);
    policy(&mut bench, 0, |p| p.trust = true);
    bench.on(0, |vf, hal| vf.set_mac(hal, NEW)).unwrap();
    assert_eq!(bench.card.pf_driver().unwrap().vf_mac(index(0)), Some(NEW));
}

#[test]
fn vf_request_for_an_invalid_or_foreign_mac_is_refused() {
    let mut bench = DrivenCardFixture::new(2);
    for mac in [MacAddress::ZERO, MacAddress::BROADCAST, MacAddress([1, 0, 0x5e, 0, 0, 1])] {
        assert_eq!(bench.on(0, |vf, hal| vf.set_mac(hal, mac)), REFUSED_MAC);
    }
    for mac in [vf_mac(1), PORT_MAC] {
        assert_eq!(bench.on(0, |vf, hal| vf.set_mac(hal, mac)), REFUSED_MAC);
    }
    let counters = counters(&bench);
    assert_eq!(counters.refused(MailboxRefusal::AddressInvalid), 3);
    assert_eq!(counters.refused(MailboxRefusal::AddressInUse), 2);
    assert_eq!(bench.vfs[0].mac(), vf_mac(0));
}

/// Covers two VFs with a virtual router's address, as master and backup (keepalived with use_vmac), and a client.
#[test]
fn backup_of_a_virtual_router_receives_after_fail_over() {
    let (mut bench, router) = (DrivenCardFixture::new(3), MacAddress([0, 0, 0x5e, 0, 1, 51]));
    let (client, master, backup) = (0, 1, 2);
    for vf in [master, backup] {
        bench.on(vf, |vf, hal| vf.add_mac(hal, router)).unwrap();
    }
    for active in [master, backup] {
        let announcement = crate::support::frame(vf_mac(client), router, 64, 1);
        bench.send(active, &announcement);
        assert_eq!(bench.receive_all(client), [announcement], "its filters hold the source address");
        let ping = crate::support::frame(router, vf_mac(client), 64, 2);
        bench.send(client, &ping);
        assert_eq!(bench.receive_all(active), std::slice::from_ref(&ping));
        assert_eq!(bench.receive_all(master + backup - active), [ping], "the other VF's kernel drops it");
    }
    // A neighbour that has not requested the address may not send from it.
    bench.send(client, &crate::support::frame(vf_mac(1), router, 64, 3));
    assert_eq!(bench.receive_all(master).len(), 0);
}

#[test]
fn share_mac_policy_lets_two_vfs_have_the_same_address() {
    for (own, others) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut bench = DrivenCardFixture::new(2);
        bench.on(1, |vf, hal| vf.add_mac(hal, NEW)).unwrap();
        policy(&mut bench, 0, |p| p.share_mac = own);
        policy(&mut bench, 1, |p| p.share_mac = others);
        let asked = bench.on(0, |vf, hal| vf.add_mac(hal, NEW));
        assert_eq!(asked.is_ok(), own && others, "{own}, {others}");
        assert_eq!(counters(&bench).refused(MailboxRefusal::AddressInUse), u64::from(asked.is_err()));
        assert_eq!(bench.on(0, |vf, hal| vf.set_mac(hal, PORT_MAC)), REFUSED_MAC, "the port shares nothing");
    }
}

#[test]
fn additional_mac_addresses_of_vfs_share_one_table() {
    let mut bench = DrivenCardFixture::new(2);
    let mac = |n| MacAddress([2, 6, 6, 6, 6, n]);
    // 24 entries: the port's, three reserved ones, those of two VFs, and one that is guaranteed to VF 1.
    for n in 0..17 {
        bench.on(0, |vf, hal| vf.add_mac(hal, mac(n))).unwrap();
    }
    bench.on(0, |vf, hal| vf.add_mac(hal, mac(3))).unwrap();
    bench.on(0, |vf, hal| vf.add_mac(hal, mac(98))).expect_err("the last one is guaranteed to VF 1");
    bench.on(1, |vf, hal| vf.add_mac(hal, mac(98))).unwrap();
    let refused = bench.on(1, |vf, hal| vf.add_mac(hal, mac(99)));
    assert_eq!(refused, Err(VfError::Mailbox(MailboxError::Refused(0x2_0002))));
    let counters = bench.card.pf_driver().unwrap().counters(index(1));
    assert_eq!(counters.refused(MailboxRefusal::NoFilter), 1);
    bench.on(0, |vf, hal| vf.clear_macs(hal)).unwrap();
    bench.on(1, |vf, hal| vf.add_mac(hal, mac(3))).unwrap();
    let frame = crate::support::frame(mac(3), vf_mac(0), 64, 1);
    bench.send(0, &frame);
    assert_eq!(bench.receive_all(1), [frame]);
}

#[test]
fn vf_request_for_unicast_promiscuous_mode_is_refused() {
    let mut bench = DrivenCardFixture::new(1);
    let refused = bench.on(0, |vf, hal| vf.set_promiscuous(hal));
    assert_eq!(refused, Err(VfError::Mailbox(MailboxError::Refused(0x3_0006))));
    assert_eq!(bench.card.vf(0).read(VMBMEM), 0x6001_0006, "the multicast half was done");
    assert_eq!(counters(&bench).refused(MailboxRefusal::UnicastPromiscuity), 1);
}

/// Sends a mailbox message of VF 0 without the driver's protocol. Returns the first word of the mailbox afterwards.
fn raw(card: &mut Backplane, words: &[u32]) -> u32 {
    let mut hal = card.vf(0);
    hal.write(V2PMAILBOX, 4);
    for (word, i) in words.iter().zip(0..) {
        hal.write(VMBMEM + 4 * i, *word);
    }
    hal.write(V2PMAILBOX, 1);
    card.settle();
    card.vf(0).read(V2PMAILBOX);
    card.vf(0).read(VMBMEM)
}

#[test]
fn pf_refuses_an_unknown_vf_message_by_repeating_it() {
    let mut bench = DrivenCardFixture::new(1);
    assert_eq!(raw(&mut bench.card, &[0x0012_0077]), 0x6012_0077);
    assert_eq!(raw(&mut bench.card, &[0x0001_0001]), 0x6001_0001, "VF_RESET has no info");
    assert_eq!(raw(&mut bench.card, &[5, 9729]), 0x6000_0005);
    let counters = counters(&bench);
    assert_eq!(counters.refused(MailboxRefusal::Unknown), 2);
    assert_eq!(counters.refused(MailboxRefusal::FrameLength), 1);
}

#[test]
fn vf_messages_before_vf_reset_are_refused_at_a_limited_rate() {
    let mut card = Backplane::with_pf(1).unwrap();
    assert_eq!(raw(&mut card, &[2, 3, 4]), 0x4000_0002, "NACK, and not clear to send");
    for _ in 0..10 {
        assert_eq!(raw(&mut card, &[0x33]), 0x33, "too soon for another refusal");
    }
    card.advance(core::time::Duration::from_millis(2_001));
    assert_eq!(raw(&mut card, &[0x33]), 0x4000_0033);
    let counters = *card.pf_driver().unwrap().counters(index(0));
    assert_eq!((counters.refused(MailboxRefusal::NotReady), counters.unanswered), (12, 10));
}

#[test]
fn vf_starts_though_its_reset_reply_assigns_no_mac() {
    let mut bench = DrivenCardFixture::new(1);
    policy(&mut bench, 0, |policy| policy.mac = None);
    assert_eq!(raw(&mut bench.card, &[1]), 0x4000_0001, "NACK, and the guest invents an address");
    assert_eq!(counters(&bench).refused(MailboxRefusal::NoAddress), 1);
    assert!(bench.card.pf_driver().unwrap().vf_is_active(index(0)));
}

#[test]
fn unexpected_mailbox_acknowledgement_is_refused() {
    let mut card = Backplane::with_pf(1).unwrap();
    card.vf(0).write(V2PMAILBOX, 2);
    card.settle();
    assert_eq!(card.vf(0).read(VMBMEM), 0x4000_0000);
}

#[test]
fn vf_that_keeps_the_mailbox_lock_loses_its_request() {
    let mut bench = DrivenCardFixture::new(2);
    let mut hal = bench.card.vf(0);
    hal.write(V2PMAILBOX, 4);
    hal.write(VMBMEM, 1);
    hal.write(V2PMAILBOX, 5);
    bench.advance_us(100_000);
    assert_eq!(counters(&bench).dropped, 1);
    assert_eq!(bench.card.last_visit().deadline, None, "the PF does not retry");
    bench.send(0, &between(0, 1, 64, 1));
    assert_eq!(bench.receive_all(1).len(), 1);
}

#[test]
fn vf_reset_cancels_earlier_mailbox_requests() {
    let mut bench = DrivenCardFixture::new(1);
    let mut hal = bench.card.vf(0);
    hal.write(V2PMAILBOX, 4);
    hal.write(VMBMEM, 0x1_0004);
    hal.write(VMBMEM + 4, 9);
    hal.write(V2PMAILBOX, 1);
    hal.write(CTRL, 1 << 26);
    bench.card.settle();
    assert_eq!(bench.card.pf_driver().unwrap().vf_vlans(index(0)).collect::<Vec<_>>(), [0]);
    assert!(!bench.card.pf_driver().unwrap().vf_is_active(index(0)));
}
