//! Tests of the card's access to a guest's memory: its extent, and when the access begins and ends.

use crate::support::eventually;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::machine::{COMMAND, CONFIG, ENABLE, Vmm};
use crate::support::qemu::{self, QemuClient};
use crate::support::ram::{GuestRam, HIGH, SIZE};
use crate::support::raw::{RawVfioUserConnection, load, message};
use host::memory::{MappedFile, MemoryProtection};
use rustix::fs::{MemfdFlags, Mode, OFlags, ftruncate, memfd_create, open};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use vfio_user::client::ClientDmaWindow;
use vfio_user::wire::{Command, Errno};

#[test]
fn overlapping_dma_window_is_refused_without_a_change() {
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    let fd = a.machine.ram.fd();
    let qemu = &mut a.machine.vmm;
    for (iova, size) in [(HIGH, SIZE - HIGH), (HIGH + 0x1000, 0x1000), (0, 0x1000), (SIZE - 0x1000, 0x2000)] {
        assert_eq!(qemu.map(iova, size, None), Err(Errno::EEXIST), "{iova:#x}+{size:#x}");
    }
    assert_eq!(qemu.map(HIGH, SIZE - HIGH, Some(fd)), Err(Errno::EEXIST));
    exchange(&mut a, &mut b, 3);
    assert_eq!(a.machine.ram.mapped_by_the_host(), 1, "both windows do not share a mapping");
}

#[test]
fn dma_window_without_a_descriptor_is_listed_but_unreachable() {
    let live = LiveHost::start();
    let (mut b, mut c) = (VfGuest::under_qemu(&live, 1), VfGuest::under_qemu(&live, 2));
    // Without share=on, everything in a guest works, except that no frame can move.
    let machine = qemu::boot_as(&live.socket(0), qemu::VF, qemu::announce_only);
    let mut a = VfGuest::bring_up(machine);
    let status = live.show(0);
    assert!(status.active && status.hint.as_ref().is_some_and(|hint| hint.contains("share=on")));
    assert_eq!(status.peer.as_ref().map(|peer| (peer.windows, peer.shareable)), Some((2, 0)));
    assert!(a.send(b.vf.mac(), &[1; 60]));
    assert!(b.send(a.vf.mac(), &[1; 60]));
    eventually("sent and received frames cause DMA faults", || live.show(0).drops.dma_faults >= 2);
    exchange(&mut b, &mut c, 10);
    assert_eq!(live.show(1).drops.dma_faults, 0);
    assert!(!a.machine.vmm.gone, "the guest has lost its card");
}

#[test]
fn hint_about_unshared_guest_memory_ends_once_memory_is_shared() {
    let live = LiveHost::start();
    let mut machine = qemu::boot_as(&live.socket(0), qemu::VF, qemu::announce_only);
    assert!(live.show(0).hint.is_some(), "a bus master without memory has no hint");
    let fd = machine.ram.fd();
    machine.vmm.unmap(HIGH, SIZE - HIGH).unwrap();
    machine.vmm.map(HIGH, SIZE - HIGH, Some(fd)).unwrap();
    assert_eq!(live.show(0).hint, None);
    drop(machine);
    eventually("the client is gone", || live.show(0).peer.is_none());
    assert_eq!(live.show(0).hint, None);
}

/// Tests a guest of QEMU with `share=off`: QEMU sends a memory file, but the guest writes to private copies
/// of its pages.
#[test]
fn guest_memory_that_stays_blank_is_reported_as_private() {
    let live = LiveHost::start();
    let memory = memfd_create("large", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&memory, LARGE).unwrap();
    let guest = boot_large(&live, &memory);
    assert!(live.show(0).hint.as_ref().is_some_and(|hint| hint.contains("share=on")));
    drop(guest);
    eventually("the client is gone", || live.show(0).peer.is_none());
    assert_eq!(live.show(0).hint, None);

    let written = MappedFile::map(&memory, 0, LARGE, MemoryProtection::ReadWrite).unwrap();
    written.write(0x400, &[1; 256]).unwrap();
    let _guest = boot_large(&live, &memory);
    assert_eq!(live.show(0).hint, None);
}

/// Size of guest memory, bytes, above which the host checks for private memory. An operating system needs
/// more than that.
const LARGE: u64 = 64 << 20;

/// Connects a QEMU to VF 0, maps memory of an operating system's size for its guest, and makes the VF a bus
/// master.
fn boot_large(live: &LiveHost, memory: &OwnedFd) -> QemuClient {
    let mut qemu = QemuClient::greet(&live.socket(0));
    let window = ClientDmaWindow { iova: 0, size: LARGE, offset: 0, writable: true };
    let fd = memory.try_clone().unwrap();
    qemu.done(|client, out| client.dma_map(out, window, Some(fd))).unwrap();
    qemu.store(CONFIG, COMMAND, &ENABLE.to_le_bytes());
    // The function's worker does jobs in order, so the reply to another mapping comes after the check.
    let behind = ClientDmaWindow { iova: LARGE, ..window };
    let fd = memory.try_clone().unwrap();
    qemu.done(|client, out| client.dma_map(out, behind, Some(fd))).unwrap();
    qemu
}

