//! Frames on their way from one guest's memory to another's: heads copied to private memory, and whole frames from buffer to buffer.
//!
//! A frame's first [`HEAD`] bytes come from the private copy that was judged. Each byte behind them is loaded once, summed up in the
//! register that loaded it, and stored from there. So the sum is of what was delivered, whatever the sender writes meanwhile.
//!
//! Left out: which addresses a guest gives these bytes ([`crate::dma`]), and what the sum is good for.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use super::View;
use super::copy::{guest_may_have_written, prefetch};
use super::view::{LINE, PREFETCHED};

/// Bytes of a head.
pub(crate) const HEAD: usize = 64;
/// Frames of a burst, at most.
pub(crate) const BURST: usize = 32;
/// Frames by which the lines behind the head are fetched ahead.
const AHEAD: usize = 4;
/// Bytes that are loaded before they are stored.
const BLOCK: usize = 32;

/// Frames to be carried, a slot of each slice per frame.
#[derive(Debug)]
pub struct Run<'a> {
    /// Private copies of their first 64 bytes.
    pub heads: &'a [[u8; HEAD]],
    /// Addresses of the sender's buffers.
    pub sources: &'a [u64],
    /// Bytes to deliver.
    pub lengths: &'a [u32],
    /// Addresses of the receiver's buffers.
    pub targets: &'a [u64],
    /// Receives the ones' complement sum of the 16-bit little-endian words behind the head.
    pub sums: &'a mut [u64],
}

/// Mapped bytes that may be read, or written if `WRITES`.
#[derive(Clone, Copy)]
pub(crate) struct Place<'map, const WRITES: bool> {
    at: NonNull<u8>,
    len: usize,
    mapped: PhantomData<&'map View>,
}

impl<'map, const WRITES: bool> Place<'map, WRITES> {
    /// No bytes.
    pub(crate) const NONE: Self = Self { at: NonNull::dangling(), len: 0, mapped: PhantomData };

    /// All bytes of a view; no bytes if `WRITES` and the view is read-only.
    #[inline]
    pub(crate) fn whole(view: &'map View) -> Self {
        if WRITES && !view.is_writable() {
            return Self::NONE;
        }
        Self { at: view.base(), len: view.len(), mapped: PhantomData }
    }

    /// The `len` bytes from `offset` on; `None` if they are not all there. `len` is not 0.
    #[inline(always)]
    pub(crate) fn part(self, offset: u64, len: usize) -> Option<Self> {
        // The first test bounds the offset, which then fits a `usize`, and the subtraction.
        let inside = offset < self.len as u64 && len <= self.len - offset as usize;
        // SAFETY: `offset` is inside of the mapped bytes.
        inside.then(|| Self { at: unsafe { self.at.add(offset as usize) }, len, mapped: PhantomData })
    }

    /// Fetches the lines behind the first, up to a limit.
    #[inline]
    fn prefetch_rest(self) {
        for line in (LINE..self.len.min(PREFETCHED)).step_by(LINE) {
            // SAFETY: `line` is less than the bytes there are.
            prefetch(unsafe { self.at.add(line) }, WRITES);
        }
    }
}

/// Places of the frames of a burst.
pub(crate) struct Places<'map, const WRITES: bool> {
    /// The first `count` are initialized.
    at: [MaybeUninit<NonNull<u8>>; BURST],
    lengths: [MaybeUninit<u32>; BURST],
    count: usize,
    /// Number of frames that are longer than a head.
    long: usize,
    /// A frame is shorter than a head.
    short: bool,
    mapped: PhantomData<&'map View>,
}

impl<'map, const WRITES: bool> Places<'map, WRITES> {
    /// Finds up to `count` frames of less than 4 GiB each, until one is not found, and fetches their first lines into the cache; of the
    /// first long ones also the others.
    #[inline(always)]
    pub(crate) fn find(count: usize, mut find: impl FnMut(usize) -> Option<Place<'map, WRITES>>) -> Self {
        let (mut at, mut lengths) = ([MaybeUninit::uninit(); BURST], [MaybeUninit::uninit(); BURST]);
        let (mut found, mut long, mut short) = (0, 0, false);
        while found < count.min(BURST) {
            let Some(frame) = find(found) else { break };
            prefetch(frame.at, WRITES);
            if frame.len != HEAD {
                short |= frame.len < HEAD;
                if frame.len > HEAD {
                    if long < AHEAD {
                        frame.prefetch_rest();
                    }
                    long += 1;
                }
            }
            at[found].write(frame.at);
            lengths[found].write(frame.len as u32);
            found += 1;
        }
        Self { at, lengths, count: found, long, short, mapped: PhantomData }
    }

