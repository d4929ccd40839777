//! Returns chains of a packed ring to the driver: used descriptors overwrite available ones (section 2.8.1).

use super::{PackedPosition, PackedQueue};
use crate::chain::{BURST, UsedChain, batch};
use crate::descriptor::{PackedDescriptor, SIZE, flag};
use crate::error::RingError;
use crate::memory::{RingMemory, release};

/// Offset in a packed descriptor of length, id and flags: the half that the driver reads of a used one.
const SECOND_HALF: usize = 8;

impl PackedQueue {
    /// Returns chains to the driver, in the order in which they were fetched. The first used descriptor is written last, and
    /// publishes all of them, since the driver looks at no descriptor behind one that is not used (section 2.8.9).
    ///
    /// All buffers of a merged receive frame go into one call, so that the driver sees all or none.
    ///
    /// # Errors
    /// [`RingError`] if the ring is not accessible, or if more chains are returned than were fetched. The driver sees nothing
    /// of the chains then.
    pub fn complete<M: RingMemory>(
        &mut self,
        memory: &mut M,
        returned: &[UsedChain],
    ) -> Result<(), RingError> {
        let slots = returned.iter().map(|chain| u32::from(chain.slots)).sum::<u32>();
        if slots > self.fetched.into() {
            return Err(RingError::NotFetched { returned: slots, fetched: self.fetched });
        }
        let Some((first, mut rest)) = self.next_used(returned) else { return Ok(()) };
        let (start, mut position) = (self.used, self.used.after(first.slots, self.layout.size));
        while !rest.is_empty() {
            (position, rest) = self.write_run(memory, position, rest)?;
        }
        release();
        let published = used_descriptor(&first, start);
        memory.write(self.layout.slot(start) + SECOND_HALF as u64, &published[SECOND_HALF..])?;
        self.used = position;
        self.fetched -= slots as u16;
        self.unsignalled.add(slots);
        Ok(())
    }

    /// Returns the record of the next used descriptor, and the chains after those that it returns. In order it returns a
    /// batch: it has the place of the first chain, the id of the last, and the slots of all (section 2.8.8).
    #[inline]
    fn next_used<'a>(&self, returned: &'a [UsedChain]) -> Option<(UsedChain, &'a [UsedChain])> {
        let count = if self.features.in_order { batch(returned) } else { 1 };
        let (these, rest) = returned.split_at_checked(count)?;
        let last = these.last()?;
        Some((UsedChain { slots: these.iter().map(|chain| chain.slots).sum(), ..*last }, rest))
    }

    /// Writes the used descriptors of consecutive chains, from a position on; in order, that of a batch. Returns the
    /// position after them, and the chains that are left.
    #[inline]
    fn write_run<'a, M: RingMemory>(
        &self,
        memory: &mut M,
        start: PackedPosition,
        returned: &'a [UsedChain],
    ) -> Result<(PackedPosition, &'a [UsedChain]), RingError> {
        let single = |chain: &&UsedChain| chain.slots == 1;
        let count = returned.iter().take(self.layout.contiguous(start, BURST)).take_while(single).count();
        if self.features.in_order || count < 2 {
            let Some((used, rest)) = self.next_used(returned) else { return Ok((start, returned)) };
            let word = &used_descriptor(&used, start)[SECOND_HALF..];
            memory.write(self.layout.slot(start) + SECOND_HALF as u64, word)?;
            return Ok((start.after(used.slots, self.layout.size), rest));
        }
        // The address of a used descriptor is unused, so the descriptors are one piece. They are in the same round.
        let (these, rest) = returned.split_at(count);
        let mut run = [[0; SIZE]; BURST];
        for (raw, used) in run.iter_mut().zip(these) {
            *raw = used_descriptor(used, start);
        }
        memory.write(self.layout.slot(start), run[..count].as_flattened())?;
        Ok((start.after(count as u16, self.layout.size), rest))
    }
}

/// Returns the used descriptor of a chain at a position. The write flag says whether the length counts (section 2.8.4).
#[inline]
fn used_descriptor(used: &UsedChain, position: PackedPosition) -> [u8; SIZE] {
    let write = if used.written > 0 { flag::WRITE } else { 0 };
    let flags = position.used_flags() | write;
    PackedDescriptor { address: 0, length: used.written, id: used.id, flags }.emit()
}
