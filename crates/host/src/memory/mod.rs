//! A file mapped shared into this process: guest memory as the card reaches it.
//!
//! The other side of the mapping is a guest or a VMM that may write, or truncate, at any moment. Therefore no
//! reference to mapped bytes ever leaves this module: bytes are copied in and copied out, after a bounds check. A
//! file that shrinks under its mapping does not kill the process: the mapping turns into zeros and says so.
//!
//! Left out: which addresses a guest gives these bytes ([`crate::dma`]), and any notion of descriptor.

#![expect(
    unsafe_code,
    reason = "mapping memory and reaching it through raw pointers is what this module is for"
)]

mod copy;
pub(crate) mod frames;
pub(crate) mod sigbus;
mod source;
#[cfg(test)]
mod tests;
mod view;

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

pub(crate) use copy::done_last;
pub use sigbus::{MappingShare, poison_events};
pub use source::{FileIdentity, is_memory};
pub use view::prefetch;
pub(crate) use view::{View, Window};

/// Bytes of the longest descriptor.
pub const DESCRIPTOR: usize = copy::LONG;

/// What a mapping permits this process to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Loads only.
    ReadOnly,
    /// Loads and stores.
    ReadWrite,
}

/// Why a descriptor could not be mapped.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum MapError {
    /// The descriptor is not memory: a pipe, a socket, a directory, a device, or a file that a disk or a file
    /// server stands behind and could stall.
    #[error("guest memory must be a memfd or a file on tmpfs or hugetlbfs")]
    WrongKind,
    /// The descriptor was opened, or is sealed, without the access asked for.
    #[error("the descriptor does not permit the access asked for")]
    Permission,
    /// The range has no bytes, or its end is not a number.
    #[error("an empty or wrapping range cannot be mapped")]
    BadRange,
    /// The file offset is not a multiple of the page size.
    #[error("file offset {offset:#x} is not page aligned")]
    Unaligned {
        /// The offset asked for, in bytes.
        offset: u64,
    },
    /// The file is too short for the range.
    #[error("range {offset:#x}+{len:#x} lies outside the file of {size:#x} bytes")]
    OutsideFile {
        /// First byte asked for.
        offset: u64,
        /// Bytes asked for.
        len: u64,
        /// Bytes in the file.
        size: u64,
    },
    /// The process-wide table of mappings is full.
    #[error("no room for another mapping in this process")]
    TooManyMappings,
    /// The kernel refused.
    #[error("the mapping was refused: {0}")]
    System(Errno),
}

impl MapError {
    /// The errno that says this to a client.
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

/// Why bytes of a mapping could not be reached. Nothing was moved.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum AccessError {
    /// Some byte of the range lies outside the mapping.
    #[error("access to {offset:#x}+{len:#x} lies outside the mapping")]
    OutOfRange {
        /// First byte asked for, from the start of the mapping.
        offset: u64,
        /// Bytes asked for.
        len: usize,
    },
    /// A store to a read-only mapping.
    #[error("the mapping is read-only")]
    ReadOnly,
}

/// A range of a file, mapped shared. Unmapped when dropped, piece by piece: have a [`Worker`](crate::worker::Worker) drop
/// what is large.
pub struct MappedFile {
    /// The bytes asked for. Inside `span`: huge pages make the kernel map more than was asked for.
    view: View,
    span: sigbus::Span,
    registration: sigbus::Registration,
    /// Bytes of one of the file's pages.
    page: u64,
}

impl MappedFile {
    /// Maps `len` bytes of `fd` from byte `offset` on. The descriptor may be closed afterwards.
    ///
    /// `offset` must be a multiple of 4,096; with huge pages the kernel is asked for the huge pages around
    /// the range and the range alone is given out.
    ///
    /// # Errors
    /// See [`MapError`]: what is not memory, what is too short and what lacks permission is refused.
    pub fn map(fd: impl AsFd, offset: u64, len: u64, protection: Protection) -> Result<Self, MapError> {
        let fd = fd.as_fd();
        Self::map_extent(fd, &source::check(fd, (offset, len), protection, None)?, protection)
    }

    /// Whether a range could be mapped, as far as the descriptor goes.
    pub(crate) fn check(
        fd: impl AsFd,
        offset: u64,
        len: u64,
        protection: Protection,
    ) -> Result<(), MapError> {
        source::check(fd.as_fd(), (offset, len), protection, None).map(drop)
    }

