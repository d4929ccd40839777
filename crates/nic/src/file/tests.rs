//! Tests the rules of the register table, for every element of every row and any value: reads, writes and resets.

extern crate std;

use super::{RegisterEntry, RegisterFile, RegisterMap, ResolvedVfRegister};
use i82576::register::{GORCH, GORCL, GPRC};
use i82576::table::{self, PfRegister, RegisterAccessRule};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};

/// Map from offsets to registers, which is the same for every register file.
static MAP: LazyLock<RegisterMap> = LazyLock::new(RegisterMap::new);

const ALL: u32 = u32::MAX;

/// Returns each register's row, its offset (canonical or alias), its canonical offset and its reset value.
fn places() -> impl Iterator<Item = (&'static PfRegister, u32, u32, u32)> {
    table::rows().flat_map(|row| {
        let own = row.resets().map(move |(home, value)| (row, home, home, value));
        own.chain(row.resets().zip(row.aliases()).map(move |((home, value), at)| (row, at, home, value)))
    })
}

/// Returns a register file in which every register has the value `value`.
fn filled(value: u32) -> RegisterFile {
    let mut file = RegisterFile::new();
    table::rows().flat_map(PfRegister::offsets).for_each(|offset| file.set(offset, value));
    file
}

fn read(file: &mut RegisterFile, at: u32) -> u32 {
    file.read(MAP.find(at).unwrap().slot())
}

fn write(file: &mut RegisterFile, at: u32, value: u32) {
    file.write(MAP.find(at).unwrap().slot(), value);
}

#[test]
fn alias_offset_of_a_register_finds_its_canonical_offset() {
    for (row, at, home, _) in places() {
        let PfRegister { access, effect, forms, .. } = *row;
        assert_eq!(MAP.find(at), Some(RegisterEntry { offset: home, access, effect, forms }), "{}", row.name);
    }
}

#[test]
fn reset_restores_all_registers_except_sticky_ones() {
    for power_on in [false, true] {
        let mut file = filled(0xa5a5_5a5a);
        file.reset(power_on);
        for (row, _, home, value) in places() {
            let kept = row.sticky && !power_on;
            assert_eq!(file.get(home), if kept { 0xa5a5_5a5a } else { value }, "{} {home:#x}", row.name);
        }
    }
}

#[test]
fn reset_of_a_register_range_keeps_all_other_registers() {
    let mut file = filled(ALL);
    file.reset_range(0xc040..0xc080);
    for (row, _, home, value) in places() {
        let within = (0xc040..0xc080).contains(&home);
        assert_eq!(file.get(home), if within { value } else { ALL }, "{} {home:#x}", row.name);
    }
}

#[test]
fn reset_of_a_register_range_copies_its_reset_values() {
    let mut file = RegisterFile::new();
    let mut kept = *file.resets;
    kept[0xc040 / 4..0xc080 / 4].fill(7);
    file.resets = Arc::new(kept);
    file.reset_range(0xc040..0xc080);
    assert!((0xc040..0xc080).step_by(4).all(|offset| file.get(offset) == 7));
}

#[test]
fn read_clears_a_statistics_counter() {
    for (row, at, ..) in places().filter(|(row, ..)| row.access == RegisterAccessRule::Rc) {
        let mut file = filled(0x1234_5678);
        write(&mut file, at, ALL);
        assert_eq!((read(&mut file, at), read(&mut file, at)), (0x1234_5678, 0), "{}", row.name);
    }
}

#[test]
fn port_counters_saturate_and_vf_counters_wrap() {
    let mut file = RegisterFile::new();
    file.set(GPRC, u32::MAX - 1);
    file.count(GPRC, 3);
    assert_eq!(file.get(GPRC), u32::MAX);
    file.count_around(GPRC, 3);
    assert_eq!(file.get(GPRC), 2);
}

#[test]
fn two_register_counter_carries_to_high_half_and_saturates() {
    let mut file = RegisterFile::new();
    file.set(GORCL, u32::MAX);
    file.count_wide(GORCL, 2);
    assert_eq!((file.get(GORCL), file.get(GORCH)), (1, 1));
    file.set(GORCL, u32::MAX);
    file.set(GORCH, u32::MAX);
    file.count_wide(GORCL, 2);
    assert_eq!((file.get(GORCL), file.get(GORCH)), (u32::MAX, u32::MAX));
}

proptest! {
    #[test]
    fn register_access_follows_the_access_type_of_its_table_row(before in any::<u32>(), written in any::<u32>()) {
        let mut file = filled(before);
        for (row, at, home, _) in places() {
            file.set(home, before);
            write(&mut file, at, written);
            let expected = match row.access {
                RegisterAccessRule::Rw(bits) => before & !bits | written & bits,
                RegisterAccessRule::W1c(bits) => before & !(written & bits),
                RegisterAccessRule::W1s(bits) => before | written & bits,
                RegisterAccessRule::Ro | RegisterAccessRule::Rc | RegisterAccessRule::Wo => before,
            };
            prop_assert_eq!(file.get(home), expected, "{} {:#x}", row.name, at);
            let shown = if row.access == RegisterAccessRule::Wo { 0 } else { expected };
            prop_assert_eq!(read(&mut file, at), shown);
            prop_assert_eq!(file.get(home), if row.access == RegisterAccessRule::Rc { 0 } else { expected });
            file.set(home, before);
        }
        prop_assert!(table::rows().flat_map(PfRegister::offsets).all(|offset| file.get(offset) == before));
    }

    #[test]
    fn vf_access_to_a_shared_register_changes_only_the_vfs_bits(
        before in any::<u32>(), written in any::<u32>(), shift in 0u32..23,
    ) {
        let (mask, mut file) = (0b111, filled(before));
        for (row, _, home, _) in places() {
            let slot = ResolvedVfRegister { offset: home, shift, mask, access: row.access };
            file.set(home, before);
            file.write(slot, written);
            prop_assert_eq!(file.get(home) & !(mask << shift), before & !(mask << shift), "{}", row.name);
            file.set(home, before);
            file.read(slot);
            prop_assert_eq!(file.get(home) & !(mask << shift), before & !(mask << shift), "{}", row.name);
            file.set(home, before);
        }
    }
}
