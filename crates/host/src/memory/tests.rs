//! Tests mappings of real memfds: bounds, kinds of file descriptors, and truncation during copies.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;

use rustix::fs::{MemfdFlags, Mode, OFlags, ftruncate, memfd_create, open};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::*;
use crate::test_support::in_own_process;

const PAGE: u64 = 4096;

fn memfd(pages: u64) -> OwnedFd {
    let fd = memfd_create("host-test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&fd, pages * PAGE).unwrap();
    fd
}

fn mapped(fd: &OwnedFd, pages: u64) -> MappedFile {
    MappedFile::map(fd, 0, pages * PAGE, MemoryProtection::ReadWrite).unwrap()
}

#[test]
fn memory_mappings_of_one_file_share_their_bytes() {
    let fd = memfd(2);
    let (ours, theirs) = (mapped(&fd, 2), mapped(&fd, 2));
    ours.write(PAGE - 3, b"across").unwrap();
    let mut seen = [0; 6];
    theirs.read(PAGE - 3, &mut seen).unwrap();
    assert_eq!(&seen, b"across");
}

#[test]
fn file_offset_selects_the_mapped_part_of_the_file() {
    let fd = memfd(3);
    let whole = mapped(&fd, 3);
    let part = MappedFile::map(&fd, PAGE, PAGE, MemoryProtection::ReadWrite).unwrap();
    part.write(0, &[7]).unwrap();
    let mut seen = [0];
    whole.read(PAGE, &mut seen).unwrap();
    assert_eq!((seen, part.len()), ([7], PAGE));
}

#[test]
fn no_byte_outside_the_mapped_range_is_accessible() {
    let fd = memfd(2);
    let map = MappedFile::map(&fd, 0, PAGE, MemoryProtection::ReadWrite).unwrap();
    let outside = |offset, len| Err(MemoryAccessError::OutOfRange { offset, len });
    assert_eq!(map.read(PAGE - 1, &mut [0; 2]), outside(PAGE - 1, 2));
    assert_eq!(map.write(PAGE, &[0]), outside(PAGE, 1));
    assert_eq!(map.read(u64::MAX, &mut [0; 2]), outside(u64::MAX, 2));
    assert_eq!(map.read(PAGE, &mut []), Ok(()), "no bytes at the very end are no access");
}

#[test]
fn memory_writes_of_any_length_and_alignment_are_complete() {
    let fd = memfd(1);
    let map = mapped(&fd, 1);
    let pattern: Vec<u8> = (1..=100).collect();
    for (offset, len) in (0..9).flat_map(|offset| (0..100).map(move |len| (offset, len))) {
        map.write(offset, &pattern[..len]).unwrap();
        let mut seen = vec![0; len];
        map.read(offset, &mut seen).unwrap();
        assert_eq!(seen, pattern[..len], "{len} bytes at {offset}");
    }
}

#[test]
fn completed_ring_descriptors_are_read_up_to_a_pending_one() {
    let fd = memfd(1);
    let map = mapped(&fd, 1);
    for size in [16, 32] {
        let ring: Vec<u8> = (1..=4_u8).flat_map(|slot| vec![slot << 1 | 1; size]).collect();
        map.write(64, &ring).unwrap();
        map.write(64 + 2 * size as u64 + 8, &[6]).unwrap();
        let mut found = [[0; DESCRIPTOR]; 4];
        assert_eq!(map.read_completed(64, size, &mut found), Ok(2));
        assert!((0..2).all(|slot| found[slot][..size] == ring[slot * size..][..size]));
        assert_eq!(found[2], [0; DESCRIPTOR]);
        assert_eq!(map.read_completed(64, size, &mut found[..1]), Ok(1));
    }
}

#[test]
fn unaligned_or_unmapped_ring_descriptors_are_refused() {
    let fd = memfd(1);
    let map = mapped(&fd, 1);
    let mut found = [[0; DESCRIPTOR]; 4];
    for (offset, size) in [(PAGE - 48, 16), (PAGE - 96, 32), (u64::MAX - 15, 16), (4, 16), (0, 24)] {
        assert!(map.read_completed(offset, size, &mut found).is_err(), "{offset:#x}, {size} bytes");
    }
    assert_eq!(map.read_completed(PAGE - 64, 16, &mut found), Ok(0));
}

#[test]
fn read_only_mapping_refuses_stores() {
    let fd = memfd(1);
    let map = MappedFile::map(&fd, 0, PAGE, MemoryProtection::ReadOnly).unwrap();
    assert_eq!(map.write(0, &[1]), Err(MemoryAccessError::ReadOnly));
    assert_eq!(map.read(0, &mut [0]), Ok(()));
}

#[test]
fn mapping_of_a_range_outside_the_file_is_refused() {
    let fd = memfd(2);
    let refused = |offset, len| MappedFile::map(&fd, offset, len, MemoryProtection::ReadWrite).unwrap_err();
    let size = 2 * PAGE;
    assert_eq!(refused(PAGE, size), FileMapError::OutsideFile { offset: PAGE, len: size, size });
    assert_eq!(refused(0, 0), FileMapError::BadRange);
    assert_eq!(refused(u64::MAX - PAGE + 1, PAGE), FileMapError::BadRange);
    assert_eq!(refused(5, PAGE), FileMapError::Unaligned { offset: 5 });
}

#[test]
fn file_descriptor_other_than_memory_is_not_mapped() {
    let refused = |fd: OwnedFd| MappedFile::map(fd, 0, PAGE, MemoryProtection::ReadOnly).unwrap_err();
    let (pipe, _) = rustix::pipe::pipe().unwrap();
    let (socket, _) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    let directory = open("/dev/shm", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
    let directory = directory.or_else(|_| open("/tmp", OFlags::RDONLY, Mode::empty())).unwrap();
    let device = open("/dev/zero", OFlags::RDWR, Mode::empty()).unwrap();
    let epoll = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC).unwrap();
    for fd in [pipe, socket, directory, device, epoll] {
        assert_eq!(refused(fd), FileMapError::WrongKind);
    }
}

#[test]
fn open_mode_of_a_memory_descriptor_limits_its_mapping() {
    let fd = memfd(1);
    let again = |flags| open(format!("/proc/self/fd/{}", rustix_raw(&fd)), flags, Mode::empty()).unwrap();
    let map = |fd: OwnedFd, protection| MappedFile::map(fd, 0, PAGE, protection).map(drop);
    assert_eq!(map(again(OFlags::RDONLY), MemoryProtection::ReadWrite), Err(FileMapError::Permission));
    assert_eq!(map(again(OFlags::WRONLY), MemoryProtection::ReadOnly), Err(FileMapError::Permission));
    assert_eq!(map(again(OFlags::RDONLY), MemoryProtection::ReadOnly), Ok(()));
}

fn rustix_raw(fd: &OwnedFd) -> i32 {
    std::os::fd::AsRawFd::as_raw_fd(fd)
}

#[test]
fn write_sealed_memfd_is_not_writable() {
    let fd = memfd(1);
    rustix::fs::fcntl_add_seals(&fd, rustix::fs::SealFlags::WRITE).unwrap();
    let refused = MappedFile::map(&fd, 0, PAGE, MemoryProtection::ReadWrite).unwrap_err();
    assert_eq!((refused, FileMapError::Permission.errno()), (FileMapError::Permission, libc::EACCES));
}

#[test]
fn truncated_memfd_reads_as_zeros_other_memfds_stay_intact() {
    let (hostile, honest) = (memfd(64), memfd(1));
    let (victim, neighbour) = (mapped(&hostile, 64), mapped(&honest, 1));
    victim.write(40 * PAGE, &[0xaa; 16]).unwrap();
    neighbour.write(0, b"still here").unwrap();
    let events = poison_events();

    ftruncate(&hostile, 0).unwrap();

    let mut seen = [0xff; 16];
    victim.read(40 * PAGE, &mut seen).unwrap();
    assert_eq!(seen, [0; 16]);
    assert!(victim.poisoned() && !neighbour.poisoned());
    assert!(poison_events() > events);
    victim.write(3 * PAGE, &[1]).unwrap();
    let mut kept = [0; 10];
    neighbour.read(0, &mut kept).unwrap();
    assert_eq!(&kept, b"still here");
}

#[test]
fn new_mapping_is_intact_after_an_earlier_one_was_truncated() {
    for _ in 0..100 {
        let fd = memfd(1);
        let map = mapped(&fd, 1);
        assert!(!map.poisoned());
        ftruncate(&fd, 0).unwrap();
        map.write(0, &[1]).unwrap();
        assert!(map.poisoned());
    }
}

#[test]
fn client_mapping_quotas_never_exceed_the_mapping_table() -> io::Result<()> {
    let name = "memory::tests::client_mapping_quotas_never_exceed_the_mapping_table";
    let taken = || {
        let shares: Vec<MappingTableReservation> =
            std::iter::from_fn(MappingTableReservation::reserve).collect();
        let port = 65;
        assert!(shares.len() >= 3 * port, "{} are not three ports with 64 VFs", shares.len());
        assert!(shares[..port].iter().all(|share| share.mappings() == 256), "one port has no shortage");
        assert!(shares.iter().all(|share| share.mappings() >= 32), "the smallest share is usable");
        let total: usize = shares.iter().map(MappingTableReservation::mappings).sum();
        assert!(total <= 28_672, "{total}");
        drop(shares);
        assert_eq!(MappingTableReservation::reserve().map(|share| share.mappings()), Some(256), "released");
    };
    let Some(child) = in_own_process(name, taken)? else { return Ok(()) };
    assert!(child.status.success(), "{child:?}");
    Ok(())
}

#[test]
fn large_memory_mappings_are_unmapped_whole() {
    let name = "host-test-large";
    let fd = memfd_create(name, MemfdFlags::CLOEXEC).unwrap();
    let bytes = (1 << 30) + 5 * PAGE;
    ftruncate(&fd, bytes).unwrap();
    let map = MappedFile::map(&fd, 0, bytes, MemoryProtection::ReadWrite).unwrap();
    let count = || std::fs::read_to_string("/proc/self/maps").unwrap().matches(name).count();
    assert_eq!(count(), 1);
    drop(map);
    assert_eq!(count(), 0);
}

#[test]
fn host_survives_guest_memory_truncated_during_copies() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let fd = memfd(16);
                    let map = mapped(&fd, 16);
                    std::thread::scope(|inner| {
                        inner.spawn(|| ftruncate(&fd, 0).unwrap());
                        let mut frame = [0; 1500];
                        for page in 0..15 {
                            map.read(page * PAGE, &mut frame).unwrap();
                            map.write(page * PAGE + 8, &frame).unwrap();
                        }
                    });
                    map.read(0, &mut [0; 8]).unwrap();
                    assert!(map.poisoned());
                }
            });
        }
    });
}

