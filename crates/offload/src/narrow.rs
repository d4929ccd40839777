//! Lengths and words as the narrower fields of headers and checksums.

/// Returns a length as a field of 16 bits. A longer length, which no header can state, keeps its low bits.
#[inline]
pub(crate) const fn length16(length: usize) -> u16 {
    low_word(length as u64)
}

/// Returns a length or an index as a field of 32 bits. A frame's length always fits.
#[inline]
pub(crate) const fn length32(length: usize) -> u32 {
    low_dword(length as u64)
}

/// Returns bits 15:0 of a quadword.
#[inline]
pub(crate) const fn low_word(value: u64) -> u16 {
    (value & 0xffff) as u16
}

/// Returns bits 31:0 of a quadword.
#[inline]
pub(crate) const fn low_dword(value: u64) -> u32 {
    (value & 0xffff_ffff) as u32
}
