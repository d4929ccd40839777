//! Segmentation offload: the context and the data descriptor describe how a packet is segmented, and registers which
//! TCP flags survive (datasheet 7.2.4). A guest chooses the header length (up to 893 bytes) and the segment size (down
//! to 1 byte), so the segments may have some 900 times the bytes of the packet.
//!
//! The crate `offload` cuts the packet.

use offload::segment::TcpFlagMasks;

/// Returns the masks of TCP flags in the registers DTXTCPFLGL and DTXTCPFLGH.
#[must_use]
pub const fn flag_masks(low: u32, high: u32) -> TcpFlagMasks {
    let (first, middle) = (low & 0xfff, low >> 16 & 0xfff);
    TcpFlagMasks { first: first as u16, middle: middle as u16, last: (high & 0xfff) as u16 }
}