    /// Maps the blocks of a file that hold a range, as far as the file goes, so that ranges nearby need no mapping of
    /// their own; `block` says how many bytes a block has in a file of so many. Answers the file offset of the first byte
    /// as well.
    ///
    /// # Errors
    /// As for [`Self::map`]: the range must be inside the file.
    pub(crate) fn map_around(
        fd: BorrowedFd<'_>,
        (offset, len): (u64, u64),
        protection: Protection,
        block: fn(u64) -> u64,
    ) -> Result<(Self, u64), MapError> {
        let extent = source::check(fd, (offset, len), protection, Some(block))?;
        match Self::map_extent(fd, &extent, protection) {
            // There may be room for the range alone (RLIMIT_AS).
            Err(MapError::System(Errno::NOMEM)) => Ok((Self::map(fd, offset, len, protection)?, offset)),
            mapped => Ok((mapped?, extent.offset)),
        }
    }

    fn map_extent(
        fd: BorrowedFd<'_>,
        extent: &source::Extent,
        protection: Protection,
    ) -> Result<Self, MapError> {
        sigbus::install().map_err(MapError::System)?;
        let mut prot = ProtFlags::READ;
        prot.set(ProtFlags::WRITE, protection == Protection::ReadWrite);
        // SAFETY: a null hint makes the kernel pick unused addresses, so no existing memory is touched.
        let start = unsafe { mmap(ptr::null_mut(), extent.len, prot, MapFlags::SHARED, fd, extent.offset) }
            .map_err(refused_mapping)?;
        let span = sigbus::Span { start: start as usize, len: extent.len };
        let Some(registration) = sigbus::register(span) else {
            unmap(span, extent.page);
            return Err(MapError::TooManyMappings);
        };
        // SAFETY: `lead` is smaller than the span (`source::check`), which is mapped and not null.
        let base = unsafe { NonNull::new_unchecked(start.cast::<u8>().add(extent.lead)) };
        // SAFETY: `visible` bytes behind `lead` are inside the span, which stays mapped until `drop`, and is mapped for writing if
        // that is asked for.
        let view = unsafe { View::new(base, extent.visible, protection == Protection::ReadWrite) };
        Ok(Self { view, span, registration, page: extent.page })
    }

