//! Continues a packed ring of which the front end has returned a chain while the ring had no device.
//!
//! QEMU (11.1) does this to a transmit ring when a vhost-user connection ends. QEMU knows no position but the one at which it
//! has started the ring. If the descriptor there is available, QEMU marks it used, and starts the ring behind that chain when
//! it connects again. The driver still waits for the chains from the device's position to that one. It reads no used
//! descriptor behind a descriptor that is not used, so a device that starts where QEMU says strands them, and the ring.
//!
//! # Order
//! 1. The last return is completed, as after any other crash.
//! 2. The chains before QEMU's are returned unprocessed. QEMU has dropped the frame that follows theirs. Each return is
//!    recorded, so a successor continues after it.
//! 3. The state is stored: the ring is behind QEMU's chain.
//! 4. The ring's first position is stored. Until then a successor begins at step 1.
//!
//! A guest that changes the ring meanwhile moves its own ring, by at most one round. Each step reads a slot a few times, and at most
//! [`MOST_DROPPED_SLOTS`] slots are returned.

use super::publish::used_descriptor;
use super::record::{self, MOST_RETURNED, ReturnState, record};
use super::{FLAGS, PackedPosition, PackedQueue};
use crate::chain::{MAX_CHAIN, UsedChain};
use crate::descriptor::{PackedDescriptor, SIZE, flag};
use crate::error::RingError;
use crate::memory::{RingMemory, acquire, read_u16};

/// Maximum number of slots from the device's position to the end of the dropped chain. QEMU has no larger ring, and the slots are
/// returned without a pause.
pub const MOST_DROPPED_SLOTS: u16 = 1_024;

/// Chain that a front end has returned: the position at which the ring had started, and the position behind the chain.
#[derive(Debug, Clone, Copy)]
struct DroppedChain {
    start: PackedPosition,
    end: PackedPosition,
}

impl DroppedChain {
    /// Returns the number of slots of the chain.
    fn slots(self, size: u16) -> u16 {
        self.start.slots_to(self.end, size).unwrap_or(0)
    }
}

impl PackedQueue {
    /// Continues a ring that has started at `start`, and whose front end has returned the chain from there to `end`. Returns
    /// `None` if the ring does not show that.
    pub(super) fn resume_behind<M: RingMemory>(
        &self,
        (start, end): (PackedPosition, PackedPosition),
        (state, saved): (ReturnState, &[u64]),
        memory: &mut M,
    ) -> Result<Option<Self>, RingError> {
        let layout = self.layout;
        let Some(slots) = start.slots_to(end, layout.size).filter(|_| layout.check(start).is_ok()) else {
            return Ok(None);
        };
        let is_start_returned = [state.before, state.after].contains(&start);
        if !self.shows_dropped_chain(DroppedChain { start, end }, is_start_returned, memory)? {
            return Ok(None);
        }
        let returned = state.before.slots_to(state.after, layout.size).unwrap_or(0);
        let resumed = if state.before == start && state.after != start {
            // The front end has published the first chain of a return that the device had not published.
            self.finish_return(state, saved, memory)?
        } else if state.after == start && u32::from(returned) + u32::from(slots) > u32::from(layout.size) {
            // Both do not fit into the ring: the driver had the return before it added the dropped chain. It may have filled
            // the return's first slot once more than it could without the front end.
            Self::new(layout, self.features, start).ok()
        } else {
            self.resume(state, saved, memory)?
        };
        let Some(mut queue) = resumed else { return Ok(None) };
        let flags = read_u16(memory, layout.slot(start) + FLAGS)?;
        let ahead = queue.used.slots_to(start, layout.size);
        if ahead.is_some_and(|ahead| (1..layout.size).contains(&ahead)) {
            let is_used = flags & (flag::AVAIL | flag::USED) == start.used_flags();
            if !is_used || !queue.return_unprocessed(DroppedChain { start, end }, memory)? {
                return Ok(None);
            }
        } else if start.is_available(flags) {
            return Ok(None);
        }
        let passed = start.slots_to(queue.used, layout.size);
        let used = if passed.is_some_and(|passed| passed >= slots) { queue.used } else { end };
        (queue.used, queue.available, queue.fetched) = (used, used, 0);
        record(memory, (used, used), &[]);
        memory.record(record::IDENTITY, &[end.bits().into()]);
        Ok(Some(queue))
    }

