//! A guest's conversations with its table, by handler: the three accesses of Linux 2.6.18's interrupt, set-up,
//! re-targeting, odd shapes.

use super::{By, Counts, Handler, VirtualTable, Why, Written};
use pcie::msix::{Control, Message};
use proptest::prelude::*;

const ON: Control = Control { enabled: true, masked: false };
const DATA: u64 = 8;
const CONTROL: u64 = 12;

/// Three vectors; vector 1 has data 4141h, is unmasked, and the device model knows.
fn running(handler: Handler) -> VirtualTable {
    let mut table = VirtualTable::new(3, handler);
    table.set_control(ON);
    table.write(16, &0xfee0_0000u32.to_le_bytes());
    table.write(16 + DATA, &0x4141u32.to_le_bytes());
    table.write(16 + CONTROL, &[0; 4]);
    table
}

fn mask(table: &mut VirtualTable, masked: bool) -> Written {
    table.write(16 + CONTROL, &u32::from(masked).to_le_bytes())
}

#[test]
fn set_up_is_the_device_models_and_so_is_the_first_unmask() {
    let mut table = VirtualTable::new(3, Handler::Hypervisor);
    let message = By::DeviceModel(Why::Message);
    assert_eq!(table.write(16, &0xfee0_0000u32.to_le_bytes()), Written { by: message, mask: None });
    assert_eq!(table.write(16 + DATA, &[0x41, 0, 0, 0]), Written { by: message, mask: None });
    assert_eq!(
        mask(&mut table, false),
        Written { by: By::DeviceModel(Why::Changed), mask: Some((1, false)) }
    );
}

#[test]
fn at_run_time_the_hypervisor_masks_and_unmasks() {
    let mut table = running(Handler::Hypervisor);
    assert_eq!(mask(&mut table, true), Written { by: By::Hypervisor, mask: Some((1, true)) });
    assert_eq!(mask(&mut table, false), Written { by: By::Hypervisor, mask: Some((1, false)) });
    assert_eq!(table.read(16 + CONTROL, &mut [0; 4]), By::Hypervisor);
}

#[test]
fn with_a_device_model_every_access_is_forwarded() {
    let mut table = running(Handler::DeviceModel);
    let before = table.counts();
    for masked in [true, false] {
        let written = mask(&mut table, masked);
        assert_eq!(written, Written { by: By::DeviceModel(Why::Policy), mask: Some((1, masked)) });
    }
    assert_eq!(table.read(16, &mut [0; 4]), By::DeviceModel(Why::Policy));
    assert_eq!(table.counts(), Counts { device_model: before.device_model + 3, ..before });
}

#[test]
fn a_masked_vector_pends_and_is_delivered_at_the_unmask() {
    for handler in [Handler::Hypervisor, Handler::DeviceModel] {
        let mut table = running(handler);
        let message = Message { address: 0xfee0_0000, data: 0x4141 };
        assert_eq!(table.signal(1), Some(message));
        mask(&mut table, true);
        assert_eq!((table.signal(1), table.signal(1), table.release()), (None, None, None));
        mask(&mut table, false);
        assert_eq!((table.release(), table.release()), (Some((1, message)), None));
    }
}

#[test]
fn an_unmask_after_a_change_is_forwarded_once() {
    // Irq balancing: mask, new data, unmask.
    let mut table = running(Handler::Hypervisor);
    mask(&mut table, true);
    assert_eq!(table.write(16 + DATA, &0x4242u32.to_le_bytes()).by, By::DeviceModel(Why::Message));
    assert_eq!(mask(&mut table, true).by, By::Hypervisor, "to mask again changes nothing");
    assert_eq!(mask(&mut table, false).by, By::DeviceModel(Why::Changed));
    assert_eq!((mask(&mut table, true).by, mask(&mut table, false).by), (By::Hypervisor, By::Hypervisor));
}

#[test]
fn data_and_control_may_be_written_at_once() {
    let mut table = running(Handler::Hypervisor);
    assert_eq!(table.write(16 + DATA, &0x1_0000_4141u64.to_le_bytes()).by, By::Hypervisor);
    assert_eq!(table.write(16 + DATA, &0x0_0000_4141u64.to_le_bytes()).by, By::Hypervisor);
    assert_eq!(table.write(16 + DATA, &0x0_0000_4242u64.to_le_bytes()).by, By::DeviceModel(Why::Changed));
}

#[test]
fn odd_shapes_and_places_are_forwarded() {
    let mut table = running(Handler::Hypervisor);
    let forwarded = |why| By::DeviceModel(why);
    assert_eq!(table.write(16 + CONTROL, &[1]).by, forwarded(Why::Shape));
    assert_eq!(table.write(16 + 10, &[0; 4]).by, forwarded(Why::Shape));
    assert_eq!(table.read(16 + 4, &mut [0; 8]), forwarded(Why::Shape));
    assert_eq!(table.write(48, &[0; 4]).by, forwarded(Why::NotTable));
    assert_eq!(table.read(u64::MAX - 7, &mut [0; 8]), forwarded(Why::NotTable));
}

#[test]
fn a_write_across_entries_changes_each() {
    let mut table = running(Handler::Hypervisor);
    mask(&mut table, true);
    assert_eq!(table.write(12, &[1, 0, 0, 0, 0, 0, 0xe0, 0xfe]).by, By::DeviceModel(Why::Shape));
    assert_eq!(mask(&mut table, false).by, By::DeviceModel(Why::Changed));
}

proptest! {
    #[test]
    fn who_handles_an_access_makes_no_difference_to_the_guest(
        accesses in prop::collection::vec((0u64..64, 0usize..20, any::<u64>(), 0u16..4), 0..60),
    ) {
        let mut tables = [Handler::Hypervisor, Handler::DeviceModel].map(running);
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
    fn any_access_is_survived(accesses in prop::collection::vec((any::<u64>(), 0usize..80), 0..40)) {
        let mut table = running(Handler::Hypervisor);
        for (offset, size) in accesses {
            table.write(offset, &std::vec![0xa5; size]);
            table.read(offset, &mut std::vec![0; size]);
        }
    }
}
