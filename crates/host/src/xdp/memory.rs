//! Memory that is shared with the kernel: AF_XDP rings, and the UMEM's chunks for frames.

use std::io;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// Bytes of a UMEM chunk. The kernel permits a page at most, and reserves [`HEADROOM`].
pub(super) const CHUNK: usize = 4096;
/// Bytes that the kernel reserves before a received frame (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;
/// Maximum length in bytes of a received or sent frame: the part of a UMEM chunk behind the headroom.
pub(super) const ROOM: usize = CHUNK - HEADROOM;

/// Memory mapping for AF_XDP, unmapped on drop.
#[derive(Debug)]
pub(super) struct XdpMemoryMapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the fields are an address and a length. Accesses to the memory are atomic or made by its users
// (`XdpEntries`, `UmemChunks`), which have one owner each.
unsafe impl Send for XdpMemoryMapping {}
// SAFETY: as above; a shared reference gives access to words only, atomically.
unsafe impl Sync for XdpMemoryMapping {}

impl XdpMemoryMapping {
    /// Maps a part of an AF_XDP socket, at one of the offsets that the kernel defines.
    pub(super) fn of_socket(socket: impl AsFd, offset: u64, len: usize) -> io::Result<Arc<Self>> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: a new mapping at an address that the kernel chooses touches no memory that is in use.
        let start = unsafe { mmap(ptr::null_mut(), len, access, flags, socket, offset) }?;
        Self::over(start.cast(), len)
    }

    /// Maps private memory of `len` bytes for AF_XDP.
    pub(super) fn anonymous(len: usize) -> io::Result<Arc<Self>> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: as above.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), len, access, flags) }?;
        Self::over(start.cast(), len)
    }

    fn over(start: *mut u8, len: usize) -> io::Result<Arc<Self>> {
        let start = NonNull::new(start).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Arc::new(Self { start, len }))
    }

    /// Returns the AF_XDP mapping's address in this process, for the kernel.
    pub(super) fn address(&self) -> u64 {
        self.start.as_ptr().expose_provenance() as u64
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the 32-bit word at an offset of the AF_XDP mapping, or `None` outside it.
    pub(super) fn word(&self, offset: usize) -> Option<&AtomicU32> {
        let place = self.place(offset, size_of::<u32>(), align_of::<u32>())?;
        // SAFETY: the word is inside the mapping and aligned, and the kernel accesses it atomically too.
        Some(unsafe { AtomicU32::from_ptr(place.as_ptr().cast()) })
    }

    /// Returns the 32-bit word at an offset that [`Self::word`] has accepted before.
    pub(super) fn checked_word(&self, offset: usize) -> &AtomicU32 {
        static NOWHERE: AtomicU32 = AtomicU32::new(0);
        self.word(offset).unwrap_or(&NOWHERE)
    }

    /// Returns a pointer to a range of the AF_XDP mapping. Returns `None` if the range is outside or not
    /// aligned.
    pub(super) fn place(&self, offset: usize, len: usize, align: usize) -> Option<NonNull<u8>> {
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.len);
        if !inside || !offset.is_multiple_of(align) {
            return None;
        }
        // SAFETY: the offset is inside the mapping.
        Some(unsafe { self.start.add(offset) })
    }
}

impl Drop for XdpMemoryMapping {
    fn drop(&mut self) {
        // SAFETY: every reference into a mapping holds it, and this is the last holder. The kernel's later writes
        // go to pages that it holds itself.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "a mapping must be unmapped");
    }
}

/// Chunks of the UMEM, numbered from 0, each owned by the kernel or by this process.
#[derive(Debug)]
pub(super) struct UmemChunks {
    memory: Arc<XdpMemoryMapping>,
}

/// Reason why a frame was not copied out of a chunk of AF_XDP memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UmemChunkCopyError {
    /// The frame in the UMEM chunk exceeds the caller's buffer.
    TooLong,
    /// The frame is not inside a UMEM chunk, which the kernel never reports.
    Outside,
}

impl UmemChunks {
    pub(super) fn new(memory: Arc<XdpMemoryMapping>) -> Self {
        Self { memory }
    }

    pub(super) fn count(&self) -> u32 {
        (self.memory.len() / CHUNK) as u32
    }

    /// Returns the number of the chunk that holds an address of the UMEM, or `None` if no chunk does.
    pub(super) fn of(&self, address: u64) -> Option<u32> {
        let chunk = u32::try_from(address / CHUNK as u64).ok()?;
        (chunk < self.count()).then_some(chunk)
    }

    /// Returns the address of a chunk in the UMEM.
    pub(super) fn address(chunk: u32) -> u64 {
        u64::from(chunk) * CHUNK as u64
    }

    /// Copies a frame out of a UMEM chunk that this process owns.
    pub(super) fn copy_out(
        &self,
        address: u64,
        len: u32,
        into: &mut [u8],
    ) -> Result<usize, UmemChunkCopyError> {
        let (offset, len) = (address as usize, len as usize);
        let end = (offset % CHUNK).checked_add(len).ok_or(UmemChunkCopyError::Outside)?;
        if self.of(address).is_none() || end > CHUNK {
            return Err(UmemChunkCopyError::Outside);
        }
        let into = into.get_mut(..len).ok_or(UmemChunkCopyError::TooLong)?;
        let from = self.memory.place(offset, len, 1).ok_or(UmemChunkCopyError::Outside)?;
        // SAFETY: the bytes are inside the mapping, and of a chunk that this process owns: the kernel writes to it
        // only after it got it back. `into` is no part of the mapping, to which there are no references.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), into.as_mut_ptr(), len) };
        Ok(len)
    }

    /// Copies a frame into a UMEM chunk that this process owns. Returns false if the frame does not fit.
    pub(super) fn copy_in(&mut self, chunk: u32, frame: &[u8]) -> bool {
        let offset = Self::address(chunk) as usize;
        let place = self.memory.place(offset, frame.len(), 1).filter(|_| frame.len() <= ROOM);
        let Some(place) = place else { return false };
        // SAFETY: as in `copy_out`, with source and target exchanged.
        unsafe { ptr::copy_nonoverlapping(frame.as_ptr(), place.as_ptr(), frame.len()) };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn received_xdp_frame_outside_one_umem_chunk_is_refused() {
        let mut chunks = UmemChunks::new(XdpMemoryMapping::anonymous(4 * CHUNK).unwrap());
        assert!(chunks.copy_in(1, &[7; ROOM]));
        let mut into = [0; ROOM];
        assert_eq!(chunks.copy_out(CHUNK as u64, ROOM as u32, &mut into), Ok(ROOM));
        assert_eq!(into, [7; ROOM]);
        assert!(!chunks.copy_in(1, &[7; ROOM + 1]), "longer than the chunk without headroom");
        assert!(!chunks.copy_in(4, &[7; 60]), "the UMEM has no chunk 4");
        assert_eq!(chunks.copy_out(CHUNK as u64, 61, &mut [0; 60]), Err(UmemChunkCopyError::TooLong));
        let chunk = CHUNK as u64;
        for (address, len) in
            [(4 * chunk, 1), (chunk - 1, 2), (u64::MAX, 1), (u64::MAX - 4095, 4096), (0, u32::MAX), (0, 4097)]
        {
            let refused = chunks.copy_out(address, len, &mut vec![0; 8192]);
            assert_eq!(refused, Err(UmemChunkCopyError::Outside), "{address:#x} {len}");
        }
    }
}