    /// The number of frames.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Returns true if a frame is longer than a head.
    pub(crate) fn any_long(&self) -> bool {
        self.long > 0
    }

    /// Keeps `count` frames at most.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count);
    }

    /// The first byte of each frame.
    #[inline(always)]
    fn starts(&self) -> &[NonNull<u8>] {
        // SAFETY: the first `count` are initialized.
        unsafe { self.at[..self.count].assume_init_ref() }
    }

    #[inline(always)]
    fn get(&self, at: usize) -> Option<Place<'map, WRITES>> {
        let start = *self.starts().get(at)?;
        // SAFETY: `at` is less than `count`, and the first `count` are initialized.
        let len = unsafe { self.lengths[at].assume_init() } as usize;
        Some(Place { at: start, len, mapped: PhantomData })
    }
}

/// Copies the head of each frame, and zeros behind one that is shorter.
#[inline(always)]
pub(crate) fn gather(frames: &Places<'_, false>, heads: &mut [[u8; HEAD]]) {
    if frames.short {
        gather_any(frames, heads);
    } else {
        for (at, head) in frames.starts().iter().zip(heads) {
            // SAFETY: none of the frames is shorter than a head, which is ours.
            unsafe { ptr::copy_nonoverlapping(at.as_ptr(), head.as_mut_ptr(), HEAD) };
        }
    }
    guest_may_have_written();
}

#[inline(never)]
fn gather_any(frames: &Places<'_, false>, heads: &mut [[u8; HEAD]]) {
    for (at, head) in heads.iter_mut().enumerate().take(frames.count) {
        let Some(frame) = frames.get(at) else { return };
        let within = frame.len.min(HEAD);
        // SAFETY: the frame has as many mapped bytes as are copied into the head, which is ours.
        unsafe { ptr::copy_nonoverlapping(frame.at.as_ptr(), head.as_mut_ptr(), within) };
        head[within..].fill(0);
    }
}

/// Puts each frame where it belongs: its head from the private copy, and the rest from the source, which has as many bytes as the
/// target. Stores the sum of the rest. Sources of short frames need not be known.
#[inline(always)]
pub(crate) fn carry(
    heads: &[[u8; HEAD]],
    sources: Option<&Places<'_, false>>,
    targets: &Places<'_, true>,
    sums: &mut [u64],
) {
    sums[..targets.count].fill(0);
    if let Some(sources) = sources {
        carry_rests(sources, targets, sums);
    }
    if targets.short {
        carry_any(heads, targets);
    } else {
        for (at, head) in targets.starts().iter().zip(heads) {
            // SAFETY: none of the targets is shorter than a head, which is ours.
            unsafe { ptr::copy_nonoverlapping(head.as_ptr(), at.as_ptr(), HEAD) };
        }
    }
    guest_may_have_written();
}

#[inline(never)]
fn carry_any(heads: &[[u8; HEAD]], targets: &Places<'_, true>) {
    for (at, head) in heads.iter().enumerate().take(targets.count) {
        let Some(target) = targets.get(at) else { return };
        // SAFETY: the target has as many mapped bytes as are copied from the head, which is ours.
        unsafe { ptr::copy_nonoverlapping(head.as_ptr(), target.at.as_ptr(), target.len.min(HEAD)) };
    }
}

#[inline(never)]
fn carry_rests(sources: &Places<'_, false>, targets: &Places<'_, true>, sums: &mut [u64]) {
    for (at, sum) in sums.iter_mut().enumerate().take(targets.count) {
        if let (Some(source), Some(target)) = (sources.get(at + AHEAD), targets.get(at + AHEAD)) {
            source.prefetch_rest();
            target.prefetch_rest();
        }
        if let (Some(source), Some(target)) = (sources.get(at), targets.get(at))
            && target.len.min(source.len) > HEAD
        {
            *sum = carry_rest(&source, &target);
        }
    }
}

/// Copies what is behind the head; returns its sum.
#[inline(never)]
fn carry_rest(source: &Place<'_, false>, target: &Place<'_, true>) -> u64 {
    let length = target.len.min(source.len).saturating_sub(HEAD);
    // SAFETY: both places have this many bytes behind a head.
    unsafe {
        let (source, target) = (source.at.add(HEAD).as_ptr(), target.at.add(HEAD).as_ptr());
        copy_and_sum(source, target, length)
    }
}

