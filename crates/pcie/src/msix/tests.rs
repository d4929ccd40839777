//! Tests an MSI-X table with a driver that writes the table, and a device that signals vectors.

use super::{InterruptMessage, MsiXControl, MsiXTable};
use proptest::prelude::*;

const ON: MsiXControl = MsiXControl { enabled: true, masked: false };
const MASKED: MsiXControl = MsiXControl { enabled: true, masked: true };

/// Creates a table of three vectors; vector `n` has address fee00000h + 16n and data 40h + n, unmasked.
fn programmed() -> MsiXTable {
    let mut table = MsiXTable::new(3);
    for n in 0..3u32 {
        let entry = [0xfee0_0000 + 16 * n, 0, 0x40 + n, 0];
        let bytes: alloc::vec::Vec<u8> = entry.iter().flat_map(|d| d.to_le_bytes()).collect();
        table.write(u64::from(16 * n), &bytes);
    }
    table
}

fn message(n: u32) -> InterruptMessage {
    InterruptMessage { address: u64::from(0xfee0_0000 + 16 * n), data: 0x40 + n }
}

fn pending(table: &MsiXTable) -> u8 {
    let mut byte = [0xff];
    table.read_pending(0, &mut byte);
    byte[0]
}

#[test]
fn every_msix_vector_is_masked_after_reset() {
    let table = MsiXTable::new(3);
    let mut entry = [0xff; 16];
    table.read(32, &mut entry);
    assert_eq!(entry, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
}

#[test]
fn unmasked_msix_vector_sends_its_own_message() {
    let mut table = programmed();
    assert_eq!(table.signal(1), None, "MSI-X is off");
    table.set_control(ON);
    assert_eq!(table.signal(1), Some(message(1)));
    assert_eq!(table.signal(3), None, "vector 3 does not exist");
    assert_eq!((pending(&table), table.release()), (0, None));
}

#[test]
fn masked_msix_vector_pends_and_unmasking_sends_once() {
    let mut table = programmed();
    table.set_control(ON);
    table.write(16 + 12, &[1]);
    assert_eq!((table.signal(1), table.signal(1)), (None, None));
    assert_eq!((pending(&table), table.release()), (0b010, None));
    table.write(16 + 12, &[0, 0, 0, 0]);
    assert_eq!(table.release(), Some((1, message(1))));
    assert_eq!((pending(&table), table.release()), (0, None));
}

#[test]
fn msix_function_mask_releases_the_lowest_vector_first() {
    let mut table = programmed();
    table.set_control(MASKED);
    assert_eq!((table.signal(2), table.signal(0)), (None, None));
    assert_eq!((pending(&table), table.release()), (0b101, None));
    table.set_control(ON);
    assert_eq!(table.release(), Some((0, message(0))));
    assert_eq!(table.release(), Some((2, message(2))));
    assert_eq!(table.release(), None);
}

#[test]
fn unmasked_vector_sends_the_message_stored_at_its_unmask() {
    let mut table = programmed();
    table.set_control(MASKED);
    table.signal(0);
    table.write(8, &[0x99]);
    table.set_control(ON);
    assert_eq!(table.release(), Some((0, InterruptMessage { data: 0x99, ..message(0) })));
}

#[test]
fn disabling_msix_clears_the_pending_bits() {
    let mut table = programmed();
    table.set_control(MASKED);
    table.signal(0);
    table.set_control(MsiXControl::default());
    table.set_control(ON);
    assert_eq!((pending(&table), table.release()), (0, None));
}

#[test]
fn reserved_msix_bits_and_bytes_after_the_table_read_zero() {
    let mut table = MsiXTable::new(1);
    table.write(0, &[0xff; 64]);
    let mut bytes = [0xaa; 20];
    table.read(0, &mut bytes);
    assert_eq!(bytes[..4], [0xfc, 0xff, 0xff, 0xff]);
    assert_eq!(bytes[12..], [1, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn msix_table_restored_from_a_saved_state_equals_the_old_table() {
    let mut table = programmed();
    table.set_control(MASKED);
    table.signal(2);
    let mut successor = MsiXTable::new(3);
    successor.load(&table.save(), table.control());
    assert_eq!(successor, table);
}

proptest! {
    #[test]
    fn msix_table_access_of_any_length_and_offset_does_not_panic(
        accesses in prop::collection::vec((any::<u64>(), prop::collection::vec(any::<u8>(), 0..40)), 0..40),
        near in any::<bool>(),
    ) {
        let mut table = MsiXTable::new(3);
        for (offset, bytes) in accesses {
            let offset = if near { offset % 64 } else { offset };
            table.write(offset, &bytes);
            table.set_control(MsiXControl { enabled: bytes.len() % 3 != 0, masked: bytes.len() % 2 == 0 });
            table.signal(offset as u16);
            while table.release().is_some() {}
            let mut back = bytes.clone();
            table.read(offset, &mut back);
            table.read_pending(offset, &mut back);
        }
    }

    #[test]
    fn signalled_msix_vector_is_either_sent_or_pending(unmasked in any::<[bool; 3]>(), vector in 0u16..3) {
        let mut table = programmed();
        table.set_control(ON);
        for (n, unmasked) in unmasked.iter().enumerate() {
            table.write(16 * n as u64 + 12, &[u8::from(!unmasked)]);
        }
        let sent = table.signal(vector).is_some();
        prop_assert_eq!(sent, unmasked[usize::from(vector)]);
        prop_assert_eq!(pending(&table), u8::from(!sent) << vector);
    }
}
