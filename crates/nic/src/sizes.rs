//! Size of the buffer that packets pass through (`rings::FrameMemory`).

use plane::frame::HEADROOM;

/// Bytes of the buffer for the largest packet of a queue: headroom, the 256 KB that PAYLEN (18 bits) can name, and headers.
pub(crate) const PACKET: usize = HEADROOM + 260 * 1024;
