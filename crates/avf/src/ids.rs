//! Numbers by which software knows the device, and how much of everything it has. Left out: the device ids of other
//! members of the family, which no driver treats differently.

/// Intel.
pub const VENDOR: u16 = 0x8086;
/// Ethernet Adaptive Virtual Function: the device id that every driver of the family knows.
pub const DEVICE: u16 = 0x1889;
/// Silicon revision; drivers only report it.
pub const REVISION: u8 = 0x02;
/// Ethernet controller.
pub const CLASS: u32 = 0x02_0000;

/// Queue pairs that a VF can have.
pub const MAX_PAIRS: usize = 16;
/// Interrupt vectors that a VF can have: one of the mailbox, one of each pair.
pub const MAX_VECTORS: usize = 17;
/// The fewest vectors Linux goes on with.
pub const MIN_VECTORS: usize = 2;
/// Queue pairs of a VF that asks for no number: the base mode that every AVF device promises.
pub const BASE_PAIRS: usize = 4;
/// VFs of a port.
pub const MAX_VFS: usize = 64;
/// Intervals (ITR) of a vector.
pub const ITRS: usize = 3;

/// Bytes of the BAR with the registers (BAR 0, 64-bit, prefetchable).
pub const BAR0_SIZE: usize = 0x1_0000;
/// Bytes of the BAR with the MSI-X table (at 0) and the pending bits (at 0x2000).
pub const BAR3_SIZE: usize = 0x4000;

/// The pages of BAR 0 that a VMM may map: the tails of transmit queues, and those of receive queues with the intervals and
/// controls of vectors. Nothing there has an effect when it is read.
pub const MAPPED: [core::ops::Range<u32>; 2] = [0x0000..0x1000, 0x2000..0x4000];

/// Speed of the link, Mb/s. AVF fixes none; 25 Gb/s is one that drivers of every version know.
pub const LINK_SPEED: u32 = 25_000;
/// The longest frame, frame check sequence included.
pub const MAX_FRAME: usize = 9728;
/// The shortest frame that a driver may hand over; real cards call shorter ones malicious.
pub const MIN_FRAME: usize = 17;
/// Bytes of the frame check sequence.
pub const FCS: usize = 4;
/// The shortest and the longest frame on the wire, frame check sequence excluded.
pub const SHORTEST: usize = 60;
/// See [`SHORTEST`].
pub const LONGEST: usize = MAX_FRAME - FCS;
/// Buffers of a frame on the wire, at most.
pub const MAX_BUFFERS: usize = 8;
/// Bytes of a transmit buffer, at most.
pub const MAX_BUFFER: usize = 16_383;

/// Bytes of the receive-side-scaling key.
pub const HASH_KEY: usize = 52;
/// Entries of the receive-side-scaling table.
pub const LOOKUP_TABLE: usize = 64;

/// The fewest and the most descriptors of a ring.
pub const RING: core::ops::RangeInclusive<u32> = 32..=4096;
/// Where a ring may start: a multiple of this.
pub const RING_ALIGNMENT: u64 = 128;
