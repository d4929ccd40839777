//! Moves frames from one guest's memory to another's: the heads through private memory, the remaining bytes from buffer
//! to buffer.
//!
//! A frame's first [`HEAD`] bytes come from the private copy that the switch has judged. Each later byte is loaded
//! once, added to the checksum in the register that loaded it, and stored from there. So the sum is that of the
//! delivered bytes, whatever the sender writes meanwhile.
//!
//! [`crate::dma`] translates the addresses.

pub(crate) mod own;
mod wide;

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use wide::{copy_header, copy_heads, widest_copy};

use super::MappedGuestMemory;
use super::copy::{GROUP, LINE, guest_may_have_written, prefetch, prefetch_group};
use super::view::PREFETCHED;

/// Bytes of a frame's head, which is copied to private memory.
pub(crate) const HEAD: usize = 64;
/// Maximum number of frames in a burst, which are copied together.
pub(crate) const BURST: usize = 32;
/// Distance in frames between the copied frame and the one whose bytes after the head are prefetched.
const AHEAD: usize = 4;

/// Function that writes checksums into a frame's private head before delivery, given the frame's index, the head, and
/// the sum of the bytes after it.
pub type FrameHeadCompletion<'a> = dyn FnMut(usize, &mut [u8; HEAD], u64) + 'a;

/// Frames to copy between two clients, one element of each slice per frame.
#[derive(Debug)]
pub struct FrameCopyList<'a> {
    /// Private copies of the frames' first 64 bytes.
    pub heads: &'a mut [[u8; HEAD]],
    /// Addresses of the frames in the sender's memory.
    pub sources: &'a [u64],
    /// Lengths of the frames in bytes.
    pub lengths: &'a [u32],
    /// Addresses in the receiver's memory to which the frames are copied.
    pub targets: &'a [u64],
    /// Output: the ones' complement sum of each frame's 16-bit little-endian words after the head.
    pub sums: &'a mut [u64],
}

/// Payloads to copy between two clients, one element of each slice per payload.
#[derive(Debug)]
pub struct PayloadCopyList<'a> {
    /// Addresses of the payloads in the sender's memory.
    pub sources: &'a [u64],
    /// Lengths of the payloads in bytes.
    pub lengths: &'a [u32],
    /// Addresses in the receiver's memory to which the payloads are copied.
    pub targets: &'a [u64],
    /// Output: the ones' complement sum of each payload's 16-bit little-endian words.
    pub sums: &'a mut [u64],
}

/// Mapped bytes that may be read, or written if `WRITES`.
#[derive(Clone, Copy)]
pub(crate) struct MappedBytes<'map, const WRITES: bool> {
    at: NonNull<u8>,
    len: usize,
    mapped: PhantomData<&'map MappedGuestMemory>,
}

impl<'map, const WRITES: bool> MappedBytes<'map, WRITES> {
    /// Empty range of mapped bytes.
    pub(crate) const NONE: Self = Self { at: NonNull::dangling(), len: 0, mapped: PhantomData };

    /// Returns all mapped bytes of a memory view, or none if `WRITES` and the view is read-only.
    #[inline]
    pub(crate) fn whole(view: &'map MappedGuestMemory) -> Self {
        if WRITES && !view.is_writable() {
            return Self::NONE;
        }
        Self { at: view.base(), len: view.len(), mapped: PhantomData }
    }

    /// Returns the `len` mapped bytes at `offset` of a mapped range, or `None` if the range is too short. `len` is not
    /// 0.
    #[inline(always)]
    pub(crate) fn part(self, offset: u64, len: usize) -> Option<Self> {
        // The first comparison bounds the offset, which then fits a `usize`, and the subtraction.
        let inside = offset < self.len as u64 && len <= self.len - offset as usize;
        // SAFETY: `offset` is inside of the mapped bytes.
        inside.then(|| Self { at: unsafe { self.at.add(offset as usize) }, len, mapped: PhantomData })
    }

