//! Tests of a guest's accesses to its MSI-X table, by handler: the three accesses per interrupt of Linux
//! 2.6.18, set-up, retargeting, and odd sizes.

use super::{
    MsixAccessCounts, MsixAccessHandler, MsixForwardReason, MsixTablePolicy, MsixWriteOutcome,
    VirtualMsixTable,
};
use pcie::msix::{InterruptMessage, MsiXControl};
use proptest::prelude::*;

const ON: MsiXControl = MsiXControl { enabled: true, masked: false };
const DATA: u64 = 8;
const CONTROL: u64 = 12;

/// Creates an MSI-X table of three vectors. Vector 1 has data 4141h and is unmasked, as the device model
/// knows.
fn running(handler: MsixTablePolicy) -> VirtualMsixTable {
    let mut table = VirtualMsixTable::new(3, handler);
    table.set_control(ON);
    table.write(16, &0xfee0_0000u32.to_le_bytes());
    table.write(16 + DATA, &0x4141u32.to_le_bytes());
    table.write(16 + CONTROL, &[0; 4]);
    table
}

fn mask(table: &mut VirtualMsixTable, masked: bool) -> MsixWriteOutcome {
    table.write(16 + CONTROL, &u32::from(masked).to_le_bytes())
}

#[test]
fn msix_message_writes_and_first_unmask_go_to_device_model() {
    let mut table = VirtualMsixTable::new(3, MsixTablePolicy::Hypervisor);
    let message = MsixAccessHandler::DeviceModel(MsixForwardReason::Message);
    assert_eq!(table.write(16, &0xfee0_0000u32.to_le_bytes()), MsixWriteOutcome { by: message, mask: None });
    assert_eq!(table.write(16 + DATA, &[0x41, 0, 0, 0]), MsixWriteOutcome { by: message, mask: None });
    assert_eq!(
        mask(&mut table, false),
        MsixWriteOutcome {
            by: MsixAccessHandler::DeviceModel(MsixForwardReason::Changed),
            mask: Some((1, false))
        }
    );
}

#[test]
fn hypervisor_masks_and_unmasks_msix_vectors_at_run_time() {
    let mut table = running(MsixTablePolicy::Hypervisor);
    assert_eq!(
        mask(&mut table, true),
        MsixWriteOutcome { by: MsixAccessHandler::Hypervisor, mask: Some((1, true)) }
    );
    assert_eq!(
        mask(&mut table, false),
        MsixWriteOutcome { by: MsixAccessHandler::Hypervisor, mask: Some((1, false)) }
    );
    assert_eq!(table.read(16 + CONTROL, &mut [0; 4]), MsixAccessHandler::Hypervisor);
}

#[test]
fn device_model_policy_forwards_every_msix_table_access() {
    let mut table = running(MsixTablePolicy::DeviceModel);
    let before = table.counts();
    for masked in [true, false] {
        let written = mask(&mut table, masked);
        assert_eq!(
            written,
            MsixWriteOutcome {
                by: MsixAccessHandler::DeviceModel(MsixForwardReason::Policy),
                mask: Some((1, masked))
            }
        );
    }
    assert_eq!(table.read(16, &mut [0; 4]), MsixAccessHandler::DeviceModel(MsixForwardReason::Policy));
    assert_eq!(table.counts(), MsixAccessCounts { device_model: before.device_model + 3, ..before });
}

#[test]
fn pending_msix_vector_is_delivered_when_unmasked() {
    for handler in [MsixTablePolicy::Hypervisor, MsixTablePolicy::DeviceModel] {
        let mut table = running(handler);
        let message = InterruptMessage { address: 0xfee0_0000, data: 0x4141 };
        assert_eq!(table.signal(1), Some(message));
        mask(&mut table, true);
        assert_eq!((table.signal(1), table.signal(1), table.release()), (None, None, None));
        mask(&mut table, false);
        assert_eq!((table.release(), table.release()), (Some((1, message)), None));
    }
}

