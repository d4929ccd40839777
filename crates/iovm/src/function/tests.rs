//! Tests a VF's configuration space and MSI-X BAR from the side of a guest and its VMM.

use super::VirtualFunction;
use i82576::config;
use pcie::config::{Bar, FunctionIds, SIZE};
use pcie::msix::{InterruptMessage, MsiXControl};
use pcie::{ConfigWriteEffects, Rid, VfIndex};
use proptest::prelude::*;
use std::vec::Vec;

const BARS: &[(u8, Bar)] = &[(0, Bar::memory64(0x4000)), (3, Bar::memory64(0x4000))];

fn vf() -> VirtualFunction {
    let identity = FunctionIds { device: 0x10ca, ..config::identity() };
    VirtualFunction::new(VfIndex::new(2).unwrap(), Rid(0x0284), identity, BARS)
}

fn dword(vf: &VirtualFunction, offset: u64) -> u32 {
    let mut bytes = [0; 4];
    vf.config_read(offset, &mut bytes);
    u32::from_le_bytes(bytes)
}

fn write(vf: &mut VirtualFunction, offset: u64, value: u32) -> ConfigWriteEffects {
    vf.config_write(offset, &value.to_le_bytes())
}

#[test]
fn vf_configuration_space_is_an_endpoint_with_vf_capabilities() {
    let expected = [
        (0x00, 0x10ca_8086),
        (0x04, 0x0010_0000),
        (0x08, 0x0200_0001),
        (0x10, 0x0000_0004),
        (0x1c, 0x0000_0004),
        (0x2c, 0x0000_8086),
        (0x34, 0x0000_0070),
        (0x3c, 0x0000_0000),
        (0x70, 0x0002_a011),
        (0x74, 0x0000_0003),
        (0x78, 0x0000_2003),
        (0xa0, 0x0002_0010),
        (0x100, 0x1501_0001),
        (0x150, 0x0001_000e),
    ];
    for (offset, value) in expected {
        assert_eq!(dword(&vf(), offset), value, "dword {offset:#x}");
    }
    assert_ne!(dword(&vf(), 0xa4) & 1 << 28, 0, "function level reset");
}

#[test]
fn sizing_by_a_vmm_finds_two_bars_and_no_rom() {
    let mut vf = vf();
    let sizes = [0x10u64, 0x14, 0x18, 0x1c, 0x20, 0x24, 0x30].map(|bar| {
        let was = dword(&vf, bar);
        write(&mut vf, bar, u32::MAX);
        let sized = dword(&vf, bar);
        write(&mut vf, bar, was);
        sized
    });
    assert_eq!(sizes, [0xffff_c004, 0xffff_ffff, 0, 0xffff_c004, 0xffff_ffff, 0, 0]);
    write(&mut vf, 0x30, 0xffff_f800);
    assert_eq!(dword(&vf, 0x30), 0, "QEMU asks for a ROM this way");
}

#[test]
fn only_defined_bits_of_the_pci_command_are_writable() {
    let mut vf = vf();
    vf.config_write(0x04, &[0xff, 0xff]);
    assert_eq!(dword(&vf, 0x04) & 0xffff, 0x0546);
    assert!(vf.endpoint().memory() && vf.endpoint().bus_master());
}

#[test]
fn function_level_reset_clears_command_bars_and_msix() {
    let mut vf = vf();
    write(&mut vf, 0x04, 0x0006);
    write(&mut vf, 0x10, 0xfebf_0000);
    vf.config_write(0x72, &[0x00, 0x80]);
    vf.msix_write(0, &[0xff; 48]);
    let effects = vf.config_write(0xa8, &[0x10, 0xa8]);
    assert!(effects.function_reset);
    assert_eq!((effects.bus_master, effects.msix), (Some(false), Some(MsiXControl::default())));
    let mut entry = [0xff; 4];
    vf.msix_read(0, &mut entry);
    assert_eq!((dword(&vf, 0x04) & 0xffff, dword(&vf, 0x10), entry), (0, 4, [0; 4]));
    assert_eq!(dword(&vf, 0xa8) & 0x8000, 0, "the bit reads zero");
}

#[test]
fn only_a_bus_master_vf_sends_messages_of_its_msix_table() {
    let mut vf = vf();
    let entry = [0x0000_1000u32, 0, 0x22, 0];
    vf.msix_write(16, &entry.iter().flat_map(|dword| dword.to_le_bytes()).collect::<Vec<u8>>());
    vf.config_write(0x72, &[0x00, 0x80]);
    assert_eq!(vf.signal(1), None, "no bus master, no message");
    write(&mut vf, 0x04, 0x0006);
    assert_eq!(vf.signal(1), Some(InterruptMessage { address: 0x1000, data: 0x22 }));
    vf.config_write(0x73, &[0xc0]);
    assert_eq!(vf.signal(1), None);
    let mut pending = [0; 10];
    vf.msix_read(0x2000 - 2, &mut pending);
    assert_eq!(pending, [0, 0, 0b010, 0, 0, 0, 0, 0, 0, 0]);
    vf.config_write(0x73, &[0x80]);
    assert_eq!(vf.release(), Some((1, InterruptMessage { address: 0x1000, data: 0x22 })));
}

/// Generates writes of any size to a VF, as offset and bytes, mostly at offsets of registers.
fn accesses() -> impl Strategy<Value = Vec<(u64, Vec<u8>)>> {
    let offset = prop_oneof![8 => 0u64..0x180, 1 => 0..SIZE as u64 + 8, 1 => any::<u64>()];
    prop::collection::vec((offset, prop::collection::vec(any::<u8>(), 0..10)), 0..100)
}

proptest! {
    #[test]
    fn read_only_fields_of_vf_configuration_survive_any_write(accesses in accesses()) {
        let mut vf = vf();
        for (offset, bytes) in accesses {
            vf.config_write(offset, &bytes);
            vf.msix_write(offset, &bytes);
            let mut back = bytes.clone();
            vf.config_read(offset, &mut back);
            vf.msix_read(offset, &mut back);
            prop_assert_eq!(vf.endpoint().msix(), Some(vf.table.control()));
        }
        let fixed = [0x00, 0x08, 0x2c, 0x30, 0x34, 0x74, 0x78, 0xa0, 0xa4, 0xac, 0x100, 0x150, 0x154];
        for offset in fixed {
            prop_assert_eq!(dword(&vf, offset), dword(&super::tests::vf(), offset), "dword {:#x}", offset);
        }
        write(&mut vf, 0x10, u32::MAX);
        write(&mut vf, 0x1c, u32::MAX);
        prop_assert_eq!((dword(&vf, 0x10), dword(&vf, 0x1c)), (0xffff_c004, 0xffff_c004));
        vf.reset();
        prop_assert_eq!(vf, super::tests::vf());
    }

    #[test]
    fn vf_configuration_is_restored_from_the_saved_state(accesses in accesses()) {
        let mut vf = vf();
        for (offset, bytes) in accesses {
            vf.config_write(offset, &bytes);
            vf.msix_write(offset, &bytes);
            vf.signal(bytes.len() as u16);
        }
        let mut successor = super::tests::vf();
        prop_assert!(successor.load(&vf.save()));
        prop_assert_eq!(successor, vf);
    }
}
