//! Copies bytes between private memory and memory that a guest writes at the same time.
//!
//! Rust has no type for plain bytes that another process may change. The copies here are the usual solution: plain
//! copies through raw pointers, fenced so that the compiler can neither load guest memory twice nor move a later
//! load before an earlier one. The callers check the bounds.

use std::arch::asm;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Longest copy in bytes whose word order is guaranteed: a cache line of ring descriptors, 16 bytes each.
const ORDERED_LIMIT: usize = 64;
const WORD: usize = size_of::<u64>();
/// Bytes at the start of a frame, which hold the headers of most frames.
const HEAD: usize = 64;
/// Bytes of a cache line.
pub(super) const LINE: usize = 64;
/// Number of cache lines that [`prefetch_group`] prefetches.
pub(super) const GROUP: usize = 8;
/// Bytes of a short (16-byte) receive or transmit descriptor.
pub(super) const SHORT: usize = 16;
/// Bytes of a long (32-byte) receive or transmit descriptor.
pub(super) const LONG: usize = 32;

/// Copies guest bytes into `buffer`, and loads each byte once.
///
/// The first 64 bytes, where a frame has its headers, are stored in pieces that do not overlap, each at a multiple of
/// its own size. So an aligned load of eight bytes finds all of them in one store. A load that spans two stores has to
/// wait until both have reached the cache, behind all stores before them, among them those into the memory of the guest
/// that got the last frame.
///
/// # Safety
/// `buffer.len()` bytes from `source` on must be mapped, and must not be part of `buffer`.
#[inline]
pub(super) unsafe fn out_of_guest(source: *const u8, buffer: &mut [u8]) {
    if buffer.len() != HEAD {
        // SAFETY: as the caller says.
        return unsafe { any_out_of_guest(source, buffer) };
    }
    // SAFETY: the caller vouches for as many bytes from `source` on as `buffer` has, which are not part of it.
    unsafe { ptr::copy_nonoverlapping(source, buffer.as_mut_ptr(), HEAD) };
    guest_may_have_written();
}

/// Copies any number of bytes out of guest memory. A separate function, so that a caller that copies the common length
/// (a frame's head) need not save registers.
///
/// # Safety
/// The conditions of [`out_of_guest`] apply.
#[inline(never)]
unsafe fn any_out_of_guest(source: *const u8, buffer: &mut [u8]) {
    let (length, target) = (buffer.len(), buffer.as_mut_ptr());
    let mut at = 0;
    if length >= HEAD {
        at = length & !(WORD - 1);
        // SAFETY: the caller vouches for `length` bytes from `source` on, which are not part of `buffer`; `at` is at
        // most `length`.
        unsafe {
            ptr::copy_nonoverlapping(source, target, HEAD);
            ptr::copy_nonoverlapping(source.add(HEAD), target.add(HEAD), at - HEAD);
        }
    }
    for piece in [32, 16, 8, 4, 2, 1] {
        if (length - at) & piece != 0 {
            // SAFETY: as above; `piece` is at most what is left from `at` on.
            unsafe { ptr::copy_nonoverlapping(source.add(at), target.add(at), piece) };
            at += piece;
        }
    }
    guest_may_have_written();
}

/// Copies `bytes` into guest memory; see [`super::MappedFile::write`] for the order.
///
/// # Safety
/// `bytes.len()` bytes from `target` on must be mapped for writing, and must not be part of `bytes`.
#[inline]
pub(super) unsafe fn into_guest(bytes: &[u8], target: *mut u8) {
    match bytes.as_array::<HEAD>() {
        // SAFETY: the caller vouches for as many bytes from `target` on, which is aligned.
        Some(bytes) if target.cast::<u64>().is_aligned() => unsafe { words_into_guest(bytes, target) },
        // SAFETY: as the caller says.
        _ => unsafe { any_into_guest(bytes, target) },
    }
}