#[test]
fn dma_unmap_is_answered_after_the_card_lost_access() {
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    for _ in 0..20 {
        for _ in 0..8 {
            b.send(a.vf.mac(), &[1; 60]);
        }
        a.machine.vmm.unmap(HIGH, SIZE - HIGH).unwrap();
        // From now on the guest may use its memory for other purposes.
        let mut before = vec![0; (SIZE - HIGH) as usize];
        a.machine.ram.read(HIGH, &mut before);
        (0..8).for_each(|_| assert!(b.send(a.vf.mac(), &[2; 60])));
        b.vf.clean(&mut b.machine);
        let mut after = vec![0; (SIZE - HIGH) as usize];
        a.machine.ram.read(HIGH, &mut after);
        assert!(before == after, "the card has written to unmapped memory");
        let fd = a.machine.ram.fd();
        a.machine.vmm.map(HIGH, SIZE - HIGH, Some(fd)).unwrap();
    }
    // Frames may have been lost meanwhile, but the VF can receive again.
    a.vf.restart(&mut a.machine).unwrap();
    a.wait_for_link();
    b.take();
    exchange(&mut a, &mut b, 5);
}

#[test]
fn dma_unmap_removes_whole_windows_or_all_windows() {
    let live = LiveHost::start();
    let mut machine = qemu::boot(&live.socket(0));
    let qemu = &mut machine.vmm;
    for (iova, size) in [(HIGH, 0x1000), (HIGH + 0x1000, 0x1000), (0, SIZE - 0x1000)] {
        assert_eq!(qemu.unmap(iova, size), Err(Errno::ENOENT), "{iova:#x}+{size:#x}");
    }
    assert_eq!(qemu.unmap(SIZE, 0x1000), Ok(()), "the range has no window");
    assert_eq!(machine.ram.mapped_by_the_host(), 1);
    let qemu = &mut machine.vmm;
    // QEMU does this when a guest's IOMMU detaches a device.
    assert_eq!(qemu.unmap(0, 1 << 32), Ok(()), "a range around all windows is refused");
    eventually("the host has unmapped the guest's memory", || machine.ram.mapped_by_the_host() == 0);
    qemu::share(&mut machine);
    let qemu = &mut machine.vmm;
    assert_eq!(qemu.done(|client, out| client.dma_unmap_all(out)), Ok(()));
    eventually("the host has unmapped the guest's memory", || machine.ram.mapped_by_the_host() == 0);
    qemu::share(&mut machine);
    assert_eq!(machine.ram.mapped_by_the_host(), 1);
}

/// Returns file descriptors that the host must refuse as guest memory, each with its name and the expected
/// error.
fn impostors() -> Vec<(&'static str, OwnedFd, Errno)> {
    let (pipe, _) = rustix::pipe::pipe().unwrap();
    let (socket, _) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    let file = |path, flags| open(path, flags | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let ram = GuestRam::new();
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&ram.fd()));
    let read_only = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let mut impostors = vec![
        ("a pipe", pipe, Errno::EINVAL),
        ("a socket", socket, Errno::EINVAL),
        ("a folder", file("/tmp", OFlags::RDONLY), Errno::EINVAL),
        ("a device", file("/dev/zero", OFlags::RDWR), Errno::EINVAL),
        ("a path", file("/", OFlags::PATH), Errno::EINVAL),
        (
            "a file on a disk",
            tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).unwrap().into(),
            Errno::EINVAL,
        ),
    ];
    // On some kernels the path's descriptor is closed by now, and then this case is skipped.
    impostors.extend(read_only.ok().map(|fd| ("memory to read only", fd, Errno(13))));
    impostors
}

#[test]
fn dma_window_with_a_file_other_than_memory_is_refused() {
    let live = LiveHost::start();
    let mut machine = qemu::boot(&live.socket(0));
    for (what, fd, errno) in impostors() {
        let refused = machine.vmm.map(1 << 32, 0x1000, Some(fd));
        assert!(refused == Err(errno) || refused == Err(Errno::EINVAL), "{what}: {refused:?}");
    }
    let ram = GuestRam::new();
    assert_eq!(machine.vmm.map(SIZE, 0x1000, Some(ram.fd())), Err(Errno::EINVAL), "beyond the file's end");
    assert_eq!(ram.mapped_by_the_host(), 0);
    assert_eq!(live.show(0).peer.as_ref().unwrap().windows, 3, "a refused window is counted");
}

fn dma_map(iova: u64) -> Vec<u8> {
    let body = [
        &32u32.to_le_bytes()[..],
        &3u32.to_le_bytes(),
        &[0; 8],
        &iova.to_le_bytes(),
        &0x1000u64.to_le_bytes(),
    ];
    message(1, Command::DmaMap, 0, &body.concat())
}

#[test]
fn several_descriptors_for_a_dma_window_are_refused() {
    let live = LiveHost::start();
    let mut raw = RawVfioUserConnection::greet(&live.socket(0));
    let ram = GuestRam::new();
    let fd = ram.fd();
    for count in [2, 16, 17, 32] {
        let fds: Vec<BorrowedFd<'_>> = vec![fd.as_fd(); count];
        raw.send_with(&dma_map(0), &fds);
        assert_eq!(raw.reply().map(|(errno, _)| errno), Some(22), "{count} descriptors");
    }
    raw.send_with(&dma_map(0), &[fd.as_fd()]);
    assert_eq!(raw.reply().map(|(errno, _)| errno), Some(0));
    raw.send(&load(2, 7, 0, 4));
    assert_eq!(raw.reply().map(|(_, body)| body[16..].to_vec()), Some(vec![0x86, 0x80, 0xca, 0x10]));
}
