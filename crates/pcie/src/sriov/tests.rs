//! Tests the SR-IOV specification's rules on a capability like the 82576's.

use super::{SrIovRegisters, SrIovSettings, VfRoutingIds};
use crate::Rid;
use crate::capability::sriov as field;
use crate::config::{Bar, ConfigSpace, ConfigSpaceBuilder, FunctionIds};
use std::string::ToString as _;

const AT: u16 = 0x100;
const BARS: &[(u8, Bar)] = &[(0, Bar::memory64(0x4000)), (3, Bar::memory64(0x4000))];

fn space() -> ConfigSpace {
    let identity =
        FunctionIds { vendor: 0x8086, device: 1, class: 0, revision: 1, subsystem_vendor: 0, subsystem: 0 };
    let capability = field::SrIovParameters {
        total_vfs: 8,
        function: 0,
        first_offset: 0x180,
        stride: 2,
        vf_device: 0x10ca,
        pages: 0x553,
        bars: BARS,
    };
    ConfigSpaceBuilder::new(identity, 0).extended(AT, capability.capability()).build()
}

/// Writes to a register of the capability as software does, and enforces the rules.
fn write(space: &mut ConfigSpace, offset: u16, size: u8, value: u32) {
    let sriov = SrIovRegisters::find(&self::space(), 0x80).unwrap();
    let before = sriov.settings(space);
    space.write(AT + offset, size, value);
    sriov.enforce(before, space);
}

fn state(space: &ConfigSpace) -> SrIovSettings {
    SrIovRegisters::find(&self::space(), 0x80).unwrap().state(space)
}

/// Tests routing ids with a stride of 1: VFs have consecutive devices and functions, and continue on the next bus.
#[test]
fn vfs_beyond_function_7_are_functions_of_the_next_devices() {
    let (close, pf) = (VfRoutingIds { first_offset: 16, stride: 1 }, Rid(0x0008));
    let rids = [0, 7, 8, 63].map(|n| close.rid(pf, n).unwrap().to_string());
    assert_eq!(rids, ["00:03.0", "00:03.7", "00:04.0", "00:0a.7"]);
    let far = VfRoutingIds { first_offset: 0x80, stride: 2 };
    assert_eq!(far.rid(pf, 63).unwrap().to_string(), "01:00.6");
    assert_eq!(far.rid(Rid(0xff80), 0), None, "bus 255 is the last");
}

#[test]
fn num_vfs_is_bounded_by_total_vfs() {
    let mut space = space();
    for (asked, kept) in [(7, 7), (9, 7), (0xffff, 7), (8, 8), (0, 0)] {
        write(&mut space, field::NUM_VFS, 2, asked);
        assert_eq!(u32::from(state(&space).num_vfs), kept, "after {asked:#x}");
    }
    write(&mut space, field::NUM_VFS + 1, 1, 1);
    assert_eq!(state(&space).num_vfs, 0, "a write to the upper byte requests 256");
}

#[test]
fn num_vfs_is_locked_while_vfs_are_enabled() {
    let mut space = space();
    write(&mut space, field::NUM_VFS, 2, 4);
    write(&mut space, field::CONTROL, 2, 0x0009);
    write(&mut space, field::NUM_VFS, 2, 2);
    assert_eq!(state(&space), SrIovSettings { enabled: true, memory: true, ari: false, num_vfs: 4 });
    write(&mut space, field::CONTROL, 2, 0);
    assert_eq!((state(&space).active(), state(&space).num_vfs), (0, 4));
    write(&mut space, field::NUM_VFS, 2, 2);
    assert_eq!(state(&space).num_vfs, 2);
}

#[test]
fn first_vf_offset_depends_on_the_ari_hierarchy_bit() {
    let mut space = space();
    assert_eq!(space.word(AT + field::FIRST_OFFSET), 0x180);
    write(&mut space, field::CONTROL, 2, u32::from(field::CONTROL_ARI));
    assert_eq!(space.word(AT + field::FIRST_OFFSET), 0x80);
    let found = SrIovRegisters::find(&self::space(), 0x80).unwrap().placement(&space);
    assert_eq!(found, VfRoutingIds { first_offset: 0x80, stride: 2 });
    write(&mut space, field::CONTROL, 2, 0x0011);
    write(&mut space, field::CONTROL, 2, 0x0001);
    assert_eq!((state(&space).ari, space.word(AT + field::FIRST_OFFSET)), (true, 0x80));
}

