//! Rings of descriptors in memory, for drivers of any family: frames move in bursts. Every slot owns a buffer of 2
//! KB, so that no frame needs an allocation or a mapping.
//!
//! | module | contents |
//! |---|---|
//! | `transmit` | sending: frames are copied into slots, published in batches, reclaimed |
//! | `receive` | receiving: frames are copied out of slots, which are posted again in batches |
//!
//! A frame takes tens of nanoseconds here, so no value on its way is stored in small pieces and loaded in larger
//! ones: such a load waits until every earlier store has reached the cache, and some of those went to memory that
//! the card's processor holds. Therefore slots are counted in whole registers, descriptors are built in words, and
//! a descriptor is parsed only when its reader needs it.
//!
//! The family defines the contents of descriptors, and its driver writes registers other than the tail.

pub(crate) mod receive;
pub(crate) mod transmit;

/// Size in bytes of the packet buffer of each ring entry.
pub(crate) const BUFFER: usize = 2048;
/// Maximum number of frames or buffers per doorbell.
pub const MAX_BATCH: u16 = 32;
/// Alignment of a descriptor ring in bytes.
const ALIGNMENT: usize = 128;
/// Number of slots between the frame that the driver handles and the one whose buffer it prefetches. Only long frames
/// are prefetched, whose transfer from the card's processor takes longer than handling a frame.
const AHEAD: u32 = 4;
/// Length in bytes from which on a frame counts as long, so that its buffer is prefetched.
const LONG: usize = 256;

/// Returns the number of slots forward from slot `from` to slot `to` of a ring of `count` slots.
fn distance(from: u32, to: u32, count: u32) -> u32 {
    if to >= from { to - from } else { to + count - from }
}

/// Returns the slot that lies `steps` after another in a ring of `count` slots; `steps` is at most `count`.
fn after(slot: u32, steps: u32, count: u32) -> u32 {
    let sum = slot + steps;
    if sum >= count { sum - count } else { sum }
}

/// Returns the number of frames or buffers per doorbell in a ring of `count` slots: at most half of the slots, so that
/// the card can use the other half meanwhile.
fn batch_of(batch: u16, count: u16) -> u32 {
    batch.min(count / 2).into()
}
