//! Tests VF requests and acknowledgements in the PF's registers, with one run of the PF driver each. The
//! backplane's tests cover PF and VF together.

use super::{StoredRegisters, vf};
use crate::hal::Hal;
use crate::pf::{MailboxRefusal, Pf};
use core::time::Duration;
use i82576::bits::{mbvficr, p2v, vmolr};
use i82576::ids::MAX_FRAME;
use i82576::mailbox::{ACK, CTS, INFO_SHIFT, MULTICAST_OVERFLOW, NACK, id, mac_filter, promisc};
use i82576::register as r;
use i82576::{MacAddress, PoolIndex};
use policy::{OffenceThresholds, PortPolicy, VfLinkPolicy, VfPolicy};

/// Creates a PF with two enabled VFs, of which VF 0 has sent VF_RESET.
fn pf() -> (StoredRegisters, Pf) {
    let mut hal = StoredRegisters::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 2).unwrap();
    ask(&mut hal, &mut pf, 0, &[id::VF_RESET]);
    (hal, pf)
}

/// Puts a request of VF `n` into its mailbox, and runs the PF driver once. Returns the register P2VMAILBOX.
fn ask(hal: &mut StoredRegisters, pf: &mut Pf, n: u8, words: &[u32]) -> u32 {
    for (i, word) in (0..).zip(words) {
        hal.write(r::vmbmem(vf(n), i), *word);
    }
    hal.ring(1 << n);
    pf.visit(hal);
    hal.read(r::p2v_mailbox(vf(n)))
}

/// Puts a request of VF 0 into its mailbox, and runs the PF driver once. Returns the first word of the PF's
/// reply.
fn reply(hal: &mut StoredRegisters, pf: &mut Pf, words: &[u32]) -> u32 {
    assert_eq!(ask(hal, pf, 0, words), p2v::ACK | p2v::STS);
    hal.read(r::vmbmem(vf(0), 0))
}

/// Acknowledges the PF's last message as VF `n`. Returns true if the PF then sends a message.
fn is_answered(hal: &mut StoredRegisters, pf: &mut Pf, n: u8) -> bool {
    hal.write(r::p2v_mailbox(vf(n)), 0);
    hal.ring(1 << n << mbvficr::VFACK_SHIFT);
    pf.visit(hal);
    hal.read(r::p2v_mailbox(vf(n))) == p2v::STS
}

fn receives_every_multicast(hal: &mut StoredRegisters) -> bool {
    hal.read(r::vmolr(PoolIndex::FIRST)) & vmolr::MPME != 0
}

#[test]
fn mailbox_message_without_a_request_gets_only_an_ack() {
    let (mut hal, mut pf) = pf();
    for (n, first) in [(0, ACK | id::SET_VLAN), (0, NACK | id::VF_RESET), (2, id::VF_RESET)] {
        assert_eq!(ask(&mut hal, &mut pf, n, &[first]), p2v::ACK, "{first:#x} of VF {n}");
        assert_eq!(hal.read(r::vmbmem(vf(n), 0)), first, "the message is unchanged");
    }
    assert_eq!([0, 2].map(|n| pf.counters(vf(n)).unanswered), [2, 1]);
    assert!(!pf.vf_is_active(vf(2)), "the VF is not enabled");
}

#[test]
fn address_that_the_switch_withholds_is_refused() {
    let (mut hal, mut pf) = pf();
    let [station, free] = [9, 5].map(|n| MacAddress([2, 0, 0, 0, 0, n]));
    hal.withheld = Some(station);
    for info in [0, mac_filter::ADD] {
        let first = id::SET_MAC_ADDR | info << INFO_SHIFT;
        let mut request = |mac: MacAddress| {
            let (low, high) = mac.to_words();
            reply(&mut hal, &mut pf, &[first, low, high])
        };
        assert_eq!(request(station), first | NACK | CTS);
        assert_eq!(request(free), first | ACK | CTS);
    }
    assert_eq!(pf.counters(vf(0)).refused(MailboxRefusal::AddressInUse), 2);
    assert_eq!(pf.vf_mac(vf(0)), Some(free));
    // The switch decides again in its tables about an address that the VF has.
    hal.withheld = Some(free);
    let (low, high) = free.to_words();
    assert_eq!(reply(&mut hal, &mut pf, &[id::SET_MAC_ADDR, low, high]), id::SET_MAC_ADDR | ACK | CTS);
}

#[test]
fn vf_request_cleared_by_a_reset_is_not_served() {
    let mut hal = StoredRegisters { race: true, ..StoredRegisters::default() };
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 1).unwrap();
    assert_eq!(ask(&mut hal, &mut pf, 0, &[id::VF_RESET]), 0, "the buffer is unlocked");
    assert!(!pf.vf_is_active(vf(0)));
    hal.race = false;
    ask(&mut hal, &mut pf, 0, &[id::VF_RESET]);
    assert!(pf.vf_is_active(vf(0)));
}

