//! Frames in this process's own memory, on their way from one guest's memory to another's.

use std::marker::PhantomData;
use std::ptr::NonNull;

use super::wide::copy_header;
use super::{AHEAD, DmaRegionSelector, FrameAddresses, MappedBytes, for_rest_of, prefetch_at};
use crate::memory::copy::guest_may_have_written;

impl<'map> MappedBytes<'map, true> {
    /// Returns bytes of this process's own memory, to write.
    pub(crate) fn own(bytes: &'map mut [u8]) -> Self {
        let len = bytes.len();
        Self { at: NonNull::from(bytes).cast(), len, mapped: PhantomData }
    }
}

/// Bytes of this process's own memory as one DMA region, whose addresses are offsets.
impl<'map, const WRITES: bool> DmaRegionSelector<'map, WRITES> for MappedBytes<'map, WRITES> {
    #[inline(always)]
    fn region(&self) -> (u64, MappedBytes<'map, WRITES>) {
        (0, *self)
    }

    fn enter_region_of(&mut self, _: u64) -> Option<()> {
        None
    }
}

/// Writes frames from this process's own memory to their targets, up to the first that is not within `from`. Returns the number
/// of written frames.
#[inline(always)]
pub(crate) fn copy_in(from: &[u8], sources: &[u64], targets: &FrameAddresses<'_, '_, true>) -> usize {
    let mut copied = 0;
    for ((source, at), length) in sources.iter().zip(targets.starts()).zip(targets.lengths) {
        let length = *length as usize;
        let Some(frame) = from.get(*source as usize..).and_then(|bytes| bytes.get(..length)) else { break };
        copied += 1;
        if let Some(ahead) = targets.starts().get(copied + AHEAD) {
            for_rest_of(length, |offset, group| prefetch_at::<true>(*ahead, offset, group));
        }
        // SAFETY: the target was found with `length` bytes, and the frame has as many.
        unsafe { copy_header(frame.as_ptr(), at.as_ptr(), length) };
    }
    guest_may_have_written();
    copied
}
