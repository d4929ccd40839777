//! Segmentation offload: the context and the data descriptor say how a packet is cut, registers which TCP flags survive
//! (datasheet 7.2.4). A guest chooses the header length (up to 893 bytes) and the segment size (down to 1 byte), so the
//! bytes that come out may be some 900 times those that go in.
//!
//! Left out: the cutting.

use offload::segment::FlagMasks;

/// DTXTCPFLGL and DTXTCPFLGH, as software has set them.
#[must_use]
pub const fn flag_masks(low: u32, high: u32) -> FlagMasks {
    let (first, middle) = (low & 0xfff, low >> 16 & 0xfff);
    FlagMasks { first: first as u16, middle: middle as u16, last: (high & 0xfff) as u16 }
}
