//! Memory of this process that a device shares: RAM of an embedded guest, or doorbell pages of a card.
//!
//! A memfd, sealed so that it can neither shrink nor grow, mapped here and sent to the peer as a descriptor. A
//! small allocator divides it. The peer's address of it is agreed elsewhere.

mod allocator;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::OwnedFd;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create};

pub use allocator::{SharedMemoryAllocator, SharedMemoryBlock};

use crate::memory::{FileMapError, MappedFile, MemoryProtection};

/// Reason why shared memory could not be created.
#[derive(Debug, thiserror::Error)]
pub enum SharedMemoryError {
    /// The kernel refused to create or size the shared memory (memfd).
    #[error("cannot create shared memory of {len} bytes")]
    Create {
        /// Requested size of the shared memory in bytes.
        len: u64,
        /// Kernel's error for creating, sizing or inspecting the memfd.
        #[source]
        source: io::Error,
    },
    /// The shared memory could not be mapped.
    #[error(transparent)]
    Map(#[from] FileMapError),
}

/// Shared memory: a sealed memfd, mapped for reading and writing.
#[derive(Debug)]
pub struct SharedMemory {
    fd: OwnedFd,
    memory: MappedFile,
    pieces: SharedMemoryAllocator,
}

impl SharedMemory {
    /// Creates shared memory of `len` zero bytes. `len` is not zero; a device needs whole pages of 4,096 bytes.
    ///
    /// # Errors
    /// See [`SharedMemoryError`].
    pub fn new(len: u64) -> Result<Self, SharedMemoryError> {
        let fd = create_memory_file(len)?;
        let memory = MappedFile::map(&fd, 0, len, MemoryProtection::ReadWrite)?;
        Ok(Self { fd, memory, pieces: SharedMemoryAllocator::new(len) })
    }

    /// Adopts shared memory that another process has created. The allocator counts all of it as free.
    ///
    /// # Errors
    /// The descriptor is not memory, or empty.
    pub fn adopt(fd: OwnedFd) -> Result<Self, SharedMemoryError> {
        let stat = fstat(&fd).map_err(|error| SharedMemoryError::Create { len: 0, source: error.into() })?;
        let len = stat.st_size as u64;
        let memory = MappedFile::map(&fd, 0, len, MemoryProtection::ReadWrite)?;
        Ok(Self { fd, memory, pieces: SharedMemoryAllocator::new(len) })
    }

    /// Returns the mapped bytes of the shared memory.
    #[must_use]
    pub fn memory(&self) -> &MappedFile {
        &self.memory
    }

    /// Allocates `len` bytes of shared memory aligned to `align`, a power of two. Returns `None` if no gap is large
    /// enough. The bytes keep the contents of their last use.
    pub fn allocate(&mut self, len: u64, align: u64) -> Option<SharedMemoryBlock> {
        self.pieces.allocate(len, align)
    }

    /// Frees an allocated block of the shared memory.
    pub fn free(&mut self, piece: SharedMemoryBlock) {
        self.pieces.free(piece);
    }
}

impl AsFd for SharedMemory {
    /// Returns the memory's file descriptor, to send over a socket.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Creates memory of `len` zero bytes that can neither shrink nor grow, for a peer alone: it is not mapped here.
///
/// # Errors
/// The kernel refuses the memory or its size.
pub fn create_memory_file(len: u64) -> Result<OwnedFd, SharedMemoryError> {
    sealed_memfd(len).map_err(|error| SharedMemoryError::Create { len, source: error.into() })
}

fn sealed_memfd(len: u64) -> rustix::io::Result<OwnedFd> {
    let fd = memfd_create("softiov", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&fd, len)?;
    fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(fd)
}
