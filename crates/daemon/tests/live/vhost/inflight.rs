//! Tests of records of unfinished descriptors: memory that the host creates, and that a front end returns to the next
//! process. `cloud_hypervisor` has a published front end that uses them.

use super::PORT;
use super::front_end::VhostTestFrontEnd;
use super::guest::{VirtioGuest, exchange};
use crate::support::alone::{alone, descriptors};
use crate::support::eventually;
use crate::support::live::LiveHost;
use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use vhost_user::message::{FrontendRequest, InflightArea};

/// Rings of a guest's queue pair, and descriptors of each.
const RINGS: (u16, u16) = (2, 64);
/// Bytes of the records of both split rings.
const SIZE: u64 = 2 * (16 + 64 * 16 + 48);

/// Returns the request by which a front end returns records.
fn returned(area: InflightArea) -> FrontendRequest {
    FrontendRequest::SetInflightFd(area)
}

fn memfd(bytes: u64) -> File {
    let file = memfd_create("inflight", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, bytes).unwrap();
    file.into()
}

fn area(size: u64, offset: u64) -> InflightArea {
    InflightArea { size, offset, queues: RINGS.0, queue_size: RINGS.1 }
}

fn copy(fd: &OwnedFd) -> OwnedFd {
    fd.try_clone().unwrap()
}

#[test]
fn no_chain_is_lost_or_doubled_after_records_return() {
    let live = LiveHost::with(PORT);
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    let (records, file) = a.front.create_inflight(RINGS.0, RINGS.1).unwrap();
    assert_eq!((records.size, fstat(&file).unwrap().st_size), (SIZE, SIZE.cast_signed()));
    exchange(&mut a, &mut b);
    for _ in 0..3 {
        let sent = live.show(0).function.tx.packets;
        live.disconnect(0).unwrap();
        a.front.wait_for_end();
        (0..10).for_each(|_| a.send(b"while no host runs"));
        a.reconnect(&live.socket(0));
        a.front.accept(&returned(records), vec![copy(&file)]);
        eventually("each frame is sent once", || live.show(0).function.tx.packets >= sent + 10);
        exchange(&mut a, &mut b);
        assert_eq!(live.show(0).function.tx.packets, sent + 10 + 5);
    }
}

#[test]
fn records_of_rings_that_a_vf_lacks_are_not_created() {
    let live = LiveHost::with(PORT);
    for (queues, size) in [(0, 64), (65_535, 64), (33, 64), (2, 0), (2, 32_769), (65_535, 65_535)] {
        let mut front = VhostTestFrontEnd::greet(&live.socket(0));
        front.refuse(
            &returned(InflightArea { queues, queue_size: size, ..area(1 << 40, 0) }),
            vec![memfd(4096).into()],
        );
        assert!(front.create_inflight(queues, size).is_none(), "{queues} rings of {size}");
        eventually("the VF is free", || live.show(0).peer.is_none());
    }
    let mut front = VhostTestFrontEnd::greet(&live.socket(0));
    let (records, file) = front.create_inflight(32, 32_768).unwrap();
    front.accept(&returned(records), vec![file]);
}

#[test]
fn short_truncated_or_foreign_files_of_records_are_refused() {
    let live = LiveHost::with(PORT);
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    let (records, file) = a.front.create_inflight(RINGS.0, RINGS.1).unwrap();
    assert!(ftruncate(&file, 0).is_err(), "the host's memory can shrink");
    let offsets = [SIZE, i64::MAX as u64 - SIZE, u64::MAX].map(|offset| area(SIZE, offset));
    let sizes = [0, 1, 2 * (16 + 64 * 16) - 1, 1 << 62, u64::MAX].map(|size| area(size, 0));
    for wrong in offsets.into_iter().chain(sizes) {
        a.front.refuse(&returned(wrong), vec![copy(&file)]);
    }
    a.front.refuse(&returned(records), vec![memfd(16).into()]);
    a.front.refuse(&returned(records), vec![memfd(0).into()]);
    let (reader, _writer) = std::io::pipe().unwrap();
    a.front.refuse(&returned(records), vec![reader.into()]);
    a.front.refuse(&returned(records), vec![File::open("/dev/zero").unwrap().into()]);
    a.front.refuse(&returned(records), vec![]);
    // Version 1 with an unfinished descriptor in the second ring: another back end has returned chains out of order.
    let foreign = memfd(SIZE);
    let second = SIZE / 2;
    foreign.write_all_at(&[1, 0, 64, 0], second + 8).unwrap();
    a.front.accept(&returned(records), vec![foreign.try_clone().unwrap().into()]);
    foreign.write_all_at(&[1], second + 16 + 63 * 16).unwrap();
    a.front.refuse(&returned(records), vec![foreign.into()]);
    exchange(&mut a, &mut b);
}

/// The number in a ring's record of the batch that it returned last, and its used index, are the front end's.
#[test]
fn dpdk_5a4fbe7_last_index_of_returned_records_is_unused() {
    let live = LiveHost::with(PORT);
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    let (records, file) = a.front.create_inflight(RINGS.0, RINGS.1).unwrap();
    let file = File::from(file);
    for index in [0_u16, 63, 64, 0x8000, 0xffff] {
        let bytes = [index.to_le_bytes(); 2].concat();
        [0, SIZE / 2].iter().for_each(|ring| file.write_all_at(&bytes, ring + 12).unwrap());
        let sent = live.show(0).function.tx.packets;
        a.front.accept(&returned(records), vec![file.try_clone().unwrap().into()]);
        exchange(&mut a, &mut b);
        assert_eq!(live.show(0).function.tx.packets, sent + 5, "index {index}");
    }
    assert!(live.is_whole());
}

#[test]
fn cve_2020_10726_repeated_records_keep_no_descriptor() {
    alone("vhost::inflight::cve_2020_10726_repeated_records_keep_no_descriptor", || {
        let live = LiveHost::with(PORT);
        let mut front = VirtioGuest::boot(&live, 0).front;
        let mut repeat = || {
            let (records, file) = front.create_inflight(RINGS.0, RINGS.1).unwrap();
            front.accept(&returned(records), vec![copy(&file)]);
            front.accept(&returned(records), vec![file]);
        };
        repeat();
        let before = descriptors();
        (0..200).for_each(|_| repeat());
        eventually("all descriptors are closed", || descriptors() <= before);
    });
}

#[test]
fn records_returned_before_features_are_refused() {
    let live = LiveHost::with(PORT);
    let mut front = VhostTestFrontEnd::connect(&live.socket(0));
    let protocol = front.number(&FrontendRequest::GetProtocolFeatures);
    front.post(&FrontendRequest::SetProtocolFeatures(protocol), vec![]);
    front.refuse(&returned(area(SIZE, 0)), vec![memfd(SIZE).into()]);
}