    /// Returns true if the ring may have a chain that its front end has returned. The first slot is marked used, or the driver has
    /// used it again. While the driver waits for chains before it, the slots behind it still are one list: QEMU has changed the
    /// first one only. `is_start_returned` is true if the driver waits for none.
    fn shows_dropped_chain<M: RingMemory>(
        &self,
        chain: DroppedChain,
        is_start_returned: bool,
        memory: &mut M,
    ) -> Result<bool, RingError> {
        let DroppedChain { start, end } = chain;
        let slots = chain.slots(self.layout.size);
        if usize::from(slots) > MAX_CHAIN {
            return Ok(false);
        }
        let mut flags_at = |position| read_u16(memory, self.layout.slot(position) + FLAGS);
        let first = flags_at(start)?;
        if first & (flag::AVAIL | flag::USED) != start.used_flags() {
            return Ok(start.after(self.layout.size, self.layout.size).is_available(first));
        }
        if is_start_returned {
            return Ok(true);
        }
        let mut at = start.after(1, self.layout.size);
        for _ in 1..slots {
            let next = at.after(1, self.layout.size);
            if (flags_at(at)? & flag::NEXT != 0) != (next != end) {
                return Ok(false);
            }
            at = next;
        }
        Ok(true)
    }

    /// Writes those used descriptors of a return that are not written, except for the first: the front end has published it.
    fn finish_return<M: RingMemory>(
        &self,
        state: ReturnState,
        saved: &[u64],
        memory: &mut M,
    ) -> Result<Option<Self>, RingError> {
        let Some((chains, count)) = state.saved_chains(saved, self.layout.size) else { return Ok(None) };
        let (layout, mut at) = (self.layout, state.before);
        for chain in &chains[..count] {
            let slot = layout.slot(at);
            if at.is_available(read_u16(memory, slot + FLAGS)?) {
                if at == state.before {
                    return Ok(None);
                }
                let used = used_descriptor(chain, at);
                memory.write(slot + SIZE as u64 / 2, &used[SIZE / 2..])?;
            }
            at = at.after(chain.slots, layout.size);
        }
        Ok(Self::new(layout, self.features, at).ok())
    }

    /// Returns the chains from the used position to the dropped one to the driver, with no written byte. Returns false if a
    /// slot among them is not available.
    fn return_unprocessed<M: RingMemory>(
        &mut self,
        dropped: DroppedChain,
        memory: &mut M,
    ) -> Result<bool, RingError> {
        let size = self.layout.size;
        let Some(slots) = self.used.slots_to(dropped.end, size).filter(|slots| *slots <= MOST_DROPPED_SLOTS)
        else {
            return Ok(false);
        };
        (self.available, self.fetched) = (dropped.end, slots);
        while self.used != dropped.start && self.used != dropped.end {
            let (mut chains, mut count, mut at) = ([UsedChain::NONE; MOST_RETURNED], 0, self.used);
            while count < MOST_RETURNED && at != dropped.start && at != dropped.end {
                let Some(chain) = self.chain_before(dropped, at, memory)? else { return Ok(false) };
                (chains[count], at) = (chain, at.after(chain.slots, size));
                count += 1;
            }
            self.complete(memory, &chains[..count])?;
        }
        Ok(true)
    }

    /// Returns the chain at a position before the dropped chain, or `None` if none is available there. A list that reaches the
    /// dropped slots ends with them: the front end has taken a descriptor in its middle for a chain.
    fn chain_before<M: RingMemory>(
        &self,
        dropped: DroppedChain,
        head: PackedPosition,
        memory: &mut M,
    ) -> Result<Option<UsedChain>, RingError> {
        let size = self.layout.size;
        let mut descriptor = |position| -> Result<PackedDescriptor, RingError> {
            let mut raw = [0; SIZE];
            memory.read(self.layout.slot(position), &mut raw)?;
            Ok(PackedDescriptor::parse(&raw))
        };
        if !head.is_available(descriptor(head)?.flags) {
            return Ok(None);
        }
        acquire();
        let mut at = head;
        let (id, end) = loop {
            let PackedDescriptor { id, flags, .. } = descriptor(at)?;
            at = at.after(1, size);
            let is_last = flags & flag::NEXT == 0;
            if is_last {
                break (id, at);
            }
            if at == dropped.start {
                let before_end = dropped.slots(size).wrapping_sub(1);
                break (descriptor(at.after(before_end, size))?.id, dropped.end);
            }
        };
        Ok(head.slots_to(end, size).map(|slots| UsedChain { id, slots, ..UsedChain::NONE }))
    }
}
