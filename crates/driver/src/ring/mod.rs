//! Rings of descriptors in memory, for drivers of any family: frames move in bursts. Every slot owns a buffer of 2 KB, so
//! nothing is allocated or mapped for a frame.
//!
//! | module | contents |
//! |---|---|
//! | `transmit` | frames out: copied into slots, published in batches, reclaimed |
//! | `receive` | frames in: copied out of slots, which are posted again in batches |
//!
//! A frame takes tens of nanoseconds here, so nothing on its way is stored in small pieces and loaded in larger ones: such a load
//! waits until every store before it has reached the cache, and those before it went to memory that the card's processor has.
//! Therefore slots are counted in whole registers, descriptors are made in words, and what a descriptor says is not unpacked
//! before its reader wants it.
//!
//! Left out: the contents of descriptors, which are the family's, and registers other than the tail.

pub(crate) mod receive;
pub(crate) mod transmit;

/// Bytes of a slot's buffer.
pub(crate) const BUFFER: usize = 2048;
/// Frames or buffers for one doorbell, at most.
pub const MAX_BATCH: u16 = 32;
/// Alignment of a ring, bytes.
const ALIGNMENT: usize = 128;
/// Slots that a long frame's buffer is fetched ahead: the card's processor has it, and it takes longer to come than the
/// frame takes.
const AHEAD: u32 = 4;
/// Bytes from which on a frame is long.
const LONG: usize = 256;

/// Returns the steps from one slot of a ring of `count` to another.
fn distance(from: u32, to: u32, count: u32) -> u32 {
    if to >= from { to - from } else { to + count - from }
}

/// Returns the slot `steps` after another in a ring of `count` slots; `steps` is at most `count`.
fn after(slot: u32, steps: u32, count: u32) -> u32 {
    let sum = slot + steps;
    if sum >= count { sum - count } else { sum }
}

/// Returns the frames or buffers for one doorbell in a ring of `count` slots: at most half of them, so that the card has the others
/// meanwhile.
fn batch_of(batch: u16, count: u16) -> u32 {
    batch.min(count / 2).into()
}
