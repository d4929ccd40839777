//! Sizes of the places that packets and frames pass through. Left out: the places (`scratch`).

use i82576::ids::MAX_FRAME;
use plane::frame::HEADROOM;

/// Bytes of the largest packet that a queue may hand over: 256 KB is what PAYLEN can say, with room for headers.
pub(crate) const MAX_PACKET: usize = 260 * 1024;

/// Bytes that a packet may need in its place.
pub(crate) const PACKET: usize = HEADROOM + MAX_PACKET;

/// Bytes that a frame may need in its place.
pub(crate) const FRAME: usize = HEADROOM + MAX_FRAME;
