//! Record of a packed ring, in memory that outlives the device's process. A split ring states in the guest's memory how
//! many chains the device has used. A packed ring does not: the position is the device's own, and a chain that the device
//! returns overwrites what the driver made available.
//!
//! The record is an array of words. The state says how much of a return is done:
//!
//! | word | content |
//! |---|---|
//! | 0 | the state: the used position before the last return and after it, the number of saved chains, flags |
//! | 1 to 7 | identity of the ring: first position and size, its owner's two numbers, the addresses of its three parts |
//! | 8 on | the saved chains: id, slots and written bytes of each |
//!
//! # Order of a return
//! 1. The chains are saved, if the return writes more than one used descriptor.
//! 2. The state is stored: positions before and after the return.
//! 3. All used descriptors but the first are written.
//! 4. The first used descriptor is written, which publishes all.
//!
//! A process that dies has executed everything before some instruction, and nothing after it. If it died before step 2, the
//! ring is as the last return left it. After step 2 the first descriptor tells whether step 4 was done: the driver cannot
//! change a descriptor that is available, and one that was used is not available again in the same round of the ring. If
//! step 4 was done, the ring continues after the return. If it was not, [`PackedQueue::open`] repeats steps 1 to 4 with
//! the saved chains, or without such chains continues before the return. A saved chain is overwritten only by the next
//! return, and the former one is published by then.
//!
//! # A ring that is not the same
//! A driver creates its ring with zeros. The position in the device's event structure is never zero once the device has
//! fetched, and QEMU, which runs a transmit ring for a moment while it has no back end, writes only the flags beside it. So a
//! record is used only if the ring is described as in the record and the position is not zero. A paused ring needs no such
//! proof, because its driver cannot create it anew without the front end. Earlier versions of SoftIOV left the position at zero
//! and wrote the flags. So a flag of the state says that the position is written; without that flag the structure as a whole
//! must not be zero.
//!
//! The first position of a transmit ring may differ, if the ring shows that its front end has returned the chain there
//! (`packed/dropped.rs`).

use super::{PackedLayout, PackedPosition, PackedQueue};
use crate::chain::{BURST, UsedChain};
use crate::error::RingError;
use crate::layout::{LayoutError, RingAddresses, RingFeatures};
use crate::memory::{RingMemory, read_u16, release};

/// Maximum number of chains of a packed ring that are returned at once.
pub const MOST_RETURNED: usize = 128;
/// Number of words of a record.
pub const WORDS: usize = CHAINS + MOST_RETURNED;

/// Word of a record that holds the state.
const STATE: usize = 0;
/// First word of the ring's identity in a record.
pub(super) const IDENTITY: usize = 1;
/// First word of the saved chains in a record.
const CHAINS: usize = 8;
/// Bit of the state: the record is valid.
const VALID: u64 = 1 << 48;
/// Bit of the state: the device writes a position that is not zero to its event structure. Earlier versions did not.
const WRITES_POSITION: u64 = 1 << 49;

/// Owner of a ring. A record of another owner is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingOwner {
    /// Identity of the memory that holds the ring.
    pub memory: u64,
    /// Feature bits that the driver has accepted.
    pub features: u64,
}

/// Position at which a device begins to use a packed ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstPosition {
    /// Position that the transport gives for a ring that starts. A record applies if the ring has started there before.
    Given(PackedPosition),
    /// Position that the transport gives for a transmit ring that starts. A record also applies if the ring shows that its front
    /// end has returned the chain before this position.
    GivenForTransmit(PackedPosition),
    /// Position at which the device has paused the ring.
    Paused(PackedPosition),
}

/// Error: a packed ring cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Size, addresses or position of the ring are invalid.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The ring is not accessible.
    #[error(transparent)]
    Ring(#[from] RingError),
}

/// State of a record: the used position before the last return and after it, and the number of chains saved for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReturnState {
    pub(super) before: PackedPosition,
    pub(super) after: PackedPosition,
    saved: u16,
    /// True if the device writes a position that is not zero to its event structure.
    writes_position: bool,
}

impl ReturnState {
    const fn encode(self) -> u64 {
        let (before, after) = (self.before.bits() as u64, self.after.bits() as u64);
        let flags = if self.writes_position { VALID | WRITES_POSITION } else { VALID };
        before | after << 16 | (self.saved as u64) << 32 | flags
    }

    const fn decode(word: u64) -> Option<Self> {
        let (before, after) =
            (PackedPosition::from_bits(word as u16), PackedPosition::from_bits((word >> 16) as u16));
        let (saved, writes_position) = ((word >> 32) as u16, word & WRITES_POSITION != 0);
        if word & VALID == 0 { None } else { Some(Self { before, after, saved, writes_position }) }
    }

    /// Returns the chains saved for the return, and their number. Returns `None` if they are not those of the return.
    pub(super) fn saved_chains(
        self,
        words: &[u64],
        size: u16,
    ) -> Option<([UsedChain; MOST_RETURNED], usize)> {
        let words = words.get(..self.saved.into())?;
        let mut chains = [UsedChain::NONE; MOST_RETURNED];
        chains.iter_mut().zip(words).for_each(|(chain, word)| *chain = UsedChain::decode(*word));
        let slots = chains[..words.len()].iter().map(|chain| u32::from(chain.slots)).sum::<u32>();
        let expected = u32::from(self.before.slots_to(self.after, size)?);
        (words.is_empty() || slots == expected).then_some((chains, words.len()))
    }
}