    /// Prefetches the cache lines of a mapped range after its first line, up to a limit.
    #[inline]
    fn prefetch_rest(self) {
        for_rest_of(self.len, |offset, group| prefetch_at::<WRITES>(self.at, offset, group));
    }
}

/// Calls `line` with the offsets of a frame's cache lines after the first, up to a limit: of groups of lines, or of
/// single lines of a short frame. The last group of lines ends at the frame's end and may overlap the group before it,
/// which costs less than a loop over single lines.
#[inline(always)]
fn for_rest_of(len: usize, mut line: impl FnMut(usize, bool)) {
    let lines = len.min(PREFETCHED).div_ceil(LINE);
    if lines > GROUP {
        let mut first = 1;
        while first < lines {
            line(first.min(lines - GROUP) * LINE, true);
            first += GROUP;
        }
    } else {
        (1..lines).for_each(|at| line(at * LINE, false));
    }
}

/// Prefetches a line at an offset of a frame, or a group of lines.
#[inline(always)]
fn prefetch_at<const WRITES: bool>(frame: NonNull<u8>, offset: usize, group: bool) {
    let at = frame.as_ptr().wrapping_add(offset);
    if group { prefetch_group(at, WRITES) } else { prefetch(at, WRITES) }
}

/// Interface for the copies of frames: selects one of a client's DMA regions, and returns its mapped bytes.
pub(crate) trait DmaRegionSelector<'map, const WRITES: bool> {
    /// Returns the selected DMA region's first address and its bytes.
    fn region(&self) -> (u64, MappedBytes<'map, WRITES>);

    /// Selects the DMA region that holds an address. Returns `None` if no region does.
    fn enter_region_of(&mut self, iova: u64) -> Option<()>;
}

/// Returns the `len` mapped bytes at a guest address, or `None` if they cross DMA regions or are not permitted.
///
/// The search checks the bounds itself, since [`FrameAddresses`] keeps only where the bytes begin.
#[inline(always)]
fn find<'map, const WRITES: bool>(
    memory: &mut impl DmaRegionSelector<'map, WRITES>,
    iova: u64,
    len: u32,
) -> Option<MappedBytes<'map, WRITES>> {
    let (first, region) = memory.region();
    // An address before the first wraps to an offset beyond the last.
    match region.part(iova.wrapping_sub(first), len as usize) {
        Some(place) => Some(place),
        None => find_elsewhere(memory, iova, len),
    }
}

#[cold]
#[inline(never)]
fn find_elsewhere<'map, const WRITES: bool>(
    memory: &mut impl DmaRegionSelector<'map, WRITES>,
    iova: u64,
    len: u32,
) -> Option<MappedBytes<'map, WRITES>> {
    memory.enter_region_of(iova)?;
    let (first, region) = memory.region();
    region.part(iova.wrapping_sub(first), len as usize)
}

/// Addresses of a burst's frames in this process.
pub(crate) struct FrameAddresses<'map, 'run, const WRITES: bool> {
    /// Start of each frame's memory; the first `count` elements are initialized.
    at: [MaybeUninit<NonNull<u8>>; BURST],
    /// Length of each frame in bytes; the slice may be longer than `count`.
    lengths: &'run [u32],
    count: usize,
    /// Number of frames in the burst that are longer than a head.
    long: usize,
    /// True if a frame of the burst is shorter than a head.
    short: bool,
    mapped: PhantomData<&'map MappedGuestMemory>,
}

impl<'map, 'run, const WRITES: bool> FrameAddresses<'map, 'run, WRITES> {
    /// Finds the memory of a burst's frames by guest address and length (below 4 GiB), up to the first frame whose
    /// memory is not found. Prefetches the frames' first cache lines, and more lines of the first long frames.
    #[inline(always)]
    pub(crate) fn find(
        addresses: &[u64],
        lengths: &'run [u32],
        memory: &mut impl DmaRegionSelector<'map, WRITES>,
    ) -> Self {
        Self::collect(addresses, lengths, |iova, len| find(memory, iova, len))
    }