/// Copies bytes and sums them up as little-endian words. Sums of dwords fit 64 bits.
///
/// # Safety
/// `length` bytes must be mapped at both places, at `to` for writing.
unsafe fn copy_and_sum(from: *const u8, to: *mut u8, length: usize) -> u64 {
    #[cfg(target_arch = "x86_64")]
    let whole = if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: as the caller says, and the processor has AVX2.
        unsafe { wide::copy_blocks(from, to, length / BLOCK) }
    } else {
        // SAFETY: as the caller says.
        unsafe { copy_blocks(from, to, length / BLOCK) }
    };
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: as the caller says.
    let whole = unsafe { copy_blocks(from, to, length / BLOCK) };
    let (at, mut rest) = (length - length % BLOCK, [0; BLOCK]);
    // SAFETY: as the caller says; `rest` has room for less than a block.
    unsafe {
        ptr::copy_nonoverlapping(from.add(at), rest.as_mut_ptr(), length - at);
        guest_may_have_written();
        ptr::copy_nonoverlapping(rest.as_ptr(), to.add(at), length - at);
    }
    whole + sum_of(&rest)
}

/// Copies and sums whole blocks, on any processor.
///
/// # Safety
/// As for [`copy_and_sum`], of `blocks` blocks.
unsafe fn copy_blocks(from: *const u8, to: *mut u8, blocks: usize) -> u64 {
    let mut sum = 0;
    for at in (0..blocks).map(|block| block * BLOCK) {
        let mut bytes = [0; BLOCK];
        // SAFETY: as the caller says.
        unsafe {
            ptr::copy_nonoverlapping(from.add(at), bytes.as_mut_ptr(), BLOCK);
            guest_may_have_written();
            ptr::copy_nonoverlapping(bytes.as_ptr(), to.add(at), BLOCK);
        }
        sum += sum_of(&bytes);
    }
    sum
}

fn sum_of(bytes: &[u8; BLOCK]) -> u64 {
    bytes.as_chunks::<4>().0.iter().map(|dword| u64::from(u32::from_le_bytes(*dword))).sum()
}

/// The same by registers of 32 bytes.
#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi64, _mm256_blend_epi32, _mm256_loadu_si256, _mm256_setzero_si256,
        _mm256_srli_epi64, _mm256_storeu_si256,
    };
    use std::mem;

    use super::{BLOCK, guest_may_have_written};

    /// Copies and sums whole blocks.
    ///
    /// # Safety
    /// As for [`super::copy_blocks`]; the processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn copy_blocks(from: *const u8, to: *mut u8, blocks: usize) -> u64 {
        let mut sums = [_mm256_setzero_si256(); 2];
        for at in (0..blocks).map(|block| block * BLOCK) {
            // SAFETY: as the caller says; neither place has to be aligned.
            let bytes = unsafe { _mm256_loadu_si256(from.add(at).cast()) };
            guest_may_have_written();
            // SAFETY: as above.
            unsafe { _mm256_storeu_si256(to.add(at).cast(), bytes) };
            // Lanes of 64 bits take dwords, so that nothing is carried.
            let low = _mm256_blend_epi32::<0b1010_1010>(bytes, _mm256_setzero_si256());
            sums[0] = _mm256_add_epi64(sums[0], low);
            sums[1] = _mm256_add_epi64(sums[1], _mm256_srli_epi64::<32>(bytes));
        }
        lanes(_mm256_add_epi64(sums[0], sums[1])).into_iter().sum()
    }

    fn lanes(register: __m256i) -> [u64; 4] {
        // SAFETY: both are 32 bytes, of which any value is one.
        unsafe { mem::transmute(register) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::*;

    proptest! {
        #[test]
        fn wide_registers_copy_and_sum_as_the_portable_way_does(bytes: Vec<u8>, long in any::<bool>()) {
            let bytes = if long { bytes.repeat(40) } else { bytes };
            let (blocks, mut copies) = (bytes.len() / BLOCK, [vec![0; bytes.len()], vec![0; bytes.len()]]);
            // SAFETY: both vectors have the bytes.
            let portable = unsafe { copy_blocks(bytes.as_ptr(), copies[0].as_mut_ptr(), blocks) };
            // SAFETY: as above.
            let sum = unsafe { copy_and_sum(bytes.as_ptr(), copies[1].as_mut_ptr(), bytes.len()) };
            let mut rest = bytes[blocks * BLOCK..].to_vec();
            copies[0][blocks * BLOCK..].copy_from_slice(&rest);
            rest.resize(BLOCK, 0);
            assert_eq!(sum, portable + sum_of(rest.first_chunk().unwrap()));
            assert!(copies[0] == bytes && copies[1] == bytes);
        }
    }
}
