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
fn dword(raw: &[u8; SIZE], index: u32) -> u32 {
    (u128::from_le_bytes(*raw) >> (32 * index)) as u32
}

#[inline]
fn qword(raw: &[u8; SIZE], index: u32) -> u64 {
    (u128::from_le_bytes(*raw) >> (64 * index)) as u64
}

#[inline]
fn from_dwords([a, b, c, d]: [u32; 4]) -> [u8; SIZE] {
    let low = u64::from(a) | u64::from(b) << 32;
    let high = u64::from(c) | u64::from(d) << 32;
    (u128::from(low) | u128::from(high) << 64).to_le_bytes()
}