#[test]
fn pf_driver_seizes_a_locked_mailbox_at_its_tenth_poll() {
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
fn ack_from_an_enabled_vf_before_vf_reset_gets_a_refusal() {
    let (mut hal, mut pf) = pf();
    let answered = [0, 1, 2].map(|n| is_answered(&mut hal, &mut pf, n));
    assert_eq!(answered, [false, true, false], "VF 0 has sent VF_RESET, and VF 2 is not enabled");
}

#[test]
fn refusals_without_cts_are_at_least_two_seconds_apart() {
    let (mut hal, mut pf) = pf();
    assert!(is_answered(&mut hal, &mut pf, 1));
    hal.wait(Duration::from_secs(2));
    assert!(!is_answered(&mut hal, &mut pf, 1));
    hal.wait(Duration::from_micros(1));
    assert!(is_answered(&mut hal, &mut pf, 1));
}

#[test]
fn pf_notice_never_overwrites_a_vfs_request() {
    let (mut hal, mut pf) = pf();
    hal.wait(Duration::from_secs(2));
    hal.write(r::vmbmem(vf(0), 0), id::SET_VLAN);
    hal.ring(1);
    pf.notify(&mut hal, vf(0));
    assert_eq!(hal.read(r::vmbmem(vf(0), 0)), id::SET_VLAN);
    assert_eq!(hal.read(r::p2v_mailbox(vf(0))), 0, "the buffer is unlocked");
    hal.ring(0);
    pf.visit(&mut hal);
    assert_eq!(hal.read(r::vmbmem(vf(0), 0)), id::PF_CONTROL | CTS, "sent at the next visit");
}

#[test]
fn pf_notice_waits_at_most_a_second_for_an_unread_reply() {
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
fn pf_notice_retry_delay_equals_time_waited_up_to_a_second() {
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
    assert_eq!(pf.visit(&mut hal).deadline, Some(next), "a VF that blocks its own request");
}

#[test]
fn pf_sends_notices_only_to_enabled_vfs() {
    let (mut hal, mut pf) = pf();
    pf.notify(&mut hal, vf(2));
    assert_eq!((pf.counters(vf(2)).notices, hal.read(r::vmbmem(vf(2), 0))), (0, 0));
}

#[test]
fn vf_throttle_ends_in_the_pf_driver_poll_at_its_deadline() {
    let (mut hal, mut pf) = pf();
    let flood = [0, 0, 0, 0, 0, 100];
    let limits = [OffenceThresholds { warn: 0, throttle: 50, quarantine: 0 }; 6];
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
fn multicast_mailbox_message_has_two_hashes_per_dword() {
    let (mut hal, mut pf) = pf();
    let message = [id::SET_MULTICAST | 3 << INFO_SHIFT, 0x0fb0_0021, 0x0000_0042];
    assert_eq!(reply(&mut hal, &mut pf, &message), message[0] | ACK | CTS);
    let table = [0x021, 0xfb0, 0x042].map(|hash| hal.read(r::mta(hash >> 5)) & 1 << (hash & 31) != 0);
    assert_eq!(table, [true; 3]);
}

#[test]
fn vf_with_over_thirty_multicast_groups_receives_all_groups() {
    for (info, all) in [(30, false), (31, true), (2, false), (MULTICAST_OVERFLOW | 2, true)] {
        let (mut hal, mut pf) = pf();
        ask(&mut hal, &mut pf, 0, &[id::SET_MULTICAST | info << INFO_SHIFT]);
        assert_eq!(receives_every_multicast(&mut hal), all, "{info:#x}");
    }
}

#[test]
fn vf_loses_all_multicast_when_its_policy_forbids_it() {
    let (mut hal, mut pf) = pf();
    ask(&mut hal, &mut pf, 0, &[id::SET_MULTICAST | 31 << INFO_SHIFT]);
    let policy = VfPolicy { allmulti: false, ..*pf.policy(vf(0)) };
    pf.set_policy(&mut hal, vf(0), policy).unwrap();
    assert!(!receives_every_multicast(&mut hal));
    let policy = VfPolicy { allmulti: true, ..policy };
    pf.set_policy(&mut hal, vf(0), policy).unwrap();
    assert!(!receives_every_multicast(&mut hal), "the VF has to request it again");
}

#[test]
fn only_a_link_policy_change_notifies_the_guest() {
    let (mut hal, mut pf) = pf();
    hal.wait(Duration::from_secs(2));
    let policy = VfPolicy { spoofchk: false, ..*pf.policy(vf(0)) };
    pf.set_policy(&mut hal, vf(0), policy).unwrap();
    assert_eq!(pf.counters(vf(0)).notices, 0);
    pf.set_policy(&mut hal, vf(0), VfPolicy { state: VfLinkPolicy::Disable, ..policy }).unwrap();
    assert_eq!(pf.counters(vf(0)).notices, 1);
}

#[test]
fn all_multicast_mode_follows_the_vfs_last_request() {
    let (mut hal, mut pf) = pf();
    for on in [true, false] {
        let bit = if on { promisc::MULTICAST } else { 0 };
        let message = id::SET_PROMISC | bit << INFO_SHIFT;
        assert_eq!(reply(&mut hal, &mut pf, &[message]), id::SET_PROMISC | ACK | CTS);
        assert_eq!(receives_every_multicast(&mut hal), on);
    }
}

#[test]
fn requested_frame_length_is_limited_by_the_card() {
    let (mut hal, mut pf) = pf();
    let mut asked = |bytes| reply(&mut hal, &mut pf, &[id::SET_LPE, bytes]);
    assert_eq!(asked(MAX_FRAME as u32), id::SET_LPE | ACK | CTS);
    assert_eq!(asked(MAX_FRAME as u32 + 1), id::SET_LPE | NACK | CTS);
}
