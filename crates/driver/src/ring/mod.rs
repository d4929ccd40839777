//! Rings of descriptors in memory, for drivers of any family. Every slot owns a buffer of 2 KB, so nothing is allocated or
//! mapped for a frame.
//!
//! | module | what it is |
//! |---|---|
//! | `transmit` | frames out: copied into slots, told of in batches, taken back |
//! | `receive` | frames in: copied out of slots, which are posted again in batches |
//!
//! A frame takes tens of nanoseconds here, so nothing on its way is stored in small pieces and loaded in larger ones: such a load
//! waits until every store before it has reached the cache, and those before it went to memory that the card's processor has.
//! Therefore slots are counted in whole registers, descriptors are made in words, and what a descriptor says is not unpacked
//! before its reader wants it.
//!
//! Left out: what a descriptor says, which is the family's, and the registers but for the doorbell.

pub(crate) mod receive;
pub(crate) mod transmit;

/// Bytes of a slot's buffer.
pub(crate) const BUFFER: usize = 2048;
/// The most frames or buffers for one doorbell: half of the shortest ring.
pub const MAX_BATCH: u16 = 32;
/// Where a ring starts: a multiple of this.
const ALIGNMENT: usize = 128;
/// A long frame's buffer is fetched so many slots ahead: the card's processor has it, and it takes longer to come than the
/// frame takes.
const AHEAD: u32 = 4;
/// Frames of so many bytes are long.
const LONG: usize = 256;

/// Steps from one slot of a ring of `count` to another.
fn distance(from: u32, to: u32, count: u32) -> u32 {
    if to >= from { to - from } else { to + count - from }
}

/// The slot `steps` after another in a ring of `count` slots; `steps` is at most `count`.
fn after(slot: u32, steps: u32, count: u32) -> u32 {
    let sum = slot + steps;
    if sum >= count { sum - count } else { sum }
}
