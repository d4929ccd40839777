//! Ids and limits of the device. The one device id stands for the whole family: no driver treats its other ids
//! differently.

/// PCI vendor id of Intel.
pub const VENDOR: u16 = 0x8086;
/// Device id of the Ethernet Adaptive Virtual Function, known to every driver of the family.
pub const DEVICE: u16 = 0x1889;
/// Silicon revision; drivers only report it.
pub const REVISION: u8 = 0x02;
/// Class code of an Ethernet controller.
pub const CLASS: u32 = 0x02_0000;

/// Maximum number of queue pairs of a VF.
pub const MAX_PAIRS: usize = 16;
/// Maximum number of interrupt vectors of a VF: one for the mailbox, one per pair.
pub const MAX_VECTORS: usize = VECTORS as usize;
/// Maximum number of a VF's interrupt vectors, as a byte.
pub(crate) const VECTORS: u8 = 17;
/// Minimum number of interrupt vectors of a VF that Linux accepts.
pub const MIN_VECTORS: usize = 2;
/// Number of queue pairs of a VF that requests no number: the base mode that every AVF device has.
pub const BASE_PAIRS: usize = 4;
/// Maximum number of VFs of a port.
pub const MAX_VFS: usize = 64;
/// Number of intervals (ITR) of a vector.
pub const ITRS: usize = 3;

/// Bytes of the BAR with the registers (BAR 0, 64-bit, prefetchable).
pub const BAR0_SIZE: usize = 0x1_0000;
/// Bytes of the BAR with the MSI-X table (at 0) and the pending bits (at 0x2000).
pub const BAR3_SIZE: usize = 0x4000;

/// Pages of BAR 0 that a VMM may map: the tails of transmit queues, and those of receive queues with the intervals
/// and controls of vectors. Reads there have no side effects.
pub const MAPPED: [core::ops::Range<u32>; 2] = [0x0000..0x1000, 0x2000..0x4000];

/// Speed of the link in Mb/s. AVF prescribes no speed; drivers of every version know 25 Gb/s.
pub const LINK_SPEED: u32 = 25_000;
/// Longest frame in bytes, frame check sequence included.
pub const MAX_FRAME: usize = 9728;
/// Shortest frame that a driver may send, in bytes; real cards report shorter ones as malicious.
pub const MIN_FRAME: usize = 17;
/// Bytes of the frame check sequence.
pub const FCS: usize = 4;
/// Longest frame on the wire in bytes, frame check sequence excluded.
pub const LONGEST: usize = MAX_FRAME - FCS;
/// Maximum number of buffers of a frame on the wire.
pub const MAX_BUFFERS: usize = 8;
/// Longest transmit buffer in bytes.
pub const MAX_BUFFER: usize = 16_383;

/// Bytes of the receive-side-scaling (RSS) key.
pub const HASH_KEY: usize = 52;
/// Number of entries of the receive-side-scaling (RSS) table.
pub const LOOKUP_TABLE: usize = 64;

/// Permitted numbers of descriptors in a ring.
pub const RING: core::ops::RangeInclusive<u32> = 32..=4096;
/// Alignment of a ring's address in bytes.
pub const RING_ALIGNMENT: u64 = 128;
