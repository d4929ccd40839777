//! Tests of live migration: the log of written pages, announcements, and rings that continue elsewhere.

use super::PORT;
use super::front_end::{FEATURES, VhostTestFrontEnd};
use super::guest::{DriverSplitRing, RECEIVE, RING, TRANSMIT, VirtioGuest, exchange};
use crate::support::eventually;
use crate::support::live::LiveHost;
use crate::support::ram::SIZE;
use host::memory::{MappedFile, MemoryProtection};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use vhost_user::features::device::LOG_ALL;
use vhost_user::message::{FrontendRequest, LogArea};

const PAGE: u64 = 4096;
/// Size of a log of all guest memory in bytes.
const LOG: u64 = SIZE / PAGE / 8;
const WHOLE: LogArea = LogArea { size: LOG, offset: 0 };

/// Migration log of a front end.
struct TestLog {
    fd: OwnedFd,
    memory: MappedFile,
}

impl TestLog {
    fn new() -> Self {
        let fd = memfd_create("log", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&fd, LOG).unwrap();
        let memory = MappedFile::map(&fd, 0, LOG, MemoryProtection::ReadWrite).unwrap();
        Self { fd, memory }
    }

    fn copy(&self) -> OwnedFd {
        self.fd.as_fd().try_clone_to_owned().unwrap()
    }

    /// Returns the marked pages.
    fn marked(&self) -> BTreeSet<u64> {
        let mut bytes = [0; LOG as usize];
        self.memory.read(0, &mut bytes).unwrap();
        (0..8 * LOG).filter(|page| bytes[(page / 8) as usize] >> (page % 8) & 1 != 0).collect()
    }
}

/// Begins to log as QEMU does: the log, the feature, and the addresses of the rings.
fn begin_log(guest: &mut VirtioGuest, log: &TestLog) {
    assert!(guest.front.set_log(WHOLE, log.copy()));
    guest.front.accept(&FrontendRequest::SetFeatures(FEATURES | LOG_ALL), vec![]);
    for (ring, of) in [(RECEIVE, &guest.receive), (TRANSMIT, &guest.transmit)] {
        guest.front.log_ring(ring, of.addresses, Some(of.addresses.device));
    }
}

/// Returns the page of a ring's part.
fn page(address: u64) -> u64 {
    address / PAGE
}

#[test]
fn log_has_the_pages_that_the_host_writes_and_no_others() {
    let live = LiveHost::with(PORT);
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    exchange(&mut a, &mut b);
    let log = TestLog::new();
    begin_log(&mut a, &log);
    exchange(&mut a, &mut b);
    let (marked, of) = (log.marked(), |ring: &DriverSplitRing| ring.addresses);
    for written in [of(&a.receive).device, of(&a.transmit).device] {
        assert!(marked.contains(&page(written)), "a used ring in {marked:?}");
    }
    let buffers = page(a.receive.buffers)..page(a.receive.buffers + 2048 * u64::from(RING));
    assert_eq!(marked.iter().filter(|page| buffers.contains(page)).count(), 3, "5 buffers in {marked:?}");
    let others = marked.iter().filter(|page| !buffers.contains(page));
    let allowed = [of(&a.receive).device, of(&a.transmit).device].map(page);
    assert!(others.into_iter().all(|page| allowed.contains(page)), "{marked:?}");
}

#[test]
fn used_ring_is_logged_at_the_address_of_its_front_end() {
    let live = LiveHost::with(PORT);
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    let log = TestLog::new();
    begin_log(&mut a, &log);
    a.front.log_ring(RECEIVE, a.receive.addresses, Some(9 * PAGE));
    exchange(&mut a, &mut b);
    assert!(log.marked().contains(&9));
}

#[test]
fn log_ends_with_the_feature_and_changes_under_traffic() {
    let live = LiveHost::with(PORT);
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    let logs = [(); 3].map(|()| TestLog::new());
    begin_log(&mut a, &logs[0]);
    exchange(&mut a, &mut b);
    assert!(a.front.set_log(WHOLE, logs[1].copy()));
    let before = logs[0].marked();
    logs[0].memory.write(0, &[0; LOG as usize]).unwrap();
    exchange(&mut a, &mut b);
    assert!(!before.is_empty() && logs[0].marked().is_empty() && !logs[1].marked().is_empty());
    a.front.accept(&FrontendRequest::SetFeatures(FEATURES), vec![]);
    logs[1].memory.write(0, &[0; LOG as usize]).unwrap();
    exchange(&mut a, &mut b);
    assert!(logs[1].marked().is_empty());
    begin_log(&mut a, &logs[2]);
    exchange(&mut a, &mut b);
    assert!(!logs[2].marked().is_empty());
}

