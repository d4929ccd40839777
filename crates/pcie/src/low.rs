//! Extracts the low bits of registers' values, for fields that are narrower than the register.

/// Returns bits 7:0 of a dword.
#[must_use]
#[inline]
pub const fn low_byte(value: u32) -> u8 {
    value.to_le_bytes()[0]
}

/// Returns bits 15:0 of a dword.
#[must_use]
#[inline]
pub const fn low_word(value: u32) -> u16 {
    let [a, b, ..] = value.to_le_bytes();
    u16::from_le_bytes([a, b])
}

/// Returns bits 31:0 of a quadword.
#[must_use]
#[inline]
pub const fn low_dword(value: u64) -> u32 {
    (value & 0xffff_ffff) as u32
}
