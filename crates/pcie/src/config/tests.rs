//! Tests properties of every configuration space: read-only bits keep their value, write-1-to-clear bits clear alone,
//! sizing returns sizes, and every access follows the rules.

use super::{
    Bar, BarKind, ConfigRegister, ConfigSpace, ConfigSpaceBuilder, ConfigSpaceState, FunctionIds, SIZE,
};
use alloc::vec::Vec;
use proptest::prelude::*;

const WRITABLE: u32 = 0x0000_ffff;
const CLEARABLE: u32 = 0x00ff_0000;
const STATUS: u16 = 0x80;

fn builder() -> ConfigSpaceBuilder {
    let identity = FunctionIds {
        vendor: 0x8086,
        device: 0x10ca,
        class: 0x02_0000,
        revision: 1,
        subsystem_vendor: 0x1234,
        subsystem: 0x5678,
    };
    ConfigSpaceBuilder::new(identity, 0x0546)
}

fn space() -> ConfigSpace {
    let register = ConfigRegister::dword(STATUS, 0xff00_0000)
        .writable(WRITABLE)
        .write_1_to_clear(CLEARABLE)
        .sticky(CLEARABLE);
    builder().bar(0, Bar::memory64(0x4000)).bar(3, Bar::memory32(0x1000)).register(register).build()
}

#[test]
fn configuration_header_has_the_functions_ids() {
    let space = space();
    assert_eq!(space.dword(0x00), 0x10ca_8086);
    assert_eq!(space.dword(0x08), 0x0200_0001);
    assert_eq!(space.dword(0x2c), 0x5678_1234);
}

#[test]
fn configuration_reads_of_any_size_return_the_same_bytes() {
    let space = space();
    assert_eq!((space.read(0, 1), space.read(1, 2), space.read(2, 4)), (0x86, 0xca80, 0x0000_10ca));
    assert_eq!((space.read(0, 3), space.read(0, 0), space.read(0, 8)), (u32::MAX, u32::MAX, u32::MAX));
}

#[test]
fn bytes_beyond_configuration_space_read_all_ones() {
    let mut space = space();
    assert_eq!((space.dword(4094), space.dword(4096), space.dword(0xffff)), (0xffff_0000, !0, !0));
    let mut bytes = [0; 3];
    space.read_bytes(u64::MAX - 1, &mut bytes);
    assert_eq!(bytes, [0xff; 3]);
    let before = space.clone();
    space.write_bytes(u64::MAX - 1, &[0xff; 8]);
    space.write(4096, 4, 0);
    assert_eq!(space, before);
}

#[test]
fn bar_sizing_read_returns_size_mask_and_type() {
    let mut space = space();
    space.write_bytes(0x10, &[0xff; 24]);
    let bars: [u32; 6] = core::array::from_fn(|n| space.dword(0x10 + 4 * n as u16));
    assert_eq!(bars, [0xffff_c004, 0xffff_ffff, 0, 0xffff_f000, 0, 0]);
    space.write(0x30, 4, 0xffff_f800);
    assert_eq!(space.dword(0x30), 0, "the function has no ROM");
}

#[test]
fn sticky_config_bit_survives_only_a_function_level_reset() {
    let mut space = space();
    space.set_dword(STATUS, 0xffff_1234);
    space.function_level_reset();
    assert_eq!(space.dword(STATUS), 0xffff_0000);
    space.reset();
    assert_eq!(space.dword(STATUS), 0xff00_0000);
}

#[test]
fn saved_state_covers_every_changeable_configuration_byte() {
    let ConfigSpace { layout, .. } = space();
    let changes =
        |i: &u16| [layout.writable, layout.clearable, layout.sticky].iter().any(|m| m[usize::from(*i)] != 0);
    assert_eq!(layout.changeable, (0..SIZE as u16).filter(changes).collect::<Vec<_>>());
    assert!(layout.changeable.len() < 32, "command and status, BARs, and one register");
}

#[test]
#[should_panic(expected = "in the order of their offsets")]
fn extended_capabilities_with_falling_offsets_panic() {
    let ari = || crate::capability::ari::capability(0);
    let _ = builder().extended(0x100, ari()).extended(0x100, ari());
}

#[test]
fn looping_or_dangling_capability_list_ends_the_search() {
    for next in [0x40u32, 0x00, 0xfc, 0x3c] {
        let read = |at| match at {
            0x04 => 0x0010_0000,
            0x34 => 0x40,
            _ => next << 8 | 0x09,
        };
        assert_eq!(crate::walk::find(read, 0x11), None);
    }
    assert_eq!(crate::walk::find(|_| u32::MAX, 0x11), None);
    assert_eq!(crate::walk::find_extended(|_| 0x1001_0001, 0x10), None);
    assert_eq!(crate::walk::find_extended(|_| u32::MAX, 0x10), None);
}

proptest! {
    #[test]
    fn configuration_writes_never_change_read_only_bits(
        writes in prop::collection::vec(
            (0u64..SIZE as u64 + 8, prop::collection::vec(any::<u8>(), 0..9)), 0..200),
    ) {
        let mut space = space();
        for (offset, bytes) in writes {
            space.write_bytes(offset, &bytes);
        }
        for (i, &byte) in space.bytes.iter().enumerate() {
            let live = space.layout.writable[i] | space.layout.clearable[i];
            prop_assert_eq!(byte & !live, space.layout.reset[i] & !live, "byte {:#x}", i);
        }
    }

    #[test]
    fn write_1_to_clear_register_clears_only_bits_written_as_1(set in any::<u32>(), written in any::<u32>()) {
        let mut space = space();
        space.set_dword(STATUS, set);
        space.write(STATUS, 4, written);
        let expected = (written & WRITABLE) | (set & CLEARABLE & !written) | (set & 0xff00_0000);
        prop_assert_eq!(space.dword(STATUS), expected);
    }

    #[test]
    fn bar_kind_and_size_are_read_back_by_bar_sizing(log2 in 4u32..32, kind in 0usize..3, prefetchable: bool, noise in any::<u32>()) {
        let kind = [BarKind::Memory32, BarKind::Memory64, BarKind::Io][kind];
        let prefetchable = prefetchable && kind != BarKind::Io;
        let bar = Bar { kind, prefetchable, size: 1 << log2 };
        let mut space = builder().bar(2, bar).build();
        space.write(0x18, 4, noise);
        space.write(0x18, 4, u32::MAX);
        space.write(0x1c, 4, u32::MAX);
        prop_assert_eq!(Bar::from_sizing(space.dword(0x18), space.dword(0x1c)), Some(bar));
    }

    #[test]
    fn foreign_saved_state_changes_no_vendor_or_device_id(noise in any::<[u8; 64]>()) {
        let state: ConfigSpaceState = (0..).zip(noise).collect();
        let mut space = space();
        prop_assert!(space.load(&state));
        prop_assert_eq!((space.dword(0x00), space.dword(0x08)), (0x10ca_8086, 0x0200_0001));
    }
}