    /// Bytes that can be reached: offsets 0 to `len() - 1`.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.view.len() as u64
    }

    /// Always false: an empty range cannot be mapped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.view.len() == 0
    }

    /// Where the first byte is in this process, for the kernel to hand to a device.
    pub(crate) fn address(&self) -> usize {
        self.view.address()
    }

    /// Whether stores are permitted.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.view.is_writable()
    }

    /// Whether the file shrank (or its memory failed) under the mapping. From then on the mapping is private
    /// zeros: nothing the device does reaches the guest any more, and its session should be ended.
    #[must_use]
    pub fn poisoned(&self) -> bool {
        self.registration.poisoned()
    }

    /// Copies bytes out. The copy is taken once: later changes by the guest do not show in `buffer`.
    ///
    /// # Errors
    /// [`AccessError::OutOfRange`].
    #[inline]
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), AccessError> {
        self.view.read(offset, buffer)
    }

    /// Copies descriptors of `size` bytes, 16 or 32, each to the front of an element of `into`, up to the first without bit 0 in
    /// its second word: the device sets that bit when the rest is written. Returns how many were copied.
    ///
    /// # Errors
    /// [`AccessError::OutOfRange`]; descriptors of another size, or not aligned to words, are out of range too.
    #[inline]
    pub fn read_completed(
        &self,
        offset: u64,
        size: usize,
        into: &mut [[u8; DESCRIPTOR]],
    ) -> Result<usize, AccessError> {
        self.view.read_completed(offset, size, into)
    }

    /// Copies bytes in. Up to 64 bytes that are 8-byte aligned and whole 8-byte words are stored word by word
    /// in rising order, so a guest that sees the last word of a descriptor written back sees the words
    /// before.
    ///
    /// # Errors
    /// [`AccessError::OutOfRange`], [`AccessError::ReadOnly`].
    #[inline]
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), AccessError> {
        self.view.write(offset, bytes)
    }

    /// Fetches the lines of `length` bytes from `offset` on into the cache, to be written if `writes`, up to a limit. Does nothing
    /// if they are not in the mapping.
    #[inline]
    pub fn prefetch(&self, range: (u64, usize), writes: bool) {
        self.view.prefetch(range, writes);
    }

    /// A dword that the other side writes whole. What it had stored before can be seen afterwards.
    ///
    /// # Errors
    /// [`AccessError::OutOfRange`]; a dword that is not aligned is out of range too.
    #[inline]
    pub fn load_dword(&self, offset: u64) -> Result<u32, AccessError> {
        Ok(self.dword(offset)?.load(Ordering::Acquire))
    }

    /// Loads dwords that follow each other, each as [`Self::load_dword`] does, the last first.
    ///
    /// # Errors
    /// As for [`Self::load_dword`]; then none is loaded.
    #[inline]
    pub fn load_dwords(&self, offset: u64, into: &mut [u32]) -> Result<(), AccessError> {
        let first = self.view.at(offset, size_of_val(into))?.cast::<AtomicU32>();
        if !first.is_aligned() {
            return Err(AccessError::OutOfRange { offset, len: size_of_val(into) });
        }
        for (at, value) in into.iter_mut().enumerate().rev() {
            // SAFETY: `at` checked that as many bytes as `into` has are mapped there, for as long as `self` lives, and they are
            // aligned. The rest is as in `dword`.
            *value = unsafe { first.add(at).as_ref() }.load(Ordering::Acquire);
        }
        Ok(())
    }

    /// Stores a dword as a whole. What was stored before can be seen by who sees it.
    ///
    /// # Errors
    /// As for [`Self::load_dword`], and [`AccessError::ReadOnly`].
    #[inline]
    pub fn store_dword(&self, offset: u64, value: u32) -> Result<(), AccessError> {
        self.writable_dword(offset)?.store(value, Ordering::Release);
        Ok(())
    }

    /// Stores a dword if `old` is there; answers whether it was.
    ///
    /// # Errors
    /// As for [`Self::store_dword`].
    #[inline]
    pub fn replace_dword(&self, offset: u64, old: u32, new: u32) -> Result<bool, AccessError> {
        let dword = self.writable_dword(offset)?;
        Ok(dword.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok())
    }

    #[inline]
    fn writable_dword(&self, offset: u64) -> Result<&AtomicU32, AccessError> {
        if !self.is_writable() {
            return Err(AccessError::ReadOnly);
        }
        self.dword(offset)
    }

    /// A dword of the mapping. To be stored to only if the mapping is writable.
    #[inline]
    fn dword(&self, offset: u64) -> Result<&AtomicU32, AccessError> {
        let dword = self.view.at(offset, size_of::<u32>())?.cast::<AtomicU32>();
        if !dword.is_aligned() {
            return Err(AccessError::OutOfRange { offset, len: size_of::<u32>() });
        }
        // SAFETY: `at` checked that four bytes are mapped there, for as long as `self` lives, and they are aligned. Any
        // value is one. Others may change it at any time, which is what an atomic is for; this process reaches these
        // bytes by copies too, whose source or target is never a reference.
        Ok(unsafe { dword.as_ref() })
    }
}

fn refused_mapping(errno: Errno) -> MapError {
    match errno {
        Errno::PERM | Errno::ACCESS => MapError::Permission,
        other => MapError::System(other),
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // Out of the table first: once unmapped, the addresses may at once belong to another thread's
        // mapping.
        self.registration.release();
        unmap(self.span, self.page);
    }
}

/// Bytes unmapped at a time. Whoever maps, unmaps or faults in another thread waits for one such piece at most.
const PIECE: u64 = 4 << 20;

/// Unmaps a span that nobody uses any more, in pieces of whole pages.
fn unmap(span: sigbus::Span, page: u64) {
    let piece = PIECE.max(page) as usize;
    let end = span.start + span.len;
    for start in (span.start..end).step_by(piece) {
        // SAFETY: the span was mapped by `map_extent`, and whoever held it is being dropped: no pointer into it is left.
        let unmapped = unsafe { munmap(start as *mut _, piece.min(end - start)) };
        debug_assert!(unmapped.is_ok(), "munmap of our own mapping: {unmapped:?}");
    }
}

impl fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The bytes are the guest's, and the address is nobody's business.
        f.debug_struct("MappedFile")
            .field("len", &self.len())
            .field("writable", &self.is_writable())
            .field("poisoned", &self.poisoned())
            .finish_non_exhaustive()
    }
}
