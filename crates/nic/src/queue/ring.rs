//! The rings of a queue, decoded from its registers and checked at every write: software may write any value at any time.

use crate::file::RegisterFile;
use i82576::QueueIndex;
use i82576::bits::dctl;
use i82576::descriptor::SIZE;
use i82576::register::{rx, rx_block, tx, tx_block};
use rings::Ring;

/// Returns the receive ring of a queue, or `None` while the queue is disabled or its registers are invalid.
pub(super) fn receive(file: &RegisterFile, queue: QueueIndex) -> Option<Ring> {
    let at = rx_block(queue);
    checked(file, at, at + rx::RXDCTL, at + rx::RDH, at + rx::RDT)
}

/// Returns the transmit ring of a queue, or `None` while the queue is disabled or its registers are invalid.
pub(super) fn transmit(file: &RegisterFile, queue: QueueIndex) -> Option<Ring> {
    let at = tx_block(queue);
    checked(file, at, at + tx::TXDCTL, at + tx::TDH, at + tx::TDT)
}

/// Returns the ring of a register block, if the queue is enabled and head and tail are within the ring's length.
fn checked(file: &RegisterFile, block: u32, control: u32, head: u32, tail: u32) -> Option<Ring> {
    // Base and length have the same offsets in receive and transmit blocks.
    let base = u64::from(file.get(block + tx::TDBAL)) | u64::from(file.get(block + tx::TDBAH)) << 32;
    let ring = Ring::new(base, file.get(block + tx::TDLEN) / SIZE as u32, SIZE, file.get(tail));
    let enabled = file.get(control) & dctl::ENABLE != 0;
    ring.filter(|ring| enabled && ring.contains(file.get(head)))
}

#[cfg(test)]
mod tests {
    use super::transmit;
    use crate::file::RegisterFile;
    use i82576::QueueIndex;
    use i82576::register::{tx, tx_block};
    use rings::Ring;

    fn ring(registers: &[(u32, u32)]) -> Option<Ring> {
        let (mut file, queue) = (RegisterFile::new(), QueueIndex::new(2).unwrap());
        for (at, value) in registers.iter().chain(&[(tx::TXDCTL, 1 << 25)]) {
            file.set(tx_block(queue) + at, *value);
        }
        transmit(&file, queue)
    }

    #[test]
    fn ring_of_length_zero_is_invalid() {
        assert_eq!(ring(&[]), None);
    }

    #[test]
    fn ring_with_head_or_tail_beyond_its_end_is_invalid() {
        let with = |head, tail| ring(&[(tx::TDLEN, 128), (tx::TDH, head), (tx::TDT, tail)]);
        assert_eq!(with(8, 0), None);
        assert_eq!(with(0, 8), None);
        assert!(with(7, 7).is_some());
    }

    #[test]
    fn ring_address_has_64_bits() {
        let ring = ring(&[(tx::TDBAL, 0x3456_7080), (tx::TDBAH, 0x12), (tx::TDLEN, 128)]).unwrap();
        assert_eq!(ring.address(3), 0x12_3456_7080 + 3 * 16);
    }
}