/// Copies any number of bytes into guest memory. A separate function, so that a caller that copies the common length
/// need not save registers.
///
/// # Safety
/// The conditions of [`into_guest`] apply.
#[inline(never)]
unsafe fn any_into_guest(bytes: &[u8], target: *mut u8) {
    let words = bytes.len() <= ORDERED_LIMIT && bytes.len().is_multiple_of(WORD);
    if words && target.cast::<u64>().is_aligned() {
        // SAFETY: the caller vouches for `target`, which is aligned.
        unsafe { words_into_guest(bytes, target) };
    } else {
        // SAFETY: the caller vouches for `target`; `bytes` is a live slice and does not overlap it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
    }
}

/// Copies whole 8-byte words into guest memory, in order of address.
///
/// # Safety
/// `bytes.len()` bytes from `target` on must be mapped for writing, and `target` must be aligned to a word.
#[inline(always)]
unsafe fn words_into_guest(bytes: &[u8], target: *mut u8) {
    for (index, word) in bytes.as_chunks::<WORD>().0.iter().enumerate() {
        // SAFETY: `index` counts whole words inside the range the caller vouches for, and `target` is
        // aligned.
        let slot = unsafe { AtomicU64::from_ptr(target.cast::<u64>().add(index)) };
        slot.store(u64::from_ne_bytes(*word), Ordering::Release);
    }
}

/// Stores words in order of address.
///
/// # Safety
/// All words from `target` on must be mapped for writing, and `target` must be aligned.
#[inline]
pub(super) unsafe fn store_words(words: &[u64], target: *mut u64) {
    for (index, word) in words.iter().enumerate() {
        // SAFETY: `index` counts words inside the range the caller vouches for, and `target` is aligned.
        let slot = unsafe { AtomicU64::from_ptr(target.add(index)) };
        slot.store(*word, Ordering::Release);
    }
}

/// Copies ring descriptors of `size` bytes into guest memory; see [`super::MappedGuestMemory::write_descriptors`] for the
/// order.
///
/// # Safety
/// `bytes.len()` bytes from `target` on must be mapped for writing, and must not be part of `bytes`.
#[inline]
pub(super) unsafe fn descriptors_into_guest(bytes: &[u8], size: usize, target: *mut u8) {
    let words = target.cast::<u64>();
    match (bytes.as_chunks::<SHORT>(), bytes.as_chunks::<LONG>()) {
        // SAFETY: the caller vouches for the range, which has as many words as the descriptors, and `words` is aligned.
        ((short, []), _) if size == SHORT && words.is_aligned() => unsafe { store(short, &[0, 1], words) },
        // SAFETY: as above.
        (_, (long, [])) if size == LONG && words.is_aligned() => unsafe { store(long, &[0, 2, 3, 1], words) },
        // SAFETY: the caller vouches for `target`; `bytes` is a live slice and does not overlap it.
        _ => unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) },
    }
}

/// Stores consecutive ring descriptors of `N` 8-byte words, the words of each descriptor in `order`.
///
/// # Safety
/// All words from `target` on must be mapped for writing, and `target` must be aligned.
#[inline(always)]
unsafe fn store<const N: usize, const SIZE: usize>(
    descriptors: &[[u8; SIZE]],
    order: &[usize; N],
    target: *mut u64,
) {
    for (at, descriptor) in descriptors.iter().enumerate() {
        let words = descriptor.as_chunks::<WORD>().0;
        for index in order {
            // SAFETY: the caller vouches for the words of every descriptor, of which `at` is one and `index` is in it.
            let slot = unsafe { AtomicU64::from_ptr(target.add(at * N + index)) };
            slot.store(u64::from_ne_bytes(words[*index]), Ordering::Release);
        }
    }
}

