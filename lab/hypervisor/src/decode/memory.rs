//! A guest's physical memory as the hypervisor accesses it.

use alloc::vec;
use alloc::vec::Vec;

/// Physical memory of a guest.
pub trait GuestMemory {
    /// Reads bytes of guest memory. Returns `false`, with nothing read, if memory is missing for any of the bytes.
    fn read(&self, address: u64, into: &mut [u8]) -> bool;
    /// Writes bytes to guest memory. Returns `false`, with nothing written, if memory is missing for any of the bytes.
    fn write(&mut self, address: u64, from: &[u8]) -> bool;
}

/// Contiguous guest memory from address 0.
#[derive(Debug, Clone)]
pub struct FlatGuestMemory(Vec<u8>);

impl FlatGuestMemory {
    /// Creates `bytes` bytes of zeroed guest memory.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self(vec![0; bytes])
    }

    fn range(&self, address: u64, length: usize) -> Option<core::ops::Range<usize>> {
        let first = usize::try_from(address).ok()?;
        let end = first.checked_add(length).filter(|&end| end <= self.0.len())?;
        Some(first..end)
    }
}

impl GuestMemory for FlatGuestMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let range = self.range(address, into.len());
        if let Some(range) = range.clone() {
            into.copy_from_slice(&self.0[range]);
        }
        range.is_some()
    }

    fn write(&mut self, address: u64, from: &[u8]) -> bool {
        let range = self.range(address, from.len());
        if let Some(range) = range.clone() {
            self.0[range].copy_from_slice(from);
        }
        range.is_some()
    }
}
