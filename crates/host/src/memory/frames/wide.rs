//! Copies heads and payloads of frames by the widest useful registers: 32 bytes with AVX2, else portable
//! code.

use std::ptr;

use crate::memory::copy::guest_may_have_written;

/// Number of a payload's bytes that are loaded before they are stored.
const BLOCK: usize = 32;

/// Copies heads of `N` bytes, each from the first address of a pair to the second.
///
/// # Safety
/// `N` bytes must be mapped at each place, at the second of a pair for writing.
#[inline(always)]
pub(super) unsafe fn copy_heads<const N: usize>(pairs: impl Iterator<Item = (*const u8, *mut u8)>) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: as the caller says, and the processor has AVX2.
        return unsafe { avx2::copy_heads::<N>(pairs) };
    }
    for (from, to) in pairs {
        // SAFETY: as the caller says.
        unsafe { ptr::copy_nonoverlapping(from, to, N) };
    }
}

/// Copies a header without a function call. A header of usual length is copied by its first and its last bytes, which
/// may overlap.
///
/// # Safety
/// `length` bytes must be mapped at both places, at `to` for writing.
#[inline(always)]
pub(super) unsafe fn copy_header(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: as the caller says; no piece is longer than the header.
    unsafe {
        match length {
            8..=16 => copy_ends::<8>(from, to, length),
            32..=64 => copy_ends::<32>(from, to, length),
            65..=128 => copy_ends::<64>(from, to, length),
            _ => ptr::copy_nonoverlapping(from, to, length),
        }
    }
}

/// Copies the first `PIECE` and the last `PIECE` of `length` bytes, which may overlap.
///
/// # Safety
/// `length` bytes must be mapped at both places, at `to` for writing. `length` is from one to two pieces.
#[inline(always)]
unsafe fn copy_ends<const PIECE: usize>(from: *const u8, to: *mut u8, length: usize) {
    let last = length - PIECE;
    // SAFETY: as the caller says.
    unsafe {
        ptr::copy_nonoverlapping(from, to, PIECE);
        ptr::copy_nonoverlapping(from.add(last), to.add(last), PIECE);
    }
}

/// Function that copies bytes and returns their sum as little-endian 32-bit words, which cannot overflow 64 bits.
///
/// # Safety
/// As many bytes as the third argument says must be mapped at both addresses, at the second for writing.
type CopyAndSum = unsafe fn(*const u8, *mut u8, usize) -> u64;

/// Returns the function that copies and sums payloads by the widest registers.
pub(super) fn widest_copy() -> CopyAndSum {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return avx2::copy_and_sum;
    }
    copy_and_sum
}

/// Copies and sums a payload by portable code.
///
/// # Safety
/// See [`CopyAndSum`].
unsafe fn copy_and_sum(from: *const u8, to: *mut u8, length: usize) -> u64 {
    // SAFETY: as the caller says.
    unsafe { copy_blocks(from, to, length / BLOCK) + copy_tail(from, to, length) }
}

/// Copies the bytes behind the last whole block of `length` bytes, in pieces of 8, 4, 2 and 1 bytes. Returns their sum.
///
/// # Safety
/// See [`CopyAndSum`].
#[inline(always)]
unsafe fn copy_tail(from: *const u8, to: *mut u8, length: usize) -> u64 {
    let (mut sum, mut at) = (0, length - length % BLOCK);
    // SAFETY: as the caller says: each piece is at most as long as what is left from `at` on.
    unsafe {
        while length - at >= 8 {
            let piece = u64::from_le_bytes(copy_piece(from.add(at), to.add(at)));
            sum += (piece >> 32) + (piece & u64::from(u32::MAX));
            at += 8;
        }
        if length & 4 != 0 {
            sum += u64::from(u32::from_le_bytes(copy_piece(from.add(at), to.add(at))));
            at += 4;
        }
        if length & 2 != 0 {
            sum += u64::from(u16::from_le_bytes(copy_piece(from.add(at), to.add(at))));
            at += 2;
        }
        if length & 1 != 0 {
            // It is the third byte of its word behind two others.
            sum += u64::from(u8::from_le_bytes(copy_piece(from.add(at), to.add(at)))) << (8 * (length & 2));
        }
    }
    sum
}

/// Copies `N` bytes, and returns them. Each is loaded once.
///
/// # Safety
/// `N` bytes must be mapped at both places, at `to` for writing.
#[inline(always)]
unsafe fn copy_piece<const N: usize>(from: *const u8, to: *mut u8) -> [u8; N] {
    // SAFETY: as the caller says; an array of bytes needs no alignment.
    let bytes = unsafe { from.cast::<[u8; N]>().read() };
    guest_may_have_written();
    // SAFETY: as above.
    unsafe { to.cast::<[u8; N]>().write(bytes) };
    bytes
}

/// Copies whole blocks of a payload by portable code, and returns their sum.
///
/// # Safety
/// The conditions of [`CopyAndSum`] apply, of `blocks` blocks.
unsafe fn copy_blocks(from: *const u8, to: *mut u8, blocks: usize) -> u64 {
    let mut sum = 0;
    for at in (0..blocks).map(|block| block * BLOCK) {
        // SAFETY: as the caller says.
        sum += sum_of(&unsafe { copy_piece(from.add(at), to.add(at)) });
    }
    sum
}