#[test]
fn unsuitable_log_disconnects_its_client_alone() {
    let live = LiveHost::with(PORT);
    let (mut a, mut b) = (VirtioGuest::boot(&live, 1), VirtioGuest::boot(&live, 2));
    let (_reader, pipe) = std::io::pipe().unwrap();
    let log = TestLog::new();
    for (area, fd) in [
        (WHOLE, pipe.into()),
        (LogArea { size: LOG + PAGE, offset: 0 }, log.copy()),
        (LogArea { size: LOG, offset: PAGE }, log.copy()),
        (LogArea { size: LOG, offset: 1 }, log.copy()),
        (LogArea { size: 0, offset: 0 }, log.copy()),
        (LogArea { size: u64::MAX, offset: PAGE }, log.copy()),
    ] {
        let mut hostile = VhostTestFrontEnd::greet(&live.socket(0));
        assert!(!hostile.set_log(area, fd), "{area:?}");
        eventually("the VF is free", || live.show(0).peer.is_none());
    }
    exchange(&mut a, &mut b);
}

#[test]
fn cve_2020_10722_memory_beyond_a_short_log_is_unmarked() {
    let live = LiveHost::with(PORT);
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    let log = TestLog::new();
    begin_log(&mut a, &log);
    // Memory lies behind the last page of the log.
    assert!(a.front.set_log(LogArea { size: 1, offset: 0 }, log.copy()));
    log.memory.write(0, &[0; LOG as usize]).unwrap();
    exchange(&mut a, &mut b);
    assert!(log.marked().iter().all(|page| *page < 8));
}

#[test]
fn truncated_log_disconnects_its_client_alone() {
    let live = LiveHost::with(PORT);
    let mut guests: Vec<_> = (0..3).map(|vf| VirtioGuest::boot(&live, vf)).collect();
    let (hostile, others) = guests.split_first_mut().unwrap();
    let log = TestLog::new();
    begin_log(hostile, &log);
    ftruncate(&log.fd, 0).unwrap();
    hostile.send(b"marks a page");
    hostile.front.wait_for_end();
    let [a, b] = others else { unreachable!("two guests are left") };
    exchange(a, b);
    let mut next = VirtioGuest::boot(&live, 0);
    exchange(&mut next, a);
}

#[test]
fn front_end_with_a_log_connects_again_after_a_hand_over() {
    let mut live = LiveHost::with(PORT);
    let [mut a, mut b] = [0, 1].map(|vf| VirtioGuest::boot(&live, vf));
    begin_log(&mut a, &TestLog::new());
    live.hand_over(PORT);
    a.front.wait_for_end();
    a.reconnect(&live.socket(0));
    exchange(&mut a, &mut b);
    // QEMU sends the log first, and the feature afterwards.
    assert!(a.front.set_log(WHOLE, TestLog::new().copy()));
    live.hand_over(PORT);
    a.front.wait_for_end();
    a.reconnect(&live.socket(0));
    exchange(&mut a, &mut b);
}

#[test]
fn next_client_has_no_log() {
    let live = LiveHost::with(PORT);
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    let log = TestLog::new();
    begin_log(&mut a, &log);
    a.front.stream.hang_up();
    eventually("the VF is free", || live.show(0).peer.is_none());
    log.memory.write(0, &[0; LOG as usize]).unwrap();
    let mut next = VirtioGuest::boot(&live, 0);
    exchange(&mut next, &mut b);
    assert!(log.marked().is_empty());
}

#[test]
fn guest_that_moves_to_another_vf_continues_and_is_announced() {
    let live = LiveHost::with(PORT);
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    exchange(&mut a, &mut b);
    assert_eq!([RECEIVE, TRANSMIT].map(|ring| a.front.stop_ring(ring)), [5, 5]);
    a.front.stream.hang_up();
    eventually("the VF is free", || live.show(0).peer.is_none());
    a.reconnect(&live.socket(3));
    a.front.accept(&FrontendRequest::SendRarp([2, 0, 0, 0, 7, 0]), vec![]);
    // Hardware and protocol type, lengths, and a request for the sender's own address (RFC 903).
    b.wait_for(&[0, 1, 8, 0, 6, 4, 0, 3, 2, 0, 0, 0, 7, 0]);
    assert_eq!(live.show(3).mac, "02:00:00:00:07:00");
    exchange(&mut a, &mut b);
}