#[test]
fn huge_pages_are_mapped_around_an_unaligned_range() {
    let huge = 2 << 20;
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
    let fd = match memfd_create("host-test-huge", flags).and_then(|fd| ftruncate(&fd, 2 * huge).map(|()| fd))
    {
        Ok(fd) => fd,
        Err(error) => return crate::test_support::skipped("huge pages", &error.to_string()),
    };
    // The low 640 KiB of a PC, then the memory above its video memory, in QEMU's order.
    let map = |offset, len| MappedFile::map(&fd, offset, len, MemoryProtection::ReadWrite);
    let (low, above) = match (map(0, 0xa_0000), map(0x10_0000, huge)) {
        (Ok(low), Ok(above)) => (low, above),
        (low, above) => {
            return crate::test_support::skipped("huge pages", &format!("none reserved: {low:?}, {above:?}"));
        }
    };
    assert_eq!((low.len(), above.len()), (0xa_0000, huge));
    assert!(low.read(0xa_0000, &mut [0]).is_err());
    ftruncate(&fd, 0).unwrap();
    above.read(0, &mut [0; 8]).unwrap();
    assert!(above.poisoned());
}

fn fault_outside_every_mapping() {
    let _ours = mapped(&memfd(1), 1);
    let fd = memfd(1);
    // SAFETY: a new mapping, unknown to the table; reading it after the truncation is the fault under test.
    unsafe {
        let alien = mmap(ptr::null_mut(), 4096, ProtFlags::READ, MapFlags::SHARED, &fd, 0).unwrap();
        ftruncate(&fd, 0).unwrap();
        alien.cast::<u8>().read_volatile();
    }
}

#[test]
fn sigbus_outside_guest_mappings_ends_the_process() -> io::Result<()> {
    let name = "memory::tests::sigbus_outside_guest_mappings_ends_the_process";
    let Some(child) = in_own_process(name, fault_outside_every_mapping)? else { return Ok(()) };
    assert!(!child.status.success());
    // A sanitizer reports the fault and exits instead.
    let reported = child.status.code().is_some() && String::from_utf8_lossy(&child.stderr).contains("BUS");
    assert!(child.status.signal() == Some(libc::SIGBUS) || reported, "{child:?}");
    Ok(())
}
