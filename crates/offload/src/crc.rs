//! Cyclic redundancy checks of 32 bits, sixteen bytes at a step: CRC-32C (Castagnoli), SCTP's checksum (RFC 9260,
//! appendix A), and Ethernet's frame check sequence (IEEE 802.3, 3.2.9). The latter is not optimized further: only
//! drivers that keep it in received frames need it.

use crate::narrow::length32;

/// Number of bytes in a step. Steps of 16 take half as long as those of 8, and their tables fill 16 KB of the processor's cache.
const STEP: usize = 16;

type CrcTables = [[u32; 256]; STEP];

/// Effect on CRC-32C of byte `b` with `k` more bytes behind it: `CASTAGNOLI[k][b]`.
static CASTAGNOLI: CrcTables = tables(0x82f6_3b78);
static ETHERNET: CrcTables = tables(0xedb8_8320);

const fn tables(polynomial: u32) -> CrcTables {
    let mut tables = [[0; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = length32(byte);
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 != 0 { crc >> 1 ^ polynomial } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut k = 1;
    while k < STEP {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[k - 1][byte];
            tables[k][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        k += 1;
    }
    tables
}

/// Returns the CRC-32C of several parts in order. SCTP stores the result in little-endian order.
#[must_use]
pub fn crc32c(parts: &[&[u8]]) -> u32 {
    !parts.iter().fold(!0, |crc, part| update(&CASTAGNOLI, crc, part))
}

/// Returns the frame check sequence of a frame, which is sent in little-endian order.
#[must_use]
pub fn frame_check_sequence(frame: &[u8]) -> u32 {
    !update(&ETHERNET, !0, frame)
}

fn update(tables: &CrcTables, mut crc: u32, bytes: &[u8]) -> u32 {
    let (chunks, rest) = bytes.as_chunks::<STEP>();
    for chunk in chunks {
        let mixed = (u128::from_le_bytes(*chunk) ^ u128::from(crc)).to_le_bytes();
        crc = mixed
            .iter()
            .zip(tables.iter().rev())
            .fold(0, |sum, (byte, table)| sum ^ table[usize::from(*byte)]);
    }
    rest.iter().fold(crc, |crc, byte| crc >> 8 ^ tables[0][usize::from(crc.to_le_bytes()[0] ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::{crc32c, frame_check_sequence};

    #[test]
    fn crc32c_and_fcs_give_their_published_check_values() {
        assert_eq!(crc32c(&[b"123456789"]), 0xe306_9283);
        assert_eq!(frame_check_sequence(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn crc32c_of_the_rfc_3720_examples_is_as_published() {
        assert_eq!(crc32c(&[&[0; 32]]), 0x8a91_36aa);
        assert_eq!(crc32c(&[&[0xff; 32]]), 0x62a8_ab43);
    }

    #[test]
    fn crc_of_a_message_in_parts_equals_the_crc_of_the_whole() {
        let text = b"a message of some thirty-odd bytes";
        for cut in 0..text.len() {
            assert_eq!(crc32c(&[&text[..cut], &text[cut..]]), crc32c(&[text]), "cut at {cut}");
        }
    }
}