    #[inline(always)]
    fn collect(
        addresses: &[u64],
        lengths: &'run [u32],
        mut find: impl FnMut(u64, u32) -> Option<MappedBytes<'map, WRITES>>,
    ) -> Self {
        let mut at = [MaybeUninit::uninit(); BURST];
        let (mut found, mut long, mut short) = (0, 0, false);
        for ((address, length), slot) in addresses.iter().zip(lengths).zip(&mut at) {
            let Some(frame) = find(*address, *length) else { break };
            prefetch(frame.at.as_ptr(), WRITES);
            if *length != HEAD as u32 {
                if *length > HEAD as u32 {
                    if long < AHEAD {
                        frame.prefetch_rest();
                    }
                    long += 1;
                } else {
                    short = true;
                }
            }
            slot.write(frame.at);
            found += 1;
        }
        Self { at, lengths, count: found, long, short, mapped: PhantomData }
    }

    /// Returns the number of frames in the burst.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Returns true if a frame of the burst is longer than a head.
    pub(crate) fn any_long(&self) -> bool {
        self.long > 0
    }

    /// Limits the number of frames in the burst to `count`.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count);
    }

    /// Returns the first byte of each frame of the burst.
    #[inline(always)]
    fn starts(&self) -> &[NonNull<u8>] {
        // SAFETY: the first `count` are initialized.
        unsafe { self.at[..self.count].assume_init_ref() }
    }

    /// Returns the first byte of each frame of the burst, and the length of the frame's head.
    fn heads(&self) -> impl Iterator<Item = (NonNull<u8>, usize)> {
        let lengths = self.lengths.iter().map(|length| (*length as usize).min(HEAD));
        self.starts().iter().copied().zip(lengths)
    }
}

/// Addresses of a burst's frames that are longer than a head.
pub(crate) struct LongFrameAddresses<'map, 'run>(FrameAddresses<'map, 'run, false>);

impl<'map, 'run> LongFrameAddresses<'map, 'run> {
    /// Finds the memory of each frame that is longer than a head, as [`FrameAddresses::find`] does for all frames.
    #[inline(always)]
    pub(crate) fn find(
        addresses: &[u64],
        lengths: &'run [u32],
        memory: &mut impl DmaRegionSelector<'map, false>,
    ) -> Self {
        Self(FrameAddresses::collect(addresses, lengths, |iova, len| {
            if len > HEAD as u32 { find(memory, iova, len) } else { Some(MappedBytes::NONE) }
        }))
    }

