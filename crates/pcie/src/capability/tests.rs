//! Tests each capability's registers: offsets, reset values, and writable bits.

use super::{aer, ari, dsn, express, msi, msix, power};
use crate::config::{ConfigSpace, ConfigSpaceBuilder, FunctionIds};

fn identity() -> FunctionIds {
    FunctionIds {
        vendor: 0x8086,
        device: 1,
        class: 0x02_0000,
        revision: 1,
        subsystem_vendor: 0,
        subsystem: 0,
    }
}

fn after_all_ones(mut space: ConfigSpace, offset: u16) -> u32 {
    space.write(offset, 4, u32::MAX);
    space.dword(offset)
}

fn express(virtual_function: bool) -> ConfigSpace {
    let express = express::ExpressCapability {
        device_capabilities: 0x1000_8cc2,
        link_capabilities: 0,
        link_status: 0,
        device_capabilities_2: 0x1f,
        virtual_function,
    };
    ConfigSpaceBuilder::new(identity(), 0).capability(0xa0, express.capability()).build()
}

#[test]
fn pci_capabilities_are_linked_in_ascending_offsets() {
    let msix = msix::MsiXCapability { vectors: 3, bar: 3, table: 0, pba: 0x2000 };
    let space = ConfigSpaceBuilder::new(identity(), 0)
        .capability(0x50, msi::capability())
        .capability(0x70, msix.capability())
        .extended(0x100, dsn::from_mac([0, 0x1b, 0x21, 0x2b, 0x46, 0xe0]))
        .extended(0x150, ari::capability(1))
        .build();
    assert_eq!(space.read(0x06, 1), 0x10);
    assert_eq!(space.read(0x34, 1), 0x50);
    assert_eq!(space.dword(0x50), 0x0180_7005);
    assert_eq!(space.dword(0x70), 0x0002_0011);
    assert_eq!(space.dword(0x100), 0x1501_0003);
    assert_eq!(space.dword(0x150), 0x0001_000e);
    assert_eq!(space.dword(0x154), 0x0000_0100);
    assert_eq!(space.find(msix::ID), Some(0x70));
    assert_eq!(space.find_extended(ari::ID), Some(0x150));
    assert_eq!((space.find(power::ID), space.find_extended(aer::ID)), (None, None));
}

#[test]
fn device_serial_number_is_the_mac_address_with_ffff_inside() {
    let serial = dsn::from_mac([0, 0x1b, 0x21, 0x2b, 0x46, 0xe0]);
    let space = ConfigSpaceBuilder::new(identity(), 0).extended(0x100, serial).build();
    assert_eq!((space.dword(0x104), space.dword(0x108)), (0xff2b_46e0, 0x001b_21ff));
}

#[test]
fn only_power_state_and_pme_bits_of_power_control_are_writable() {
    let power = power::PowerCapability { capabilities: 0xc823, data_scale: 1, data: 0x1a };
    let space = ConfigSpaceBuilder::new(identity(), 0).capability(0x40, power.capability()).build();
    assert_eq!((space.dword(0x40), space.dword(0x44)), (0xc823_0001, 0x1a00_2000));
    assert_eq!(after_all_ones(space, 0x44), 0x1a00_3f03);
}

#[test]
fn only_enable_and_mask_bits_of_msix_control_are_writable() {
    let msix = msix::MsiXCapability { vectors: 10, bar: 3, table: 0, pba: 0x2000 };
    let space = ConfigSpaceBuilder::new(identity(), 0).capability(0x70, msix.capability()).build();
    assert_eq!((space.dword(0x74), space.dword(0x78)), (0x0000_0003, 0x0000_2003));
    assert_eq!(after_all_ones(space, 0x70), 0xc009_0011);
}

#[test]
fn function_level_reset_bit_in_device_control_reads_zero() {
    assert_eq!(express(false).word(0xa8), 0x2810);
    assert_eq!(after_all_ones(express(false), 0xa8) as u16, 0x78ff);
    assert_eq!(after_all_ones(express(true), 0xa8) as u16, 0);
}

#[test]
fn function_level_reset_keeps_only_max_payload_size() {
    let mut space = express(false);
    space.write(0xa8, 2, 0x5050);
    space.function_level_reset();
    assert_eq!(space.word(0xa8), 0x2810 | 0x40);
    space.reset();
    assert_eq!(space.word(0xa8), 0x2810);
}

#[test]
fn aer_error_status_survives_a_reset_and_clears_by_ones() {
    let aer = aer::AerCapability { severity: 0x0006_2011, correctable_mask: 0x2000, virtual_function: false };
    let mut space = ConfigSpaceBuilder::new(identity(), 0).extended(0x100, aer.capability()).build();
    space.set_dword(0x104, 0x0010_4000);
    space.function_level_reset();
    assert_eq!(space.dword(0x104), 0x0010_4000);
    space.write(0x104, 4, 0x0010_0000);
    assert_eq!(space.dword(0x104), 0x0000_4000);
}
