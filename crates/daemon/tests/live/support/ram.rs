//! Memory of a guest: a memfd that its owner can truncate, like QEMU's without seals.

use host::memory::{MappedFile, MemoryProtection};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Size of a test guest's memory, bytes.
pub(crate) const SIZE: u64 = 16 << 20;
/// Guest address at which memory above firmware and legacy devices starts.
pub(crate) const HIGH: u64 = 1 << 20;
/// Guest address at which a PC's legacy hole for ROMs starts.
pub(crate) const HOLE: u64 = 0xc_0000;

/// Guest memory in a memfd; offsets in the file equal guest addresses.
#[derive(Debug)]
pub(crate) struct GuestRam {
    fd: OwnedFd,
    memory: MappedFile,
    next: u64,
    name: String,
}

impl GuestRam {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("ram-{}-", NUMBER.fetch_add(1, Ordering::Relaxed));
        let fd = memfd_create(name.as_str(), MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&fd, SIZE).unwrap();
        let memory = MappedFile::map(&fd, 0, SIZE, MemoryProtection::ReadWrite).unwrap();
        Self { fd, memory, next: HIGH, name }
    }

    /// Returns the number of mappings that the host has of this guest memory. Host and test are one process.
    pub(crate) fn mapped_by_the_host(&self) -> usize {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|line| line.contains(&self.name)).count() - 1
    }

    /// Returns a copy of the file descriptor, to send to the host.
    pub(crate) fn fd(&self) -> OwnedFd {
        self.fd.as_fd().try_clone_to_owned().unwrap()
    }

    /// Truncates the file, so that the pages vanish under all its mappings.
    pub(crate) fn truncate(&self) {
        ftruncate(&self.fd, 0).unwrap();
    }

    /// Allocates `length` bytes of guest memory, and returns their address; `None` if the memory is full.
    pub(crate) fn allocate(&mut self, length: u64, align: u64) -> Option<u64> {
        let start = self.next.next_multiple_of(align);
        self.next = start + length;
        (self.next <= SIZE).then_some(start)
    }

    pub(crate) fn read(&self, address: u64, into: &mut [u8]) {
        self.memory.read(address, into).unwrap();
    }

    pub(crate) fn write(&self, address: u64, from: &[u8]) {
        self.memory.write(address, from).unwrap();
    }
}
