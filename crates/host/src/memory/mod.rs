//! Maps guest memory: a file, shared with this process.
//!
//! A guest or a VMM may write or truncate the file at any moment. Therefore no reference to mapped bytes ever
//! leaves this module: bytes are copied in and out after a bounds check. A file that shrinks under its mapping does
//! not kill the process: the mapping becomes zeros and is marked as poisoned.
//!
//! [`crate::dma`] translates guest addresses.

#![expect(unsafe_code, reason = "this module maps memory and accesses it through raw pointers")]

mod atomic;
mod copy;
mod dwords;
pub(crate) mod frames;
mod marks;
pub(crate) mod sigbus;
mod source;
#[cfg(test)]
mod tests;
mod view;

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{self, NonNull};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use atomic::AtomicU32;
pub(crate) use copy::done_last;
pub(crate) use marks::finish_writes;
pub use sigbus::{MappingTableReservation, poison_events};
pub use source::{FileIdentity, is_memory, read_memory_file};
pub use view::prefetch;
pub(crate) use view::{DmaRegionWindow, MappedGuestMemory};

/// Size of the longest ring descriptor in bytes.
pub const DESCRIPTOR: usize = copy::LONG;

/// Access to mapped memory that the mapping permits this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryProtection {
    /// The process may only load from the memory.
    ReadOnly,
    /// The process may load from the memory and store to it.
    ReadWrite,
}

/// Reason why a file descriptor could not be mapped.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FileMapError {
    /// The file descriptor is a pipe, a socket, a directory, a device, or a file on a disk or a file server, which
    /// could stall.
    #[error("guest memory must be a memfd or a file on tmpfs or hugetlbfs")]
    WrongKind,
    /// The file descriptor was opened, or is sealed, without the requested access.
    #[error("cannot map memory: its file descriptor does not permit the requested access")]
    Permission,
    /// The range to map is empty, or the range's end exceeds 2^64.
    #[error("cannot map memory: the range is empty, or ends beyond 2^64")]
    BadRange,
    /// The file offset to map is not a multiple of the page size.
    #[error("cannot map memory: file offset {offset:#x} is no multiple of the page size")]
    Unaligned {
        /// File offset in bytes of the refused mapping.
        offset: u64,
    },
    /// The file is too short for the range to map.
    #[error("cannot map memory: range {offset:#x}+{len:#x} lies outside the memory file of {size:#x} bytes")]
    OutsideFile {
        /// File offset of the first byte that was to be mapped.
        offset: u64,
        /// Number of bytes that were to be mapped.
        len: u64,
        /// Size in bytes of the file that is too short.
        size: u64,
    },
    /// The process-wide table of mappings is full.
    #[error("cannot map memory: the table of this process's mappings is full; attach fewer clients")]
    TooManyMappings,
    /// The kernel refused to map the file descriptor.
    #[error("cannot map memory: the kernel refused: {0}")]
    System(Errno),
}

impl FileMapError {
    /// Returns the errno of the reply to the client that sent the file descriptor.
    #[must_use]
    pub fn errno(&self) -> i32 {
        let errno = match self {
            Self::WrongKind | Self::BadRange | Self::Unaligned { .. } | Self::OutsideFile { .. } => {
                Errno::INVAL
            }
            Self::Permission => Errno::ACCESS,
            Self::TooManyMappings => Errno::NOSPC,
            Self::System(errno) => *errno,
        };
        errno.raw_os_error()
    }
}

/// Reason why an access to mapped memory was refused. No byte was moved.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum MemoryAccessError {
    /// Part of the accessed range lies outside the mapped memory.
    #[error("cannot access mapped memory: {offset:#x}+{len:#x} lies outside the mapping")]
    OutOfRange {
        /// First byte of the refused access, counted from the start of the mapping.
        offset: u64,
        /// Number of bytes in the refused access to mapped memory.
        len: usize,
    },
    /// The access is a store to a read-only mapping.
    #[error("cannot write to mapped memory: the mapping is read-only")]
    ReadOnly,
}

/// Part of a guest's memory file, mapped shared. Dropping a large one may block: leave it to a
/// [`BlockingWorker`](crate::worker::BlockingWorker).
pub struct MappedFile {
    /// Requested bytes inside the mapping `span`: with huge pages the kernel maps more.
    view: MappedGuestMemory,
    span: sigbus::MappedAddressRange,
    registration: sigbus::MappingRegistration,
    /// Size of the mapped file's pages in bytes.
    page: u64,
}

impl MappedFile {
    /// Maps `len` bytes of `fd` from byte `offset` on. The file descriptor may be closed afterwards.
    ///
    /// `offset` must be a multiple of 4,096. With huge pages the surrounding huge pages are mapped, and only the
    /// range is accessible.
    ///
    /// # Errors
    /// See [`FileMapError`]: descriptors without memory, too short files and missing permissions are refused.
    pub fn map(
        fd: impl AsFd,
        offset: u64,
        len: u64,
        protection: MemoryProtection,
    ) -> Result<Self, FileMapError> {
        let fd = fd.as_fd();
        Self::map_extent(fd, &source::check(fd, (offset, len), protection, None)?, protection)
    }