/// Records a return of chains before the ring is changed, with the chains in `unsaved`, if any.
#[inline]
pub(super) fn record<M: RingMemory>(
    memory: &mut M,
    (before, after): (PackedPosition, PackedPosition),
    unsaved: &[UsedChain],
) {
    for (number, chains) in unsaved.chunks(BURST).enumerate() {
        let mut words = [0; BURST];
        words.iter_mut().zip(chains).for_each(|(word, chain)| *word = chain.encode());
        memory.record(CHAINS + number * BURST, &words[..chains.len()]);
    }
    let saved = unsaved.len() as u16;
    memory.record(STATE, &[ReturnState { before, after, saved, writes_position: true }.encode()]);
    // The record comes before the descriptors that it describes.
    release();
}

/// Makes the record of a ring invalid: the ring has ended, or another device continues it.
pub fn forget<M: RingMemory>(memory: &mut M) {
    memory.record(STATE, &[0]);
}

impl UsedChain {
    pub(super) const NONE: Self = Self { id: 0, slots: 0, written: 0, skippable: false };

    #[inline]
    fn encode(&self) -> u64 {
        u64::from(self.id) | u64::from(self.slots) << 16 | u64::from(self.written) << 32
    }

    fn decode(word: u64) -> Self {
        let (id, slots, written) = (word as u16, (word >> 16) as u16, (word >> 32) as u32);
        // A batch that is repeated returns each chain by a descriptor of its own, which in-order drivers accept too.
        Self { id, slots, written, skippable: false }
    }
}

impl PackedQueue {
    /// Begins to use a packed ring, and its record. Continues the ring at the recorded position if the record is of this
    /// ring. Returns true in that case.
    ///
    /// # Errors
    /// [`OpenError`]: the record stays as it is.
    pub fn open<M: RingMemory>(
        layout: PackedLayout,
        features: RingFeatures,
        (first, owner): (FirstPosition, RingOwner),
        memory: &mut M,
    ) -> Result<(Self, bool), OpenError> {
        let (FirstPosition::Given(position)
        | FirstPosition::GivenForTransmit(position)
        | FirstPosition::Paused(position)) = first;
        let mut new = Self::new(layout, features, position)?;
        let identity = layout.identity(position, owner);
        let mut recorded = [0; WORDS];
        memory.recorded(STATE, &mut recorded);
        let is_same = recorded[IDENTITY + 1..CHAINS] == identity[1..];
        let is_paused = matches!(first, FirstPosition::Paused(_));
        if let Some(state) = ReturnState::decode(recorded[STATE]).filter(|_| is_same)
            && (is_paused || new.has_run(state.writes_position, memory)?)
        {
            if !state.writes_position {
                // The first state with the flag may be that of a return which is completed below, so the position comes first.
                new.disable_notifications(memory)?;
            }
            let start = PackedPosition::from_bits(recorded[IDENTITY] as u16);
            let saved = &recorded[CHAINS..];
            let resumed = match first {
                FirstPosition::Given(given) if given != start => None,
                FirstPosition::GivenForTransmit(given) if given != start => {
                    new.resume_behind((start, given), (state, saved), memory)?
                }
                // The transport does not repeat the first position of a paused ring.
                _ => new.resume(state, saved, memory)?,
            };
            if let Some(queue) = resumed {
                if !state.writes_position {
                    record(memory, (queue.used, queue.used), &[]);
                }
                return Ok((queue, true));
            }
        }
        forget(memory);
        memory.record(IDENTITY, &identity);
        record(memory, (position, position), &[]);
        Ok((new, false))
    }

    /// Continues a ring at its recorded state. Completes a return that was not published. Returns `None` if the record is
    /// damaged.
    pub(super) fn resume<M: RingMemory>(
        &self,
        state: ReturnState,
        saved: &[u64],
        memory: &mut M,
    ) -> Result<Option<Self>, RingError> {
        let (layout, features) = (self.layout, self.features);
        let at = |position| Self::new(layout, features, position).ok();
        let slots = state.before.slots_to(state.after, layout.size);
        let (Some(slots), Some(mut queue)) = (slots, at(state.before)) else {
            return Ok(None);
        };
        let flags = read_u16(memory, layout.slot(state.before) + super::FLAGS)?;
        if !state.before.is_available(flags) {
            return Ok(at(state.after));
        }
        let Some((chains, count)) = state.saved_chains(saved, layout.size) else { return Ok(None) };
        if count > 0 {
            (queue.available, queue.fetched) = (state.after, slots);
            queue.complete(memory, &chains[..count])?;
        }
        Ok(Some(queue))
    }
}

impl PackedLayout {
    /// Returns the identity of a ring in a record.
    fn identity(&self, first: PackedPosition, owner: RingOwner) -> [u64; CHAINS - IDENTITY] {
        let RingAddresses { descriptors, driver, device } = self.addresses;
        let (first, size) = (first.bits().into(), self.size.into());
        [first, size, owner.memory, owner.features, descriptors, driver, device]
    }
}