#[test]
fn msix_unmask_after_a_message_change_is_forwarded_once() {
    // IRQ balancing: mask, new data, unmask.
    let mut table = running(MsixTablePolicy::Hypervisor);
    mask(&mut table, true);
    assert_eq!(
        table.write(16 + DATA, &0x4242u32.to_le_bytes()).by,
        MsixAccessHandler::DeviceModel(MsixForwardReason::Message)
    );
    assert_eq!(
        mask(&mut table, true).by,
        MsixAccessHandler::Hypervisor,
        "masking a masked vector changes nothing"
    );
    assert_eq!(mask(&mut table, false).by, MsixAccessHandler::DeviceModel(MsixForwardReason::Changed));
    assert_eq!(
        (mask(&mut table, true).by, mask(&mut table, false).by),
        (MsixAccessHandler::Hypervisor, MsixAccessHandler::Hypervisor)
    );
}

#[test]
fn eight_byte_msix_write_sets_message_data_and_mask_bit() {
    let mut table = running(MsixTablePolicy::Hypervisor);
    assert_eq!(table.write(16 + DATA, &0x1_0000_4141u64.to_le_bytes()).by, MsixAccessHandler::Hypervisor);
    assert_eq!(table.write(16 + DATA, &0x0_0000_4141u64.to_le_bytes()).by, MsixAccessHandler::Hypervisor);
    assert_eq!(
        table.write(16 + DATA, &0x0_0000_4242u64.to_le_bytes()).by,
        MsixAccessHandler::DeviceModel(MsixForwardReason::Changed)
    );
}

#[test]
fn msix_accesses_of_odd_size_or_offset_are_forwarded() {
    let mut table = running(MsixTablePolicy::Hypervisor);
    let forwarded = |reason| MsixAccessHandler::DeviceModel(reason);
    assert_eq!(table.write(16 + CONTROL, &[1]).by, forwarded(MsixForwardReason::Shape));
    assert_eq!(table.write(16 + 10, &[0; 4]).by, forwarded(MsixForwardReason::Shape));
    assert_eq!(table.read(16 + 4, &mut [0; 8]), forwarded(MsixForwardReason::Shape));
    assert_eq!(table.write(48, &[0; 4]).by, forwarded(MsixForwardReason::NotTable));
    assert_eq!(table.read(u64::MAX - 7, &mut [0; 8]), forwarded(MsixForwardReason::NotTable));
}

#[test]
fn write_across_two_msix_entries_changes_both() {
    let mut table = running(MsixTablePolicy::Hypervisor);
    mask(&mut table, true);
    assert_eq!(
        table.write(12, &[1, 0, 0, 0, 0, 0, 0xe0, 0xfe]).by,
        MsixAccessHandler::DeviceModel(MsixForwardReason::Shape)
    );
    assert_eq!(mask(&mut table, false).by, MsixAccessHandler::DeviceModel(MsixForwardReason::Changed));
}

proptest! {
    #[test]
    fn msix_reads_are_equal_in_hypervisor_or_device_model_mode(
        accesses in prop::collection::vec((0u64..64, 0usize..20, any::<u64>(), 0u16..4), 0..60),
    ) {
        let mut tables = [MsixTablePolicy::Hypervisor, MsixTablePolicy::DeviceModel].map(running);
        for (offset, size, value, signal) in accesses {
            let bytes: std::vec::Vec<u8> = value.to_le_bytes().into_iter().cycle().take(size).collect();
            let seen = tables.each_mut().map(|table| {
                let mask = table.write(offset, &bytes).mask;
                let mut back = [0; 8];
                table.read(offset, &mut back);
                (mask, table.signal(signal), table.release(), back)
            });
            prop_assert_eq!(seen[0], seen[1]);
        }
        prop_assert_eq!(tables[0].table(), tables[1].table());
        prop_assert_eq!(tables[1].counts().hypervisor, 0);
    }

    #[test]
    fn any_msix_table_accesses_do_not_panic(accesses in prop::collection::vec((any::<u64>(), 0usize..80), 0..40)) {
        let mut table = running(MsixTablePolicy::Hypervisor);
        for (offset, size) in accesses {
            table.write(offset, &std::vec![0xa5; size]);
            table.read(offset, &mut std::vec![0; size]);
        }
    }
}