#[test]
fn vf_routing_id_is_the_pfs_plus_offset_plus_n_strides() {
    let flat = VfRoutingIds { first_offset: 0x180, stride: 2 };
    let ari = VfRoutingIds { first_offset: 0x80, stride: 2 };
    let pf = Rid(0x0100);
    let name = |rid: Option<Rid>| std::format!("{}", rid.unwrap());
    assert_eq!(name(flat.rid(pf, 0)), "02:10.0");
    assert_eq!(name(flat.rid(pf, 1)), "02:10.2");
    assert_eq!(name(flat.rid(Rid(0x0101), 0)), "02:10.1");
    assert_eq!(name(ari.rid(pf, 0)), "01:10.0");
    assert_eq!(name(ari.rid(pf, 7)), "01:11.6");
    assert_eq!(flat.rid(Rid(0xff00), 0), None, "bus 100h does not exist");
}

#[test]
fn vf_bar_is_sized_for_one_vf() {
    let mut space = space();
    for bar in [field::VF_BAR0, field::VF_BAR0 + 12] {
        write(&mut space, bar, 4, u32::MAX);
        write(&mut space, bar + 4, 4, u32::MAX);
        let sized = Bar::from_sizing(space.dword(AT + bar), space.dword(AT + bar + 4));
        assert_eq!(sized, Some(Bar::memory64(0x4000)));
    }
    write(&mut space, field::VF_BAR0 + 8, 4, u32::MAX);
    assert_eq!(space.dword(AT + field::VF_BAR0 + 8), 0);
}

#[test]
fn larger_sriov_page_size_aligns_vf_bars() {
    let mut space = space();
    write(&mut space, field::PAGE_SIZE, 4, 0x10);
    write(&mut space, field::VF_BAR0, 4, u32::MAX);
    assert_eq!(space.dword(AT + field::VF_BAR0), 0xffff_0004);
    write(&mut space, field::PAGE_SIZE, 4, 0x11);
    write(&mut space, field::PAGE_SIZE, 4, 0x08);
    assert_eq!(space.dword(AT + field::PAGE_SIZE), 0x10, "two sizes, and an unsupported one, are ignored");
}

/// Returns the capability's read-only registers: everything but control, NumVFs, page size and VF BARs.
fn fixed(space: &ConfigSpace) -> [u32; 5] {
    let at = |offset| space.dword(AT + offset);
    let [initial, device] = [field::INITIAL_VFS, field::STRIDE + 2].map(at);
    [at(0), at(field::CAPABILITIES), initial, device, at(field::SUPPORTED_PAGES)]
}

proptest::proptest! {
    /// Tests that writes of any width and alignment leave the SR-IOV capability within its rules.
    #[test]
    fn sriov_capability_keeps_its_rules_after_any_writes(
        writes in proptest::collection::vec(
            (0u16..0x40, proptest::sample::select(std::vec![1u8, 2, 4]), proptest::prelude::any::<u32>()), 0..60
        )
    ) {
        let mut space = space();
        for (offset, size, value) in writes {
            let (before, page) = (state(&space), space.dword(AT + field::PAGE_SIZE));
            // Enable bits are rare among all bits.
            write(&mut space, offset, size, if value & 1 == 0 { value & 0x19 } else { value });
            let after = state(&space);
            let (new_page, control) = (space.dword(AT + field::PAGE_SIZE), space.word(AT + field::CONTROL));
            assert!(after.num_vfs <= 8 && control & !0x19 == 0 && space.word(AT + field::STATUS) == 0);
            assert!(new_page.is_power_of_two() && new_page & 0x553 != 0, "{new_page:#x}");
            assert_eq!(space.word(AT + field::FIRST_OFFSET), if after.ari { 0x80 } else { 0x180 });
            if before.enabled {
                assert_eq!((after.num_vfs, after.ari, new_page), (before.num_vfs, before.ari, page));
            }
            let share = 0x4000.max(4096 * new_page) - 1;
            for bar in [field::VF_BAR0, field::VF_BAR0 + 12] {
                assert_eq!(space.dword(AT + bar) & share, 4, "a VF BAR is aligned and keeps its type bits");
            }
            assert_eq!(fixed(&space), fixed(&self::space()));
        }
    }
}
