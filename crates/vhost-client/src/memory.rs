//! Memory that a guest in this process shares with its back end, by guest address.

use crate::VhostClientError;
use host::memory::{MappedFile, MemoryAccessError};
use host::shared::SharedMemory;
use std::os::fd::{AsFd, OwnedFd};
use vhost_user::message::MemoryRegion;
use virtio::layout::RingAddresses;
use virtio::{MemoryFault, RingMemory};

/// Guest address of the shared memory: at 4 GiB, so that addresses have more than 32 bits.
const BASE: u64 = 1 << 32;
/// Address of the shared memory in vhost-user's messages about rings, which use addresses of the front end's process.
/// It differs from the guest address, so that a back end that confuses them fails.
const USER_BASE: u64 = 0x7f00_0000_0000;
/// Bytes of a buffer, for a frame of 1,514 bytes with its header.
pub(super) const BUFFER: u64 = 2048;
/// Bytes of a cache line, to which the parts of a ring are aligned, so that no two of them share one.
const LINE: u64 = 64;

/// Memory of a guest in this process.
#[derive(Debug)]
pub(super) struct FrontendMemory(SharedMemory);

impl FrontendMemory {
    /// Creates `bytes` zero bytes of guest memory, rounded up to a power of two.
    pub(super) fn new(bytes: u64) -> Result<Self, VhostClientError> {
        Ok(Self(SharedMemory::new(bytes.next_power_of_two())?))
    }

    /// Returns the memory as the region of a vhost-user message, and a copy of its file descriptor.
    pub(super) fn region(&self) -> Result<(MemoryRegion, OwnedFd), VhostClientError> {
        let size = self.0.memory().len();
        let region = MemoryRegion { guest_address: BASE, size, user_address: USER_BASE, file_offset: 0 };
        Ok((region, self.0.as_fd().try_clone_to_owned()?))
    }

    /// Returns the memory as it is mapped in this process.
    pub(super) fn mapped(&self) -> &MappedFile {
        self.0.memory()
    }

    /// Returns the memory with its file.
    pub(super) fn shared(&self) -> &SharedMemory {
        &self.0
    }

    /// Allocates zeroed memory. Returns its guest address.
    pub(super) fn allocate(&mut self, bytes: u64) -> Result<u64, VhostClientError> {
        // Never freed, so the bytes are still the zeros of the file.
        let block = self.0.allocate(bytes, LINE).ok_or(VhostClientError::MemoryUsedUp(bytes))?;
        Ok(BASE + block.offset())
    }

    /// Returns the number of bytes that [`allocate_ring`](Self::allocate_ring) takes for a ring of either format.
    pub(super) fn ring_bytes(size: u16) -> u64 {
        ring_parts(size).iter().map(|part| part.next_multiple_of(LINE)).sum()
    }

    /// Allocates the three parts of a ring. Returns their guest addresses.
    pub(super) fn allocate_ring(&mut self, size: u16) -> Result<RingAddresses, VhostClientError> {
        let [descriptors, driver, device] = ring_parts(size);
        Ok(RingAddresses {
            descriptors: self.allocate(descriptors)?,
            driver: self.allocate(driver)?,
            device: self.allocate(device)?,
        })
    }

    /// Prefetches bytes into the processor's cache, for writing if `writes`.
    #[inline]
    pub(super) fn prefetch(&self, address: u64, length: usize, writes: bool) {
        self.0.memory().prefetch((address.wrapping_sub(BASE), length), writes);
    }

    /// Copies bytes out of the memory.
    #[inline]
    pub(super) fn load(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        let read = self.0.memory().read(address.wrapping_sub(BASE), into);
        read.map_err(|_: MemoryAccessError| MemoryFault { address })
    }

    /// Copies bytes into the memory.
    #[inline]
    pub(super) fn store(&self, address: u64, from: &[u8]) -> Result<(), MemoryFault> {
        let written = self.0.memory().write(address.wrapping_sub(BASE), from);
        written.map_err(|_: MemoryAccessError| MemoryFault { address })
    }
}

/// Returns the bytes of the three parts of a split ring (VIRTIO 1.2, section 2.7). Those of a packed ring are shorter.
fn ring_parts(size: u16) -> [u64; 3] {
    let entries = u64::from(size);
    [16 * entries, 6 + 2 * entries, 6 + 8 * entries]
}

/// Converts a guest address to the address in vhost-user's messages about rings.
pub(super) fn user_address(guest_address: u64) -> u64 {
    guest_address - BASE + USER_BASE
}

impl RingMemory for &FrontendMemory {
    #[inline]
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        self.load(address, into)
    }

    #[inline]
    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), MemoryFault> {
        self.store(address, from)
    }
}
