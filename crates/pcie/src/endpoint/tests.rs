//! Tests the effects of writes to configuration space by software.

use super::{ConfigWriteEffects, Endpoint};
use crate::capability::{express, msix, power, power::PowerState, sriov};
use crate::config::{Bar, ConfigSpaceBuilder, FunctionIds};
use crate::msix::MsiXControl;
use crate::sriov::SrIovSettings;
use proptest::prelude::*;

fn endpoint() -> Endpoint {
    let identity =
        FunctionIds { vendor: 0x8086, device: 1, class: 0, revision: 1, subsystem_vendor: 0, subsystem: 0 };
    let express = express::ExpressCapability {
        device_capabilities: express::DEVICE_CAPABILITIES_FLR,
        link_capabilities: 0,
        link_status: 0,
        device_capabilities_2: 0,
        virtual_function: false,
    };
    let sriov = sriov::SrIovParameters {
        total_vfs: 8,
        function: 0,
        first_offset: 0x180,
        stride: 2,
        vf_device: 0x10ca,
        pages: 1,
        bars: &[],
    };
    let space = ConfigSpaceBuilder::new(identity, 0x0546)
        .bar(0, Bar::memory32(0x2_0000))
        .capability(
            0x40,
            power::PowerCapability { capabilities: 0xc823, data_scale: 0, data: 0 }.capability(),
        )
        .capability(0x70, msix::MsiXCapability { vectors: 3, bar: 3, table: 0, pba: 0x2000 }.capability())
        .capability(0xa0, express.capability())
        .extended(0x100, sriov.capability())
        .build();
    Endpoint::with_ari_offset(space, 0x80)
}

#[test]
fn configuration_write_that_changes_no_bit_has_no_effect() {
    let mut function = endpoint();
    assert!(function.write(0x00, 4, u32::MAX).is_empty());
    assert!(function.write(0x04, 2, 0).is_empty());
    assert!(function.write(0x10, 4, 0xfebe_0000).is_empty());
    assert!(function.write(0x1000, 4, u32::MAX).is_empty());
}

#[test]
fn command_register_write_reports_only_changed_enable_bits() {
    let mut function = endpoint();
    let effects = function.write(0x04, 2, 0x0006);
    assert_eq!(
        effects,
        ConfigWriteEffects { bus_master: Some(true), memory: Some(true), ..ConfigWriteEffects::default() }
    );
    assert!(function.write(0x04, 2, 0x0006).is_empty());
    assert_eq!(function.write(0x04, 1, 0x02).bus_master, Some(false));
}

#[test]
fn write_of_the_upper_msix_control_byte_enables_msix() {
    let mut function = endpoint();
    let on = MsiXControl { enabled: true, masked: true };
    assert_eq!(
        function.write(0x73, 1, 0xc0),
        ConfigWriteEffects { msix: Some(on), ..ConfigWriteEffects::default() }
    );
}

#[test]
fn function_level_reset_write_resets_configuration_space() {
    let mut function = endpoint();
    function.write(0x04, 2, 0x0006);
    function.write(0x10, 4, 0xfebe_0000);
    function.write(0x110, 2, 8);
    function.write(0x108, 2, 0x0009);
    let effects = function.write(0xa8, 2, 0xa810);
    assert!(effects.function_reset);
    assert_eq!((effects.bus_master, effects.memory), (Some(false), Some(false)));
    assert_eq!(effects.sriov, Some(SrIovSettings::default()));
    assert_eq!((function.read(0xa8, 2), function.read(0x10, 4)), (0x2810, 0));
    assert!(function.write(0xa9, 1, 0x80).function_reset, "written as a byte");
    assert!(!function.write(0xa8, 1, 0x80).function_reset, "the lower byte is another field");
}

#[test]
fn leaving_d3hot_resets_the_function_and_d1_is_ignored() {
    let mut function = endpoint();
    assert!(function.write(0x44, 2, 1).is_empty());
    assert_eq!(function.write(0x44, 2, 3).power, Some(PowerState::D3Hot));
    assert!(function.write(0x44, 2, 2).is_empty());
    assert_eq!(function.power(), PowerState::D3Hot);
    let effects = function.write(0x44, 2, 0);
    assert_eq!((effects.function_reset, effects.power), (true, Some(PowerState::D0)));
}

#[test]
fn vf_count_follows_enable_and_num_vfs() {
    let mut function = endpoint();
    assert_eq!(function.write(0x110, 2, 7).sriov.unwrap().active(), 0);
    assert_eq!(function.write(0x108, 2, 0x0009).sriov.unwrap().active(), 7);
    assert!(function.write(0x110, 2, 3).is_empty());
    assert_eq!(function.write(0x108, 2, 0x0008).sriov.unwrap().active(), 0);
}

#[test]
fn long_configuration_write_applies_register_by_register() {
    let mut function = endpoint();
    let mut bytes = [0; 0x14];
    bytes[0x08] = 1;
    bytes[0x10] = 8;
    let effects = function.write_bytes(0x100, &bytes);
    assert_eq!(
        effects.sriov.map(SrIovSettings::active),
        Some(0),
        "enabled first, so the number is locked at 0"
    );
}

proptest! {
    #[test]
    fn reported_write_effects_match_the_configuration_space(
        writes in prop::collection::vec((0u64..0x130, prop::collection::vec(any::<u8>(), 0..12)), 0..60),
    ) {
        let mut function = endpoint();
        let mut known = function.effective();
        for (offset, bytes) in writes {
            let told = function.write_bytes(offset, &bytes);
            known.bus_master = told.bus_master.or(known.bus_master);
            known.memory = told.memory.or(known.memory);
            known.msix = told.msix.or(known.msix);
            known.power = told.power.or(known.power);
            known.sriov = told.sriov.or(known.sriov);
            prop_assert_eq!(known, function.effective());
            prop_assert!(function.sriov().unwrap().num_vfs <= 8);
        }
    }

    #[test]
    fn endpoint_restored_from_a_saved_state_equals_the_saved_one(
        writes in prop::collection::vec((0u16..0x130, any::<u32>()), 0..40),
    ) {
        let mut function = endpoint();
        for (offset, value) in writes {
            function.write(offset, 4, value);
        }
        let mut successor = endpoint();
        prop_assert!(successor.load(&function.save()));
        prop_assert_eq!(successor, function);
    }

    #[test]
    fn restored_foreign_state_obeys_the_sriov_capabilitys_rules(noise in prop::collection::vec(any::<u8>(), 0x40)) {
        let mut function = endpoint();
        prop_assert!(function.load(&(0x100..0x140).zip(noise).collect()));
        prop_assert!(function.sriov().unwrap().num_vfs <= 8);
        prop_assert!(function.load(&(0..4096).map(|offset| (offset, 0)).collect()));
        prop_assert_eq!(function.read(0x120, 4), 1);
        prop_assert!(!function.load(&[(4096, 0)].into_iter().collect()), "byte 4096 does not exist");
        prop_assert_eq!(function, endpoint());
    }
}
