//! Checks that a file descriptor may be mapped as guest memory, and computes the part of its file to map.
//!
//! A client may send any descriptor. The first call, which asks for its seals, is answered by the kernel alone, and
//! only for memory: a file on a file server or on FUSE could block even `fstat` for ever, and each later page fault
//! too.

use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, OFlags, fcntl_get_seals, fcntl_getfl, fstat, fstatfs};
use rustix::io::pread;

use super::{FileMapError, MemoryProtection};

const PAGE: u64 = 4096;
/// Magic number of hugetlbfs (`HUGETLBFS_MAGIC`, linux/magic.h).
const HUGETLBFS_MAGIC: u64 = 0x9584_58f6;

/// Part of a file to map, in whole pages, that contains the requested range.
#[derive(Debug)]
pub(super) struct MappedFilePart {
    /// File offset of the first byte to map.
    pub(super) offset: u64,
    /// Number of bytes of the file to map.
    pub(super) len: usize,
    /// Number of mapped bytes before the requested range.
    pub(super) lead: usize,
    /// Number of bytes in the requested range of the file.
    pub(super) visible: usize,
    /// Size of the mapped file's pages in bytes.
    pub(super) page: u64,
}

/// Identity of a file, equal for all of its file descriptors with the same access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    writable: bool,
}

impl FileIdentity {
    /// Returns the number of the file, which no other memory file has at the same time.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.inode
    }

    /// Returns the identity of the file behind a file descriptor that was mapped before, and so is a memory file.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn of_memory(fd: BorrowedFd<'_>) -> rustix::io::Result<Self> {
        let stat = fstat(fd)?;
        let writable = fcntl_getfl(fd)?.contains(OFlags::RDWR);
        Ok(Self { device: stat.st_dev, inode: stat.st_ino, writable })
    }
}

/// Returns true if a file descriptor is memory: a memfd, or a file on tmpfs or hugetlbfs, which cannot stall.
#[must_use]
pub fn is_memory(fd: BorrowedFd<'_>) -> bool {
    fcntl_get_seals(fd).is_ok()
}

/// Reads bytes of a client's memory file without mapping it, so that a hole gets no page, and a file that shrinks meanwhile
/// is only too short. May block.
///
/// # Errors
/// The file descriptor is no memory, cannot be read, or its file ends before the range does.
pub fn read_memory_file(fd: BorrowedFd<'_>, offset: u64, into: &mut [u8]) -> Result<(), FileMapError> {
    fcntl_get_seals(fd).map_err(|_| FileMapError::WrongKind)?;
    let len = into.len() as u64;
    match pread(fd, &mut *into, offset) {
        Ok(count) if count == into.len() => Ok(()),
        Ok(count) => Err(FileMapError::OutsideFile { offset, len, size: offset + count as u64 }),
        Err(error) => Err(FileMapError::System(error)),
    }
}

/// Checks a file descriptor, and computes the part of its file to map for a range: only the range's pages, or, with
/// `around`, the whole blocks that hold it, up to the file's end. Huge pages are mapped singly, since mapping more of
/// them could reserve them.
pub(super) fn check(
    fd: BorrowedFd<'_>,
    (offset, len): (u64, u64),
    protection: MemoryProtection,
    around: Option<fn(u64) -> u64>,
) -> Result<MappedFilePart, FileMapError> {
    fcntl_get_seals(fd).map_err(|_| FileMapError::WrongKind)?;
    let stat = fstat(fd).map_err(FileMapError::System)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(FileMapError::WrongKind);
    }
    check_mode(fcntl_getfl(fd).map_err(FileMapError::System)?, protection)?;
    let end = offset.checked_add(len).filter(|_| len > 0).ok_or(FileMapError::BadRange)?;
    if !offset.is_multiple_of(PAGE) {
        return Err(FileMapError::Unaligned { offset });
    }
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    if end > size {
        return Err(FileMapError::OutsideFile { offset, len, size });
    }
    let page = page_size_of(fd)?;
    let from = offset - offset % page;
    let to = end.checked_next_multiple_of(page).ok_or(FileMapError::BadRange)?;
    let bytes = |count: u64| usize::try_from(count).map_err(|_| FileMapError::BadRange);
    let Some(around) = around else {
        let (lead, visible) = (bytes(offset - from)?, bytes(len)?);
        return Ok(MappedFilePart { offset: from, len: bytes(to - from)?, lead, visible, page });
    };
    let block = if page == PAGE { around(size) } else { page };
    let from = offset - offset % block;
    let whole = size - size % page;
    let to = end.checked_next_multiple_of(block).unwrap_or(whole).min(whole).max(to);
    let len = bytes(to - from)?;
    Ok(MappedFilePart { offset: from, len, lead: 0, visible: len, page })
}

/// Checks that a file descriptor's access mode permits the mapping. A mapping is always readable, so write-only and
/// path-only descriptors are refused.
fn check_mode(flags: OFlags, protection: MemoryProtection) -> Result<(), FileMapError> {
    let writable = flags.contains(OFlags::RDWR);
    let readable = writable || !flags.intersects(OFlags::WRONLY | OFlags::PATH);
    let enough = match protection {
        MemoryProtection::ReadOnly => readable,
        MemoryProtection::ReadWrite => writable,
    };
    if enough { Ok(()) } else { Err(FileMapError::Permission) }
}

/// Returns the page size of a memory file in bytes. A huge page can only be mapped and unmapped whole.
fn page_size_of(fd: BorrowedFd<'_>) -> Result<u64, FileMapError> {
    let filesystem = fstatfs(fd).map_err(FileMapError::System)?;
    let huge = u64::try_from(filesystem.f_type).is_ok_and(|magic| magic == HUGETLBFS_MAGIC);
    let usual = rustix::param::page_size() as u64;
    let size = if huge { u64::try_from(filesystem.f_bsize).unwrap_or(usual) } else { usual };
    Ok(size.max(PAGE))
}
