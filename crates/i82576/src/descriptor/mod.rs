//! Descriptors: the 16-byte records by which driver and card pass buffers. Everything is little endian.
//! Left out: legacy descriptors.

pub mod rx;
pub mod tx;

/// Bytes of every descriptor.
pub const SIZE: usize = 16;

/// The status bit by which the card gives a descriptor back: descriptor done.
pub const DD: u32 = 1 << 0;

fn dword(raw: &[u8; SIZE], index: usize) -> u32 {
    let at = 4 * index;
    u32::from_le_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]])
}

fn qword(raw: &[u8; SIZE], index: usize) -> u64 {
    u64::from(dword(raw, 2 * index)) | u64::from(dword(raw, 2 * index + 1)) << 32
}

fn from_dwords(dwords: [u32; 4]) -> [u8; SIZE] {
    let mut raw = [0; SIZE];
    for (bytes, dword) in raw.chunks_exact_mut(4).zip(dwords) {
        bytes.copy_from_slice(&dword.to_le_bytes());
    }
    raw
}
