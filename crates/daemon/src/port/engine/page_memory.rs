//! Shared memory for the pages of a VF's BAR0 that its client may map. Memory and BAR0 have equal lengths and offsets.
//! `nic::doorbell` and `avf_nic::doorbell` define the effect of a store.

use host::shared::{SharedMemory, SharedMemoryError};
use pcie::pages::GuestRegisterPages;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Shared memory with the registers of a VF that its client maps.
#[derive(Debug)]
pub(in crate::port) struct VfRegisterPages(SharedMemory);

impl VfRegisterPages {
    /// Creates shared memory of this length in bytes for a VF's registers.
    pub(in crate::port) fn new(length: u64) -> Result<Self, SharedMemoryError> {
        SharedMemory::new(length).map(Self)
    }

    /// Opens the previous host process's shared memory of a VF's registers. Returns `None` if the file descriptor is
    /// not shared memory of this length.
    pub(in crate::port) fn adopt(fd: OwnedFd, length: u64) -> Option<Self> {
        let memory = SharedMemory::adopt(fd).ok()?;
        (memory.memory().len() == length).then_some(Self(memory))
    }

    /// Returns a copy of the shared memory's file descriptor.
    pub(in crate::port) fn fd(&self) -> io::Result<OwnedFd> {
        self.0.as_fd().try_clone_to_owned()
    }

    /// Stores bytes of any length in the shared memory. Bytes outside of the memory are dropped.
    pub(in crate::port) fn write(&self, offset: u64, data: &[u8]) {
        let _ = self.0.memory().write(offset, data);
    }
}

impl GuestRegisterPages for VfRegisterPages {
    fn load(&self, offset: u32) -> u32 {
        self.0.memory().load_dword(offset.into()).unwrap_or(u32::MAX)
    }

    fn load_run(&self, offset: u32, into: &mut [u32]) {
        if self.0.memory().load_dwords(offset.into(), into).is_err() {
            into.fill(u32::MAX);
        }
    }

    fn store(&self, offset: u32, value: u32) {
        // The memory is as long as the BAR, and sealed against a change of its length. So the store cannot fail.
        let _ = self.0.memory().store_dword(offset.into(), value);
    }

    fn replace(&self, offset: u32, old: u32, new: u32) -> bool {
        self.0.memory().replace_dword(offset.into(), old, new).unwrap_or(true)
    }
}