fn sum_of(bytes: &[u8; BLOCK]) -> u64 {
    bytes.as_chunks::<4>().0.iter().map(|dword| u64::from(u32::from_le_bytes(*dword))).sum()
}

/// Copies frames by AVX2 registers of 32 bytes.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi64, _mm256_loadu_si256, _mm256_setzero_si256, _mm256_slli_epi64,
        _mm256_srli_epi64, _mm256_storeu_si256, _mm256_sub_epi64,
    };
    use std::{mem, ptr};

    use crate::memory::copy::guest_may_have_written;
    use crate::memory::frames::wide::copy_tail;

    /// Bytes of an AVX2 register.
    const BLOCK: usize = size_of::<__m256i>();

    /// Copies the first `N` bytes of frames by AVX2 registers.
    ///
    /// # Safety
    /// The conditions of [`super::copy_heads`] apply; the processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn copy_heads<const N: usize>(pairs: impl Iterator<Item = (*const u8, *mut u8)>) {
        for (from, to) in pairs {
            // SAFETY: as the caller says.
            unsafe { ptr::copy_nonoverlapping(from, to, N) };
        }
    }

    /// Copies and sums a payload by AVX2 registers.
    ///
    /// # Safety
    /// See [`super::CopyAndSum`]; the processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn copy_and_sum(from: *const u8, to: *mut u8, length: usize) -> u64 {
        // SAFETY: as the caller says.
        unsafe { copy_blocks(from, to, length / BLOCK) + copy_tail(from, to, length) }
    }

    /// Number of 32-byte blocks that are loaded before the first of them is stored.
    const GROUP: usize = 4;

    /// Copies whole blocks of a payload by AVX2 registers, and returns their sum.
    ///
    /// # Safety
    /// The conditions of [`super::copy_blocks`] apply; the processor must have AVX2.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn copy_blocks(from: *const u8, to: *mut u8, blocks: usize) -> u64 {
        let mut sums = [_mm256_setzero_si256(); 2];
        let single = blocks - blocks % GROUP;
        for at in (0..single).step_by(GROUP) {
            // SAFETY: as the caller says, of this group's blocks.
            sums = unsafe { copy_group::<GROUP>(from.add(at * BLOCK), to.add(at * BLOCK), sums) };
        }
        for at in single..blocks {
            // SAFETY: as above, of one block.
            sums = unsafe { copy_group::<1>(from.add(at * BLOCK), to.add(at * BLOCK), sums) };
        }
        let [all, high] = sums;
        let low = _mm256_sub_epi64(all, _mm256_slli_epi64::<32>(high));
        lanes(_mm256_add_epi64(low, high)).into_iter().sum()
    }

    /// Copies `N` blocks of 32 bytes, and adds them to two sums: of 64-bit words, and of the high halves of these words.
    /// The first sum loses its carries. The second does not, so the sum of the low halves is the first minus 2^32 times
    /// the second, modulo 2^64.
    ///
    /// # Safety
    /// The conditions of [`copy_blocks`] apply, of `N` blocks.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn copy_group<const N: usize>(
        from: *const u8,
        to: *mut u8,
        [mut all, mut high]: [__m256i; 2],
    ) -> [__m256i; 2] {
        let mut blocks = [_mm256_setzero_si256(); N];
        for (at, block) in blocks.iter_mut().enumerate() {
            // SAFETY: as the caller says; the place does not have to be aligned.
            *block = unsafe { _mm256_loadu_si256(from.add(at * BLOCK).cast()) };
        }
        guest_may_have_written();
        for (at, block) in blocks.into_iter().enumerate() {
            // SAFETY: as above.
            unsafe { _mm256_storeu_si256(to.add(at * BLOCK).cast(), block) };
            all = _mm256_add_epi64(all, block);
            high = _mm256_add_epi64(high, _mm256_srli_epi64::<32>(block));
        }
        [all, high]
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
        fn avx2_frame_copy_and_sum_equal_the_portable_functions(bytes: Vec<u8>, long in any::<bool>()) {
            let bytes = if long { bytes.repeat(40) } else { bytes };
            let (blocks, mut copies) = (bytes.len() / BLOCK, [vec![0; bytes.len()], vec![0; bytes.len()]]);
            // SAFETY: both vectors have the bytes.
            let portable = unsafe { copy_blocks(bytes.as_ptr(), copies[0].as_mut_ptr(), blocks) };
            // SAFETY: as above.
            let sum = unsafe { widest_copy()(bytes.as_ptr(), copies[1].as_mut_ptr(), bytes.len()) };
            let mut rest = bytes[blocks * BLOCK..].to_vec();
            copies[0][blocks * BLOCK..].copy_from_slice(&rest);
            rest.resize(BLOCK, 0);
            assert_eq!(sum, portable + sum_of(rest.first_chunk().unwrap()));
            assert!(copies[0] == bytes && copies[1] == bytes);
        }
    }
}
