//! NVM image of a board: 16-bit words, of which the first 64 are defined and covered by a checksum. Boot images and
//! the chip's serial protocol are omitted.

use crate::{MacAddress, ids};
use pcie::low::low_word;

/// Words of the NVM, as reported by EECD.SIZE_EX: 64 shifted left by 2.
pub const WORDS: usize = 256;
/// Number of NVM words that the checksum covers, its own word included.
pub const SUMMED: usize = 64;
/// Required sum of the NVM words that the checksum covers, modulo 2^16.
pub const SUM: u16 = 0xbaba;

/// Index of the first NVM word of the port's address, low byte first; two more follow.
pub const MAC: usize = 0x00;
/// Index of the NVM word with the number of the PF's MSI-X vectors minus one in bits 15:11.
pub const MSIX: usize = 0x16;
/// Index of the NVM word with the I/O virtualization bit (bit 0).
pub const IOV: usize = 0x25;
/// Index of the NVM word with the location of alternative addresses; all ones for none.
pub const ALTERNATIVE_MAC: usize = 0x37;
/// Index of the NVM word that completes the checksum.
pub const CHECKSUM: usize = 0x3f;

/// Value of an unwritten word of the NVM.
const ERASED: u16 = 0xffff;
/// NVM words 0x03 to 0x27 of a board with one copper port.
const BOARD: [u16; 0x25] = [
    0x0d34, 0xffff, 0x2010, 0xffff, 0xffff, 0x0000, 0x1040, 0x002b, 0x0000, 0x8086, 0x10c9, 0x0000, 0x70c3,
    0x0004, 0x10c9, 0x5c00, 0x0000, 0x2880, 0x0014, 0x4a40, 0x0060, 0x6cfb, 0xc7b0, 0x0abe, 0x0403, 0x0783,
    0x10a6, 0x0001, 0x0602, 0x0004, 0x0020, 0x0000, 0x004a, 0x2080, 0x00f5, 0x10ca, 0x0000,
];

/// Returns the factory NVM image of a port with this address. `iov` is the I/O virtualization bit.
#[must_use]
pub fn image(mac: MacAddress, iov: bool) -> [u16; WORDS] {
    let mut words = [ERASED; WORDS];
    let (low, high) = mac.to_words();
    words[MAC..MAC + 3].copy_from_slice(&[low_word(low), low_word(low >> 16), low_word(high)]);
    words[MAC + 3..][..BOARD.len()].copy_from_slice(&BOARD);
    words[IOV] = words[IOV] & !1 | u16::from(iov);
    words[MSIX] = words[MSIX] & 0x07ff | (crate::config::pf::VECTORS - 1) << 11;
    debug_assert_eq!(words[IOV + 1], ids::DEVICE_VF);
    words[CHECKSUM] = 0;
    words[CHECKSUM] = SUM.wrapping_sub(sum(&words));
    words
}

/// Returns the sum of the NVM words that the checksum covers.
#[must_use]
pub fn sum(words: &[u16; WORDS]) -> u16 {
    words[..SUMMED].iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

/// Returns the port's MAC address in words 0 to 2.
#[must_use]
pub fn mac(words: &[u16; WORDS]) -> MacAddress {
    let low = u32::from(words[MAC]) | u32::from(words[MAC + 1]) << 16;
    MacAddress::from_words(low, words[MAC + 2].into())
}

#[cfg(test)]
mod tests {
    use super::{IOV, MSIX, SUM, image, mac, sum};
    use crate::MacAddress;

    const PORT: MacAddress = MacAddress([0x00, 0x1b, 0x21, 0x2b, 0x46, 0xe0]);

    #[test]
    fn nvm_image_has_a_right_checksum_and_the_mac_address() {
        for iov in [false, true] {
            let words = image(PORT, iov);
            assert_eq!(sum(&words), SUM);
            assert_eq!(words[..3], [0x1b00, 0x2b21, 0xe046]);
            assert_eq!(mac(&words), PORT);
            assert_eq!((words[IOV] & 1 == 1, words[MSIX] >> 11), (iov, 9));
        }
    }
}
