//! Tests of the thresholds for offences of malicious guests with a virtio device. A quarantine ends the connection of the
//! guest's VMM, the only signal of a link that vhost-user has.

use super::{QUARANTINE, THROTTLE, WARN, is_quarantined, limit, until};
use crate::support::eventually;
use crate::support::live::LiveHost;
use crate::vhost::front_end::VhostTestFrontEnd;
use crate::vhost::guest::{DriverRing, VirtioGuest, exchange};
use crate::vhost::refusal::{connect_later, wait_shut};
use daemon::settings::{ConductThresholds, VfSettings};
use host::socket::StreamSocket;

const PORT: &str = "[[port]]\nfamily = \"virtio\"\nvfs = 2\n";
/// Ethernet address of no guest.
const FOREIGN: [u8; 6] = [2, 6, 6, 6, 6, 6];
/// Guest address behind the end of guest memory.
const UNMAPPED: u64 = 1 << 40;
/// Bytes of a packet without a frame: of its virtio-net header.
const HEADER_ALONE: u32 = 12;

/// Starts a host with a guest on VF 0, and then sets the thresholds for one kind of offence.
fn world(kind: &str, limits: ConductThresholds) -> (LiveHost, VirtioGuest) {
    let live = LiveHost::with(PORT);
    let guest = VirtioGuest::boot(&live, 0);
    limit(&live, kind, limits);
    (live, guest)
}

fn broadcast(guest: &mut VirtioGuest) {
    guest.if_room(1, |guest| guest.send(&[1; 60]));
}

/// Makes a transmit buffer of `length` bytes available.
fn offer(guest: &mut VirtioGuest, length: u32) {
    guest.if_room(1, |guest| guest.transmit.offer(&guest.front.ram, length, 0));
}

/// Checks that two guests exchange unicast frames, which are no storm.
fn exchange_unicast(a: &mut VirtioGuest, b: &mut VirtioGuest) {
    let ([mac_a, mac_b], mut arrived) = ([a.mac(), b.mac()], [false; 2]);
    let took = |guest: &mut VirtioGuest| guest.take().iter().any(|payload| payload.starts_with(b"unicast"));
    eventually("frames pass both ways", || {
        a.if_room(1, |a| a.send_to(mac_b, b"unicast"));
        b.if_room(1, |b| b.send_to(mac_a, b"unicast"));
        arrived = [arrived[0] | took(a), arrived[1] | took(b)];
        arrived == [true; 2]
    });
}

#[test]
fn frequent_reconnections_quarantine_a_vf() {
    let live = LiveHost::with(PORT);
    limit(&live, "mailbox", QUARANTINE);
    is_quarantined(&live, "mailbox", || {
        // A quarantined VF accepts no connection.
        let _ = StreamSocket::connect(&live.socket(0)).map(VhostTestFrontEnd::over);
    });
}

#[test]
fn spoofing_quarantines_a_vf() {
    let (live, mut a) = world("spoofing", QUARANTINE);
    let mut b = VirtioGuest::boot(&live, 1);
    exchange(&mut a, &mut b);
    is_quarantined(&live, "spoofing", || {
        a.if_room(1, |a| a.send_from(FOREIGN, b.mac(), &[1; 60]));
    });
}

#[test]
fn interrupts_for_sent_frames_quarantine_a_vf() {
    let (live, mut a) = world("interrupts", QUARANTINE);
    is_quarantined(&live, "interrupts", || broadcast(&mut a));
}

#[test]
fn packets_without_a_frame_quarantine_a_vf() {
    let (live, mut a) = world("invalid", QUARANTINE);
    is_quarantined(&live, "invalid", || offer(&mut a, HEADER_ALONE));
}

#[test]
fn dma_faults_quarantine_a_vf() {
    let (live, mut a) = world("dma-faults", QUARANTINE);
    a.transmit.buffers = UNMAPPED;
    is_quarantined(&live, "dma-faults", || offer(&mut a, 100));
}

#[test]
fn offence_above_the_warning_threshold_does_not_stop_a_vf() {
    let (live, mut a) = world("storm", WARN);
    let mut b = VirtioGuest::boot(&live, 1);
    let offend = || broadcast(&mut a);
    let status = until(&live, "the offence is counted", offend, |status| !status.conduct.offences.is_empty());
    assert_eq!((status.conduct.quarantine, status.conduct.throttled, status.link), (None, false, true));
    exchange_unicast(&mut a, &mut b);
}

#[test]
fn throttled_vf_is_released_by_the_administrator() {
    let (live, mut a) = world("storm", THROTTLE);
    let offend = || broadcast(&mut a);
    let status = until(&live, "the VF is throttled", offend, |status| status.conduct.throttled);
    assert_eq!((status.conduct.quarantine, status.link), (None, true));
    let status = live.change(0, VfSettings { quarantine: Some(false), ..VfSettings::default() });
    assert!(!status.conduct.throttled);
}

#[test]
fn quarantined_vf_serves_no_vmm_until_its_release() {
    let (mut live, mut a) = world("storm", QUARANTINE);
    let mut b = VirtioGuest::boot(&live, 1);
    let offend = || broadcast(&mut a);
    until(&live, "the VF is quarantined", offend, |status| status.conduct.quarantine.is_some());
    a.front.wait_for_end();
    live.hand_over(PORT);
    let status = live.show(0);
    assert_eq!((status.conduct.quarantine.as_deref(), status.link), (Some("storm"), false));
    assert!(status.conduct.offences["storm"] > 0);
    wait_shut(&live.socket(0));
    let waiting = connect_later(&live.socket(0));
    let status = live.change(0, VfSettings { quarantine: Some(false), ..VfSettings::default() });
    assert_eq!(status.conduct.quarantine, None);
    a.reconnect_on(waiting.join().unwrap());
    exchange_unicast(&mut a, &mut b);
}
