//! Copying frames, from the cache and from memory. Left out: copies that pass the cache by.

#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "flushing caches takes an intrinsic"))]

use std::hint::black_box;

use super::repeat::each;
use super::{Sample, Unmeasured};

/// A full frame.
const FRAME: usize = 1_514;

/// From nanoseconds a frame to nanoseconds for 1,000 bytes.
const PER_KILOBYTE: f64 = 1_000.0 / FRAME as f64;

/// Few enough frames for the smallest cache.
pub(super) fn warm() -> Result<Sample, Unmeasured> {
    in_turn(4)
}

/// 12 MB of frames: too many for a core's own caches, and few enough for a server's last.
pub(super) fn shared() -> Result<Sample, Unmeasured> {
    in_turn(8_192)
}

/// So many frames in turn, to a buffer that is in use.
fn in_turn(frames: usize) -> Result<Sample, Unmeasured> {
    let from = vec![1_u8; frames * FRAME];
    let mut to = vec![0; FRAME];
    let mut turns = (0..frames).cycle();
    let sample = each(|| {
        let at = turns.next().unwrap_or_default() * FRAME;
        black_box(&mut to).copy_from_slice(&black_box(&from)[at..at + FRAME]);
        Ok(())
    })?;
    Ok(sample.times(PER_KILOBYTE))
}

/// From memory to a buffer that is in use: what a card has written, and a program reads.
#[cfg(target_arch = "x86_64")]
pub(super) fn cold() -> Result<Sample, Unmeasured> {
    use super::repeat::{per_operation, timed};

    const FRAMES: usize = 1_024;
    let from = vec![1_u8; FRAMES * FRAME];
    let mut to = vec![0; FRAME];
    let sample = per_operation(|count| {
        let (mut left, mut took) = (count as usize, 0);
        while left > 0 {
            let frames = left.min(FRAMES);
            flush(&from[..frames * FRAME]);
            took += timed(|| {
                for frame in from[..frames * FRAME].chunks_exact(FRAME) {
                    black_box(&mut to).copy_from_slice(black_box(frame));
                }
                Ok(())
            })?;
            left -= frames;
        }
        Ok(took)
    })?;
    Ok(sample.times(PER_KILOBYTE))
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn cold() -> Result<Sample, Unmeasured> {
    Err(Unmeasured::Architecture)
}

/// Leaves none of the bytes in a cache.
#[cfg(target_arch = "x86_64")]
fn flush(bytes: &[u8]) {
    use core::arch::x86_64::{_mm_clflush, _mm_mfence};

    const LINE: usize = 64;
    for line in bytes.chunks(LINE) {
        // SAFETY: the address is that of a byte that is borrowed; flushing changes no byte.
        unsafe { _mm_clflush(line.as_ptr()) };
    }
    // SAFETY: a fence; every x86-64 processor has it.
    unsafe { _mm_mfence() };
}
