//! Returns chains of a packed ring to the driver: used descriptors overwrite available ones (section 2.8.1).

use super::record::{MOST_RETURNED, record};
use super::{PackedLayout, PackedPosition, PackedQueue};
use crate::chain::{BURST, UsedChain, batch};
use crate::descriptor::{PackedDescriptor, SIZE, flag};
use crate::error::RingError;
use crate::memory::{RingMemory, release};

/// Offset of a packed descriptor's second half, in bytes: length, id and flags, which the driver reads in a used
/// descriptor.
const SECOND_HALF: usize = 8;

impl PackedQueue {
    /// Returns chains to the driver, in the order in which they were fetched. The first used descriptor is written
    /// last, which publishes all of them, since the driver reads no descriptor behind one that is not used (section
    /// 2.8.9).
    ///
    /// All buffers of a merged receive frame go into one call, so that the driver sees all or none. The ring's
    /// [record](super::record) is written before.
    ///
    /// # Errors
    /// [`RingError`] if the ring is not accessible, or if more chains are returned than were fetched, or than
    /// [`MOST_RETURNED`]. The driver sees nothing of the chains then.
    pub fn complete<M: RingMemory>(
        &mut self,
        memory: &mut M,
        returned: &[UsedChain],
    ) -> Result<(), RingError> {
        let slots = returned.iter().map(|chain| u32::from(chain.slots)).sum::<u32>();
        if slots > self.fetched.into() {
            return Err(RingError::NotFetched { returned: slots, fetched: self.fetched });
        }
        if returned.len() > MOST_RETURNED {
            return Err(RingError::TooManyReturned { returned: returned.len(), most: MOST_RETURNED });
        }
        let Some((first, mut rest)) = self.next_used(returned) else { return Ok(()) };
        let (start, position) = (self.used, self.used.after(first.slots, self.layout.size));
        // One used descriptor is written at once, and destroys nothing before the driver sees it.
        let unsaved = if rest.is_empty() { &[] } else { returned };
        record(memory, (start, start.after(slots as u16, self.layout.size)), unsaved);
        let position = self.write_later(memory, position, &mut rest)?;
        release();
        let published = used_descriptor(&first, start);
        memory.write(self.layout.slot(start) + SECOND_HALF as u64, &published[SECOND_HALF..])?;
        self.used = position;
        self.fetched -= slots as u16;
        self.unsignalled.add(slots);
        Ok(())
    }

    /// Returns the record for the next used descriptor, and the chains that are left after it. In order, the record
    /// returns a batch of chains: it has the position of the first chain, the id of the last, and the slots of all
    /// (section 2.8.8).
    #[inline]
    fn next_used<'a>(&self, returned: &'a [UsedChain]) -> Option<(UsedChain, &'a [UsedChain])> {
        let count = if self.features.in_order { batch(returned) } else { 1 };
        let (these, rest) = returned.split_at_checked(count)?;
        let last = these.last()?;
        Some((UsedChain { slots: these.iter().map(|chain| chain.slots).sum(), ..*last }, rest))
    }

    /// Writes the used descriptors of `returned` from a position on; descriptors in adjacent slots are written by one
    /// access. Returns the position after the last one.
    #[inline]
    fn write_later<M: RingMemory>(
        &self,
        memory: &mut M,
        mut position: PackedPosition,
        returned: &mut &[UsedChain],
    ) -> Result<PackedPosition, RingError> {
        let mut run = UsedRun { at: position, descriptors: [[0; SIZE]; BURST], count: 0 };
        while let Some((used, rest)) = self.next_used(returned) {
            if run.count == BURST || position.index() == 0 || !run.is_followed_by(position) {
                run.write(&self.layout, memory)?;
                run.at = position;
            }
            run.descriptors[run.count % BURST] = used_descriptor(&used, position);
            run.count += 1;
            (position, *returned) = (position.after(used.slots, self.layout.size), rest);
        }
        run.write(&self.layout, memory)?;
        Ok(position)
    }
}

/// Used descriptors in adjacent slots, which one access writes. The address field of a used descriptor is unused, so
/// the access may overwrite it.
struct UsedRun {
    /// Position of the run's first descriptor. All descriptors of the run have the same wrap counter.
    at: PackedPosition,
    descriptors: [[u8; SIZE]; BURST],
    count: usize,
}

impl UsedRun {
    /// Returns true if a used descriptor at `position` is directly behind the run's last one.
    #[inline]
    fn is_followed_by(&self, position: PackedPosition) -> bool {
        usize::from(self.at.index()) + self.count == position.index().into()
    }

    /// Writes the run's descriptors to the ring, and empties the run.
    #[inline]
    fn write<M: RingMemory>(&mut self, layout: &PackedLayout, memory: &mut M) -> Result<(), RingError> {
        match &self.descriptors[..core::mem::take(&mut self.count)] {
            [] => {}
            [one] => memory.write(layout.slot(self.at) + SECOND_HALF as u64, &one[SECOND_HALF..])?,
            several => memory.write(layout.slot(self.at), several.as_flattened())?,
        }
        Ok(())
    }
}

/// Encodes the used descriptor of a chain at a position. The write flag states if the length is valid (section 2.8.4).
#[inline]
pub(super) fn used_descriptor(used: &UsedChain, position: PackedPosition) -> [u8; SIZE] {
    let write = if used.written > 0 { flag::WRITE } else { 0 };
    let flags = position.used_flags() | write;
    PackedDescriptor { address: 0, length: used.written, id: used.id, flags }.emit()
}
