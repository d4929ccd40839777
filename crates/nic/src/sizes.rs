//! Size of the place that packets pass through. Left out: the place (`rings::Places`).

use plane::frame::HEADROOM;

/// Bytes of the largest packet that a queue may hand over, behind headroom: 256 KB is what PAYLEN can say, with room for headers.
pub(crate) const PACKET: usize = HEADROOM + 260 * 1024;