    /// Returns the number of frames in the burst, frames without bytes after the head included.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Copies the head of each frame of the burst into `heads`, padded with zeros.
#[inline(always)]
pub(crate) fn gather(frames: &FrameAddresses<'_, '_, false>, heads: &mut [[u8; HEAD]]) {
    if frames.short {
        gather_any(frames, heads);
    } else {
        let pairs =
            frames.starts().iter().zip(heads).map(|(at, head)| (at.as_ptr().cast_const(), head.as_mut_ptr()));
        // SAFETY: none of the frames is shorter than a head, which is ours.
        unsafe { copy_heads::<HEAD>(pairs) };
    }
    guest_may_have_written();
}

#[inline(never)]
fn gather_any(frames: &FrameAddresses<'_, '_, false>, heads: &mut [[u8; HEAD]]) {
    for ((at, within), head) in frames.heads().zip(heads) {
        // SAFETY: the frame has as many mapped bytes as are copied into the head, which is ours.
        unsafe { ptr::copy_nonoverlapping(at.as_ptr(), head.as_mut_ptr(), within) };
        head[within..].fill(0);
    }
}

/// Writes each frame of a burst to its target: the head from its private copy, after `complete` has changed it, and the
/// remaining bytes from the sender's memory. Stores the sum of the remaining bytes. Only frames longer than a head need
/// a source.
#[inline(always)]
pub(crate) fn carry(
    heads: &mut [[u8; HEAD]],
    sources: Option<&LongFrameAddresses<'_, '_>>,
    targets: &FrameAddresses<'_, '_, true>,
    sums: &mut [u64],
    complete: Option<&mut FrameHeadCompletion<'_>>,
) {
    sums[..targets.count].fill(0);
    if let Some(sources) = sources {
        copy_behind::<HEAD>(&sources.0, targets, sums);
    }
    if let Some(complete) = complete {
        let frames = heads.iter_mut().zip(sums.iter()).take(targets.count).enumerate();
        frames.for_each(|(at, (head, sum))| complete(at, head, *sum));
    }
    if targets.short {
        carry_any(heads, targets);
    } else {
        let pairs = targets.starts().iter().zip(heads).map(|(at, head)| (head.as_ptr(), at.as_ptr()));
        // SAFETY: none of the targets is shorter than a head, which is ours.
        unsafe { copy_heads::<HEAD>(pairs) };
    }
    guest_may_have_written();
}

#[inline(never)]
fn carry_any(heads: &[[u8; HEAD]], targets: &FrameAddresses<'_, '_, true>) {
    for ((at, within), head) in targets.heads().zip(heads) {
        // SAFETY: the target has as many mapped bytes as are copied from the head, which is ours.
        unsafe { ptr::copy_nonoverlapping(head.as_ptr(), at.as_ptr(), within) };
    }
}

/// Copies the bytes of each frame of a burst after its first `SKIPPED` bytes to the frame's target, and stores their
/// sums.
#[inline(never)]
fn copy_behind<const SKIPPED: usize>(
    sources: &FrameAddresses<'_, '_, false>,
    targets: &FrameAddresses<'_, '_, true>,
    sums: &mut [u64],
) {
    let copy_and_sum = widest_copy();
    let (from, to) = (sources.starts(), targets.starts());
    let count = from.len().min(to.len()).min(sums.len());
    let (from, to, sums) = (&from[..count], &to[..count], &mut sums[..count]);
    let lengths = (&sources.lengths[..count], &targets.lengths[..count]);
    for at in 0..count {
        let ahead = at + AHEAD;
        if ahead < count {
            for_rest_of(lengths.0[ahead].min(lengths.1[ahead]) as usize, |offset, group| {
                prefetch_at::<false>(from[ahead], offset, group);
                prefetch_at::<true>(to[ahead], offset, group);
            });
        }
        let length = lengths.0[at].min(lengths.1[at]) as usize;
        if length > SKIPPED {
            // SAFETY: both places were found with at least `length` bytes, of which `SKIPPED` are not copied.
            sums[at] = unsafe {
                let (from, to) = (from[at].add(SKIPPED), to[at].add(SKIPPED));
                copy_and_sum(from.as_ptr(), to.as_ptr(), length - SKIPPED)
            };
        }
    }
}

/// Copies each payload of a burst to its target, which has the same length. Stores the sums of the payloads.
pub(crate) fn copy(
    sources: &FrameAddresses<'_, '_, false>,
    targets: &FrameAddresses<'_, '_, true>,
    sums: &mut [u64],
) {
    sums[..targets.count].fill(0);
    copy_behind::<0>(sources, targets, sums);
    guest_may_have_written();
}

/// Writes the first `length` bytes of each header to its target, up to the first target whose memory is not found.
/// Returns the number of written headers.
#[inline(always)]
pub(crate) fn scatter<'map, const N: usize>(
    headers: &[[u8; N]],
    length: usize,
    targets: &[u64],
    memory: &mut impl DmaRegionSelector<'map, true>,
) -> usize {
    let length = length.min(N);
    let mut written = 0;
    for (header, target) in headers.iter().zip(targets) {
        let Some(place) = find(memory, *target, length as u32) else { break };
        // SAFETY: as many mapped bytes are in the place as are copied from the header, which is ours.
        unsafe { copy_header(header.as_ptr(), place.at.as_ptr(), length) };
        written += 1;
    }
    guest_may_have_written();
    written
}
