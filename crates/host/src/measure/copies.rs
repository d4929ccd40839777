//! Measures copies of frames from the cache and from memory.

#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "flushing caches takes an intrinsic"))]

use std::hint::black_box;

use super::repeat::each;
use super::{DurationProbeError, DurationProbeResult};

/// Bytes of a full Ethernet frame.
const FRAME: usize = 1_514;

/// Factor from nanoseconds a frame to nanoseconds for 1,000 bytes.
const PER_KILOBYTE: f64 = 1_000.0 / FRAME as f64;

/// Measures copies of frames that are in the processor's cache: the frames are few enough for the smallest
/// cache.
pub(super) fn warm() -> Result<DurationProbeResult, DurationProbeError> {
    in_turn(4)
}

/// Measures copies of 12 MB of frames: more than a core's own caches hold, and less than a server's
/// last-level cache.
pub(super) fn shared() -> Result<DurationProbeResult, DurationProbeError> {
    in_turn(8_192)
}

/// Measures copies of `frames` different frames, one after the other, to a cached buffer.
fn in_turn(frames: usize) -> Result<DurationProbeResult, DurationProbeError> {
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

/// Measures copies from memory to a cached buffer, as of frames that a card has written.
#[cfg(target_arch = "x86_64")]
pub(super) fn cold() -> Result<DurationProbeResult, DurationProbeError> {
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
pub(super) fn cold() -> Result<DurationProbeResult, DurationProbeError> {
    Err(DurationProbeError::Architecture)
}

/// Evicts `bytes` from all processor caches.
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