    /// Checks that a range of a file may be mapped, without mapping it.
    pub(crate) fn check(
        fd: impl AsFd,
        offset: u64,
        len: u64,
        protection: MemoryProtection,
    ) -> Result<(), FileMapError> {
        source::check(fd.as_fd(), (offset, len), protection, None).map(drop)
    }

    /// Maps the blocks of a file that hold a range, up to the file's end, so that nearby ranges need no mapping of
    /// their own. `block` returns the block size in bytes for a file size. Returns the file offset of the first
    /// mapped byte as well.
    ///
    /// # Errors
    /// Returns the errors of [`Self::map`]: the range must be inside the file.
    pub(crate) fn map_around(
        fd: BorrowedFd<'_>,
        (offset, len): (u64, u64),
        protection: MemoryProtection,
        block: fn(u64) -> u64,
    ) -> Result<(Self, u64), FileMapError> {
        let extent = source::check(fd, (offset, len), protection, Some(block))?;
        match Self::map_extent(fd, &extent, protection) {
            // A limit (RLIMIT_AS) may leave room for the range alone.
            Err(FileMapError::System(Errno::NOMEM)) => Ok((Self::map(fd, offset, len, protection)?, offset)),
            mapped => Ok((mapped?, extent.offset)),
        }
    }

    fn map_extent(
        fd: BorrowedFd<'_>,
        extent: &source::MappedFilePart,
        protection: MemoryProtection,
    ) -> Result<Self, FileMapError> {
        sigbus::install().map_err(FileMapError::System)?;
        let mut prot = ProtFlags::READ;
        prot.set(ProtFlags::WRITE, protection == MemoryProtection::ReadWrite);
        // SAFETY: a null hint makes the kernel pick unused addresses, so no existing memory is touched.
        let start = unsafe { mmap(ptr::null_mut(), extent.len, prot, MapFlags::SHARED, fd, extent.offset) }
            .map_err(refused_mapping)?;
        let span = sigbus::MappedAddressRange { start: start as usize, len: extent.len };
        let Some(registration) = sigbus::register(span) else {
            unmap(span, extent.page);
            return Err(FileMapError::TooManyMappings);
        };
        // SAFETY: `lead` is smaller than the span (`source::check`), which is mapped and not null.
        let base = unsafe { NonNull::new_unchecked(start.cast::<u8>().add(extent.lead)) };
        // SAFETY: `visible` bytes behind `lead` are inside the span, which stays mapped until `drop`, and is mapped for
        // writing if that is asked for.
        let view = unsafe {
            MappedGuestMemory::new(base, extent.visible, protection == MemoryProtection::ReadWrite)
        };
        Ok(Self { view, span, registration, page: extent.page })
    }

