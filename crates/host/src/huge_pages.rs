//! Huge pages whose physical addresses this process knows, for DMA of a device without an IOMMU in front of it.
//!
//! The kernel never swaps a huge page, and moves none while it is mapped and its node keeps its memory. A process needs
//! root to learn physical addresses (CAP_SYS_ADMIN).

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use crate::memory::{FileMapError, MappedFile, MemoryProtection};

/// Size of a huge page in bytes.
pub const HUGE_PAGE: u64 = 2 << 20;
/// Numbers of all huge pages of the machine and of the free ones.
const TOTAL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
const FREE: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
/// Table of this process's pages, with an entry of 64 bits for each 4 KiB (proc_pid_pagemap(5)).
const PAGEMAP: &str = "/proc/self/pagemap";
/// Bits of an entry: page in memory, and number of the physical page, which reads as 0 without CAP_SYS_ADMIN.
const PRESENT: u64 = 1 << 63;
const FRAME: u64 = (1 << 55) - 1;
const PAGE: u64 = 4096;

/// Reason why huge pages for DMA are not available.
#[derive(Debug, thiserror::Error)]
pub enum HugePageError {
    /// The kernel has fewer huge pages than wanted.
    #[error(
        "the kernel has {free} free huge pages of 2 MiB, {wanted} are needed; give the machine more memory"
    )]
    TooFew {
        /// Number of free huge pages.
        free: u64,
        /// Number of needed huge pages.
        wanted: u64,
    },
    /// A file of the kernel is not accessible.
    #[error("cannot access {path}: {source}; become root")]
    File {
        /// Path of the kernel's file.
        path: &'static str,
        /// Kernel's error for the file.
        source: io::Error,
    },
    /// The kernel refused a huge page.
    #[error("cannot create a huge page: {0}")]
    Create(io::Error),
    /// The huge page could not be mapped.
    #[error(transparent)]
    Map(#[from] FileMapError),
    /// The kernel hides physical addresses.
    #[error("{PAGEMAP} hides physical addresses; become root (CAP_SYS_ADMIN)")]
    Hidden,
}

/// Mapped huge page with its physical address.
#[derive(Debug)]
pub struct DmaHugePage {
    memory: MappedFile,
    physical: u64,
}

impl DmaHugePage {
    /// Maps `count` zeroed huge pages. Has the kernel reserve more huge pages if too few are free, which it keeps.
    ///
    /// # Errors
    /// [`HugePageError`].
    pub fn allocate(count: u64) -> Result<Vec<Self>, HugePageError> {
        let free = number(FREE)?;
        if free < count {
            let wanted = number(TOTAL)? + count - free;
            fs::write(TOTAL, wanted.to_string())
                .map_err(|source| HugePageError::File { path: TOTAL, source })?;
        }
        let free = number(FREE)?;
        if free < count {
            return Err(HugePageError::TooFew { free, wanted: count });
        }
        (0..count).map(|_| Self::new()).collect()
    }

    fn new() -> Result<Self, HugePageError> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
        let created = memfd_create("dma", flags).and_then(|fd| ftruncate(&fd, HUGE_PAGE).map(|()| fd));
        let fd = created.map_err(|error| HugePageError::Create(error.into()))?;
        let memory = MappedFile::map(&fd, 0, HUGE_PAGE, MemoryProtection::ReadWrite)?;
        // The first store has the kernel assign the page.
        memory.store_dword(0, 0).map_err(|_| HugePageError::Map(FileMapError::BadRange))?;
        let physical = physical_address(memory.address() as u64)?;
        Ok(Self { memory, physical })
    }

    /// Returns the physical address of the huge page's first byte.
    #[must_use]
    pub fn physical(&self) -> u64 {
        self.physical
    }

    /// Returns the bytes of the huge page.
    #[must_use]
    pub fn memory(&self) -> &MappedFile {
        &self.memory
    }
}

fn number(path: &'static str) -> Result<u64, HugePageError> {
    let read = fs::read_to_string(path).and_then(|text| text.trim().parse().map_err(io::Error::other));
    read.map_err(|source| HugePageError::File { path, source })
}

fn physical_address(address: u64) -> Result<u64, HugePageError> {
    let mut entry = [0; 8];
    File::open(PAGEMAP)
        .and_then(|file| file.read_exact_at(&mut entry, address / PAGE * 8))
        .map_err(|source| HugePageError::File { path: PAGEMAP, source })?;
    frame(u64::from_le_bytes(entry)).ok_or(HugePageError::Hidden)
}

/// Returns the physical address in an entry of the page table.
fn frame(entry: u64) -> Option<u64> {
    let frame = entry & FRAME;
    (entry & PRESENT != 0 && frame != 0).then_some(frame * PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pagemap_entry_without_a_frame_has_no_address() {
        assert_eq!(frame(PRESENT | 1 << 61 | 0x12_3400), Some(0x1_2340_0000));
        for entry in [0, PRESENT, 0x12_3400] {
            assert_eq!(frame(entry), None, "{entry:#x}");
        }
    }

    #[test]
    fn memory_that_is_not_present_is_hidden() {
        let memory = crate::shared::SharedMemory::new(PAGE).unwrap();
        let address = memory.memory().address() as u64;
        assert!(matches!(physical_address(address), Err(HugePageError::Hidden)));
    }
}