/// Copies ring descriptors of `size` bytes ([`SHORT`] or [`LONG`]) up to the first incomplete one; see
/// [`super::MappedFile::read_completed`]. Returns the number of copied descriptors.
///
/// # Safety
/// The memory from `source` on must hold a mapped descriptor for each element of `into`, be aligned to words, and not be
/// part of `into`.
#[inline]
pub(super) unsafe fn completed_out_of_guest(
    source: *const u8,
    size: usize,
    into: &mut [[u8; LONG]],
) -> usize {
    let words = source.cast_mut().cast::<u64>();
    // SAFETY: the caller vouches for descriptors of that many words.
    if size == SHORT { unsafe { load::<2>(words, into) } } else { unsafe { load::<4>(words, into) } }
}

/// Loads ring descriptors of `N` 8-byte words up to the first without bit 0 in its second word, which is loaded first.
/// Returns the number of loaded descriptors.
///
/// # Safety
/// The memory from `source` on must hold a mapped descriptor for each element of `into`, and be aligned to words.
#[inline(always)]
unsafe fn load<const N: usize>(source: *mut u64, into: &mut [[u8; LONG]]) -> usize {
    for (at, raw) in into.iter_mut().enumerate() {
        // SAFETY: the caller vouches for the words of every descriptor, of which `at` is one and `index` is in it.
        let word = |index: usize| unsafe { AtomicU64::from_ptr(source.add(at * N + index)) };
        let second = word(1).load(Ordering::Acquire);
        if second & 1 == 0 {
            return at;
        }
        for (index, bytes) in raw.as_chunks_mut::<WORD>().0.iter_mut().enumerate().take(N) {
            let loaded = if index == 1 { second } else { word(index).load(Ordering::Relaxed) };
            *bytes = loaded.to_ne_bytes();
        }
    }
    into.len()
}

/// Returns the order in which a ring descriptor's words are written: the second word, which has the done bit, last.
pub(crate) fn done_last(words: usize) -> impl Iterator<Item = usize> {
    let done = (words > 1).then_some(1);
    (0..words).filter(|word| *word != 1).chain(done)
}

/// Prefetches the cache line at an address, for writing if `writes`, where the processor has such an instruction.
///
/// The compiler's own prefetch for writing is one for reading, unless it builds for processors with PREFETCHW only. A
/// line fetched that way is still the other processor's too, and the store has to wait for it a second time. All x86-64
/// processors know PREFETCHW: the first of Intel's do nothing for it.
#[inline]
pub(super) fn prefetch(at: *const u8, writes: bool) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        if writes {
            // SAFETY: a prefetch is a hint. It never faults, and the program cannot see what it does.
            unsafe { asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly)) };
        } else {
            // SAFETY: as above.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, writes);
}

/// Prefetches eight consecutive cache lines of memory, for writing if `writes`. `at` is in the first of them.
#[inline(always)]
pub(super) fn prefetch_group(at: *const u8, writes: bool) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        if writes {
            // One statement for all lines: the compiler would compute the address of each other statement apart.
            // SAFETY: a prefetch is a hint. It never faults, and the program cannot see what it does.
            unsafe {
                asm!(
                    "prefetchw [{at}]",
                    "prefetchw [{at} + 64]",
                    "prefetchw [{at} + 128]",
                    "prefetchw [{at} + 192]",
                    "prefetchw [{at} + 256]",
                    "prefetchw [{at} + 320]",
                    "prefetchw [{at} + 384]",
                    "prefetchw [{at} + 448]",
                    at = in(reg) at,
                    options(nostack, preserves_flags, readonly)
                );
            }
        } else {
            for line in 0..GROUP {
                // SAFETY: as above.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(line * LINE).cast()) };
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, writes);
}

/// Makes the compiler assume that guest memory has changed. The code then uses the copied bytes that it has checked,
/// and does not load them from guest memory again.
#[inline]
pub(super) fn guest_may_have_written() {
    // SAFETY: no instruction; without `nomem` the compiler must assume that all reachable memory changed.
    unsafe { asm!("", options(nostack, preserves_flags)) };
}