    /// Returns the number of mapped bytes, which have the offsets 0 to `len() - 1`.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.view.len() as u64
    }

    /// Returns false: a mapping of guest memory is never empty, since an empty range cannot be mapped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.view.len() == 0
    }

    /// Returns the address of the first mapped byte in this process, for the kernel to map for a device.
    pub(crate) fn address(&self) -> usize {
        self.view.address()
    }

    /// Returns true if the mapping permits stores.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.view.is_writable()
    }

    /// Returns true if the file shrank (or its memory failed) under the mapping. The mapping is then private zeros,
    /// nothing the device writes reaches the guest, and the session should end.
    #[must_use]
    pub fn poisoned(&self) -> bool {
        self.registration.poisoned()
    }

    /// Copies bytes out of the mapping, each loaded once: later changes by the guest do not show in `buffer`.
    ///
    /// # Errors
    /// [`MemoryAccessError::OutOfRange`].
    #[inline]
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), MemoryAccessError> {
        self.view.read(offset, buffer)
    }

    /// Copies ring descriptors of `size` bytes (16 or 32), each to the front of an element of `into`, up to the first
    /// without bit 0 in its second word: the device sets that bit last. Returns the number of copied descriptors.
    ///
    /// # Errors
    /// [`MemoryAccessError::OutOfRange`], also for descriptors of another size or not aligned to words.
    #[inline]
    pub fn read_completed(
        &self,
        offset: u64,
        size: usize,
        into: &mut [[u8; DESCRIPTOR]],
    ) -> Result<usize, MemoryAccessError> {
        self.view.read_completed(offset, size, into)
    }

    /// Copies bytes into the mapping. Up to 64 bytes that are 8-byte aligned and whole 8-byte words are stored word by
    /// word in rising order: a guest that sees the last word of a written-back ring descriptor also sees the earlier
    /// ones.
    ///
    /// # Errors
    /// [`MemoryAccessError::OutOfRange`], [`MemoryAccessError::ReadOnly`].
    #[inline]
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MemoryAccessError> {
        self.view.write(offset, bytes)
    }

    /// Prefetches the cache lines of `length` bytes at `offset`, for writing if `writes`, up to a limit. Does nothing
    /// if the bytes are not in the mapping.
    #[inline]
    pub fn prefetch(&self, range: (u64, usize), writes: bool) {
        self.view.prefetch(range, writes);
    }

    /// Loads a dword that the client or device stores whole. The earlier stores of that client or device are visible
    /// afterwards.
    ///
    /// # Errors
    /// [`MemoryAccessError::OutOfRange`], also for an unaligned dword.
    #[inline]
    pub fn load_dword(&self, offset: u64) -> Result<u32, MemoryAccessError> {
        Ok(dwords::load(self.dword(offset)?))
    }

    /// Loads consecutive dwords of the mapping, each as [`Self::load_dword`] does, the last first.
    ///
    /// # Errors
    /// Returns the errors of [`Self::load_dword`]; then no dword is loaded.
    #[inline]
    pub fn load_dwords(&self, offset: u64, into: &mut [u32]) -> Result<(), MemoryAccessError> {
        let first = self.view.at(offset, size_of_val(into))?.cast::<AtomicU32>();
        if !first.is_aligned() {
            return Err(MemoryAccessError::OutOfRange { offset, len: size_of_val(into) });
        }
        // SAFETY: the closure gets indices of `into` only. `MappedGuestMemory::at` checked that as many bytes as `into` has are
        // mapped there, for as long as `self` lives, and they are aligned. The rest is as in `dword`.
        dwords::load_last_first(into, |index| unsafe { first.add(index).as_ref() });
        Ok(())
    }

    /// Stores a dword into the mapping in one access. A reader that sees the dword also sees all earlier stores.
    ///
    /// # Errors
    /// Returns the errors of [`Self::load_dword`], and [`MemoryAccessError::ReadOnly`].
    #[inline]
    pub fn store_dword(&self, offset: u64, value: u32) -> Result<(), MemoryAccessError> {
        dwords::store(self.writable_dword(offset)?, value);
        Ok(())
    }

    /// Stores consecutive words of eight bytes in order of address, each in one access. A reader that sees a word also sees
    /// all earlier stores.
    ///
    /// # Errors
    /// [`MemoryAccessError::OutOfRange`], also for unaligned words, and [`MemoryAccessError::ReadOnly`].
    #[inline]
    pub fn store_words(&self, offset: u64, words: &[u64]) -> Result<(), MemoryAccessError> {
        self.view.store_words(offset, words)
    }

    /// Replaces a dword of the mapping by `new` if its value is `old`, in one atomic access. Returns true if the dword
    /// was replaced.
    ///
    /// # Errors
    /// Returns the errors of [`Self::store_dword`].
    #[inline]
    pub fn replace_dword(&self, offset: u64, old: u32, new: u32) -> Result<bool, MemoryAccessError> {
        Ok(dwords::replace(self.writable_dword(offset)?, old, new))
    }

    #[inline]
    fn writable_dword(&self, offset: u64) -> Result<&AtomicU32, MemoryAccessError> {
        if !self.is_writable() {
            return Err(MemoryAccessError::ReadOnly);
        }
        self.dword(offset)
    }

    /// Returns a reference to a dword of the mapping. The caller may store to it only if the mapping is writable.
    #[inline]
    fn dword(&self, offset: u64) -> Result<&AtomicU32, MemoryAccessError> {
        let dword = self.view.at(offset, size_of::<u32>())?.cast::<AtomicU32>();
        if !dword.is_aligned() {
            return Err(MemoryAccessError::OutOfRange { offset, len: size_of::<u32>() });
        }
        // SAFETY: `at` checked that four bytes are mapped there, for as long as `self` lives, and they are aligned.
        // Any value is valid. Other processes may change it at any time, as an atomic permits; this process also
        // accesses these bytes by copies, whose source or target is never a reference.
        Ok(unsafe { dword.as_ref() })
    }
}

fn refused_mapping(errno: Errno) -> FileMapError {
    match errno {
        Errno::PERM | Errno::ACCESS => FileMapError::Permission,
        other => FileMapError::System(other),
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // Before unmapping: afterwards the addresses may belong to another thread's mapping.
        self.registration.release();
        unmap(self.span, self.page);
    }
}

/// Bytes unmapped at a time, which bounds the wait of threads that map, unmap or fault meanwhile.
const PIECE: u64 = 4 << 20;

/// Unmaps an unused address range in pieces of whole pages.
fn unmap(span: sigbus::MappedAddressRange, page: u64) {
    let piece = PIECE.max(page) as usize;
    let end = span.start + span.len;
    for start in (span.start..end).step_by(piece) {
        // SAFETY: the span was mapped by `map_extent`, and its owner is being dropped: no pointer into it is left.
        let unmapped = unsafe { munmap(start as *mut _, piece.min(end - start)) };
        debug_assert!(unmapped.is_ok(), "munmap of our own mapping: {unmapped:?}");
    }
}

impl fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the bytes, which are the guest's, and the address, which an attacker could use.
        f.debug_struct("MappedFile")
            .field("len", &self.len())
            .field("writable", &self.is_writable())
            .field("poisoned", &self.poisoned())
            .finish_non_exhaustive()
    }
}
