//! Descriptors: the 16-byte little-endian records by which driver and card pass buffers.

pub mod legacy;
pub mod orders;
pub mod rx;
pub mod tx;

/// Bytes of every transmit and receive descriptor.
pub const SIZE: usize = 16;

/// Descriptor done: status bit of a completed descriptor.
pub const DD: u32 = 1 << 0;

#[inline]
fn dword(raw: &[u8; SIZE], index: usize) -> u32 {
    u32::from_le_bytes(raw.as_chunks().0[index])
}

#[inline]
fn qword(raw: &[u8; SIZE], index: usize) -> u64 {
    u64::from_le_bytes(raw.as_chunks().0[index])
}

#[inline]
fn from_dwords([a, b, c, d]: [u32; 4]) -> [u8; SIZE] {
    from_qwords([u64::from(a) | u64::from(b) << 32, u64::from(c) | u64::from(d) << 32])
}

#[inline]
fn from_qwords([low, high]: [u64; 2]) -> [u8; SIZE] {
    (u128::from(low) | u128::from(high) << 64).to_le_bytes()
}
