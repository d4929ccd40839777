//! Tests of the memory that a front end shares: table, slots, and memory that is refused or changes under running rings.

use super::PORT;
use super::front_end::{VhostTestFrontEnd, region};
use super::guest::{RECEIVE, RING, VirtioGuest, exchange};
use crate::support::eventually;
use crate::support::live::LiveHost;
use crate::support::ram::SIZE;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::os::fd::OwnedFd;
use vhost_user::message::{FrontendRequest, MemoryRegion};

const MIB: u64 = 1 << 20;

#[test]
fn ring_without_shared_memory_sets_a_hint_with_the_remedy() {
    let live = LiveHost::with(PORT);
    let guest = VirtioGuest::boot(&live, 0);
    guest.front.stream.hang_up();
    eventually("the VF is free", || live.show(0).peer.is_none());
    let mut front = VhostTestFrontEnd::greet(&live.socket(0));
    let ring = &guest.receive;
    front.start_ring(RECEIVE, (RING.into(), 0), ring.addresses, (&ring.kick, &ring.call));
    eventually("the remedy is shown", || {
        live.show(0).function.hint.is_some_and(|hint| hint.contains("share=on"))
    });
    front.stream.hang_up();
    eventually("the remedy is gone", || live.show(0).function.hint.is_none());
}

#[test]
fn memory_table_and_slots_map_and_unmap_guest_memory() {
    let live = LiveHost::with(PORT);
    let mut front = VhostTestFrontEnd::greet(&live.socket(0));
    let shareable =
        |live: &LiveHost| live.show(0).peer.as_ref().map(|peer| (peer.shareable, peer.shareable_bytes));
    let table = FrontendRequest::SetMemTable(vec![region(0, MIB), region(2 * MIB, MIB)]);
    let fds = vec![front.ram.fd(), front.ram.fd()];
    front.accept(&table, fds);
    assert_eq!(shareable(&live), Some((2, 2 * MIB)));
    let fd = front.ram.fd();
    front.accept(&FrontendRequest::AddMemReg(region(4 * MIB, MIB)), vec![fd]);
    assert_eq!(shareable(&live), Some((3, 3 * MIB)));
    front.accept(&FrontendRequest::RemMemReg(region(0, MIB)), vec![]);
    assert_eq!(shareable(&live), Some((2, 2 * MIB)));
    let fd = front.ram.fd();
    front.accept(&FrontendRequest::SetMemTable(vec![region(0, SIZE)]), vec![fd]);
    assert_eq!(shareable(&live), Some((1, SIZE)));
    front.accept(&FrontendRequest::SetMemTable(vec![]), vec![]);
    eventually("all memory is unmapped", || front.ram.mapped_by_the_host() == 0);
}

#[test]
fn overlapping_empty_or_wrapping_memory_regions_are_refused() {
    let live = LiveHost::with(PORT);
    let mut front = VhostTestFrontEnd::greet(&live.socket(0));
    front.share_memory();
    let other = MemoryRegion { user_address: 0x1000_0000, ..region(SIZE, MIB) };
    let wrapping = MemoryRegion { guest_address: u64::MAX - 0xfff, ..other };
    for bad in [
        MemoryRegion { guest_address: SIZE - 4096, ..other },
        MemoryRegion { user_address: region(0, 0).user_address, ..other },
        MemoryRegion { size: 0, ..other },
        wrapping,
    ] {
        let fd = front.ram.fd();
        front.refuse(&FrontendRequest::AddMemReg(bad), vec![fd]);
    }
    assert_eq!(live.show(0).peer.as_ref().map(|peer| peer.shareable), Some(1));
}

/// Returns a new memory file of `size` bytes that is not part of the guest's memory.
fn memfd(size: u64) -> OwnedFd {
    let fd = memfd_create("other", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&fd, size).unwrap();
    fd
}

#[test]
fn memory_of_wrong_kind_size_or_alignment_is_refused() {
    let live = LiveHost::with(PORT);
    let mut front = VhostTestFrontEnd::greet(&live.socket(0));
    let whole = MemoryRegion { file_offset: 0, ..region(0, MIB) };
    let (_reader, pipe) = std::io::pipe().unwrap();
    let file: OwnedFd = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap().into();
    let odd = MemoryRegion { size: MIB - 1, ..whole };
    let shifted = MemoryRegion { file_offset: 1, ..whole };
    for (bad, fd) in [
        (whole, pipe.into()),
        (whole, file),
        (whole, memfd(MIB - 4096)),
        (odd, memfd(MIB)),
        (shifted, memfd(2 * MIB)),
    ] {
        front.refuse(&FrontendRequest::AddMemReg(bad), vec![fd]);
        assert_eq!(live.show(0).peer.as_ref().map(|peer| peer.shareable), Some(0));
    }
    // One bad region of a table refuses the table.
    let fds = vec![memfd(MIB), memfd(4096)];
    let table = vec![whole, MemoryRegion { file_offset: 0, ..region(2 * MIB, MIB) }];
    front.refuse(&FrontendRequest::SetMemTable(table), fds);
    assert_eq!(live.show(0).peer.as_ref().map(|peer| peer.shareable), Some(0));
    front.accept(&FrontendRequest::AddMemReg(whole), vec![memfd(MIB)]);
}

#[test]
fn memory_beyond_the_clients_limit_is_refused() {
    let live = LiveHost::with(&format!("client_memory = \"16M\"\n{PORT}"));
    let mut front = VhostTestFrontEnd::greet(&live.socket(0));
    let half = |at: u64| MemoryRegion { file_offset: 0, ..region(at, 9 * MIB) };
    let fds = vec![front.ram.fd(), front.ram.fd()];
    front.refuse(&FrontendRequest::SetMemTable(vec![half(0), half(16 * MIB)]), fds);
    let fd = front.ram.fd();
    front.accept(&FrontendRequest::SetMemTable(vec![half(0)]), vec![fd]);
}

#[test]
fn ring_in_removed_memory_stops_until_memory_is_added_again() {
    let live = LiveHost::with(PORT);
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    exchange(&mut a, &mut b);
    a.front.accept(&FrontendRequest::RemMemReg(region(0, SIZE)), vec![]);
    a.send(b"meanwhile");
    b.send(b"no receiver");
    eventually("the host has unmapped the memory", || a.front.ram.mapped_by_the_host() == 0);
    a.front.share_memory();
    b.wait_for(b"meanwhile");
    exchange(&mut a, &mut b);
}

/// A hot plug of memory pauses the rings of a driver that runs.
#[test]
fn added_memory_leaves_a_silent_guest_its_learned_address() {
    let live = LiveHost::with("[[port]]\nfamily = \"virtio\"\nvfs = 3\n");
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    exchange(&mut a, &mut b);
    let more = MemoryRegion { file_offset: 0, ..region(SIZE, MIB) };
    b.front.accept(&FrontendRequest::AddMemReg(more), vec![memfd(MIB)]);
    a.send_from(a.mac(), b.mac(), b"to a silent guest");
    b.wait_for(b"to a silent guest");
}

#[test]
fn truncated_ring_memory_disconnects_only_its_client() {
    let live = LiveHost::with(PORT);
    let mut guests: Vec<_> = (0..3).map(|vf| VirtioGuest::boot(&live, vf)).collect();
    let (hostile, others) = guests.split_first_mut().unwrap();
    hostile.front.ram.truncate();
    hostile.transmit.kick.signal();
    let [a, b] = others else { unreachable!("two guests are left") };
    exchange(a, b);
    hostile.front.wait_for_end();
    eventually("the VF is free", || live.show(0).peer.is_none());
    exchange(a, b);
}
