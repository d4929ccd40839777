//! Memory of our own to share with a device: what an embedded guest calls its RAM, and a card its doorbells.
//!
//! A memfd, sealed so that it can neither shrink nor grow, mapped here and handed to the other side as a
//! descriptor. Pieces of it are given out by a small allocator. Left out: at which address the other side
//! sees it, which is between the two sides.

mod allocator;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::OwnedFd;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create};

pub use allocator::{Piece, PieceAllocator};

use crate::memory::{MapError, MappedFile, Protection};

/// Why shared memory could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SharedMemoryError {
    /// The kernel refused to make or size the memfd.
    #[error("shared memory of {len} bytes could not be made")]
    Create {
        /// Bytes asked for.
        len: u64,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The memfd could not be mapped.
    #[error(transparent)]
    Map(#[from] MapError),
}

/// A sealed memfd, mapped for reading and writing.
#[derive(Debug)]
pub struct SharedMemory {
    fd: OwnedFd,
    memory: MappedFile,
    pieces: PieceAllocator,
}

impl SharedMemory {
    /// Makes `len` zero bytes. `len` is not zero; a device wants whole pages of 4,096.
    ///
    /// # Errors
    /// See [`SharedMemoryError`].
    pub fn new(len: u64) -> Result<Self, SharedMemoryError> {
        let fd =
            sealed_memfd(len).map_err(|error| SharedMemoryError::Create { len, source: error.into() })?;
        let memory = MappedFile::map(&fd, 0, len, Protection::ReadWrite)?;
        Ok(Self { fd, memory, pieces: PieceAllocator::new(len) })
    }

    /// Takes over a memfd that another process has made. All of it counts as free.
    ///
    /// # Errors
    /// It is no memory, or empty.
    pub fn adopt(fd: OwnedFd) -> Result<Self, SharedMemoryError> {
        let stat = fstat(&fd).map_err(|error| SharedMemoryError::Create { len: 0, source: error.into() })?;
        let len = stat.st_size as u64;
        let memory = MappedFile::map(&fd, 0, len, Protection::ReadWrite)?;
        Ok(Self { fd, memory, pieces: PieceAllocator::new(len) })
    }

    /// The bytes.
    #[must_use]
    pub fn memory(&self) -> &MappedFile {
        &self.memory
    }

    /// Takes `len` bytes aligned to `align`, a power of two; `None` if there is no such gap. The bytes are
    /// what their last user left in them.
    pub fn allocate(&mut self, len: u64, align: u64) -> Option<Piece> {
        self.pieces.allocate(len, align)
    }

    /// Gives a piece back.
    pub fn free(&mut self, piece: Piece) {
        self.pieces.free(piece);
    }
}

impl AsFd for SharedMemory {
    /// The descriptor to send over a socket.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn sealed_memfd(len: u64) -> rustix::io::Result<OwnedFd> {
    let fd = memfd_create("softiov", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&fd, len)?;
    fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(fd)
}
