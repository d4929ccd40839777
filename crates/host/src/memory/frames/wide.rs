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

/// Copies bytes and returns their sum as little-endian 32-bit words, which cannot overflow 64 bits.
///
/// # Safety
/// `length` bytes must be mapped at both places, at `to` for writing.
pub(super) unsafe fn copy_and_sum(from: *const u8, to: *mut u8, length: usize) -> u64 {
    #[cfg(target_arch = "x86_64")]
    let whole = if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: as the caller says, and the processor has AVX2.
        unsafe { avx2::copy_blocks(from, to, length / BLOCK) }
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

/// Copies whole blocks of a payload by portable code, and returns their sum.
///
/// # Safety
/// The conditions of [`copy_and_sum`] apply, of `blocks` blocks.
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

/// Copies frames by AVX2 registers of 32 bytes.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi64, _mm256_blend_epi32, _mm256_loadu_si256, _mm256_setzero_si256,
        _mm256_srli_epi64, _mm256_storeu_si256,
    };
    use std::{mem, ptr};

    use crate::memory::copy::guest_may_have_written;

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

    /// Number of 32-byte blocks that are loaded before the first of them is stored.
    const GROUP: usize = 4;

    /// Copies whole blocks of a payload by AVX2 registers, and returns their sum.
    ///
    /// # Safety
    /// The conditions of [`super::copy_blocks`] apply; the processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn copy_blocks(from: *const u8, to: *mut u8, blocks: usize) -> u64 {
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
        lanes(_mm256_add_epi64(sums[0], sums[1])).into_iter().sum()
    }

    /// Copies `N` blocks of 32 bytes, and adds them to the sums of the even and of the odd 32-bit words.
    ///
    /// # Safety
    /// The conditions of [`copy_blocks`] apply, of `N` blocks.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn copy_group<const N: usize>(
        from: *const u8,
        to: *mut u8,
        [mut even, mut odd]: [__m256i; 2],
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
            // 64-bit lanes add 32-bit words, so that no carry is lost.
            even = _mm256_add_epi64(even, _mm256_blend_epi32::<0b1010_1010>(block, _mm256_setzero_si256()));
            odd = _mm256_add_epi64(odd, _mm256_srli_epi64::<32>(block));
        }
        [even, odd]
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
            let sum = unsafe { copy_and_sum(bytes.as_ptr(), copies[1].as_mut_ptr(), bytes.len()) };
            let mut rest = bytes[blocks * BLOCK..].to_vec();
            copies[0][blocks * BLOCK..].copy_from_slice(&rest);
            rest.resize(BLOCK, 0);
            assert_eq!(sum, portable + sum_of(rest.first_chunk().unwrap()));
            assert!(copies[0] == bytes && copies[1] == bytes);
        }
    }
}
