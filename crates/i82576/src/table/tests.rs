//! Properties of the whole table: distinct offsets, aliases within their registers, and readable reset values.

use super::{PfRegister, RegisterAccessRule, rows};
use crate::ids::PF_BAR0_SIZE;
use crate::numbers::{QueueIndex, VfIndex};
use crate::register as r;
extern crate std;
use std::collections::{HashMap, HashSet};

#[test]
fn no_two_82576_registers_share_an_offset() {
    let mut owner = HashMap::new();
    for row in rows() {
        for offset in row.offsets().chain(row.aliases()) {
            assert!(offset.is_multiple_of(4) && (offset as usize) < PF_BAR0_SIZE, "{} {offset:#x}", row.name);
            if let Some(other) = owner.insert(offset, row.name) {
                panic!("{} and {other} both claim {offset:#x}", row.name);
            }
        }
    }
}

#[test]
fn no_two_82576_registers_share_a_name() {
    let mut names = HashSet::new();
    assert!(rows().all(|row| !row.name.is_empty() && names.insert(row.name)));
}

#[test]
fn register_alias_has_at_most_as_many_elements_as_its_register() {
    for row in rows() {
        if let Some(alias) = row.alias {
            assert!(alias.count <= row.count, "{}", row.name);
        }
    }
}

/// Returns the table's row of the register with this name.
fn named(name: &str) -> &'static PfRegister {
    rows().find(|row| row.name == name).unwrap()
}

#[test]
fn first_four_queues_registers_have_aliases_at_old_offsets() {
    for (name, at) in [("RDBAL", 0x2800), ("RQDPC", 0x2830), ("TDBAL", 0x3800), ("TXCTL", 0x3814)] {
        let aliases: std::vec::Vec<u32> = named(name).aliases().collect();
        assert_eq!(aliases, [at, at + 0x100, at + 0x200, at + 0x300], "{name}");
    }
    for (queue, row) in QueueIndex::all().zip(named("TXCTL").offsets()) {
        assert_eq!(row, r::tx_block(queue) + r::tx::TXCTL);
    }
}

#[test]
fn interrupt_registers_have_aliases_at_older_cards_offsets() {
    for (name, at) in [("ICR", 0xc0), ("ICS", 0xc8), ("IMS", 0xd0), ("IMC", 0xd8), ("IAM", 0xe0)] {
        assert!(named(name).aliases().eq([at]), "{name}");
    }
}

#[test]
fn vf_multicast_counter_has_an_alias_for_every_vf() {
    let row = named("VFMPRC");
    for vf in VfIndex::all() {
        let block = r::vf_block(vf);
        assert_eq!(row.offsets().nth(vf.index()), Some(block + 0x3c));
        assert_eq!(row.aliases().nth(vf.index()), Some(block + 0x38), "{vf}");
    }
}

#[test]
fn counter_and_event_registers_are_zero_after_reset() {
    for row in rows().filter(|row| {
        matches!(row.access, RegisterAccessRule::Rc | RegisterAccessRule::W1c(_) | RegisterAccessRule::Wo)
    }) {
        assert!(row.resets().all(|(_, value)| value == 0), "{}", row.name);
    }
}

#[test]
fn only_the_pfs_first_queue_is_enabled_after_reset() {
    for name in ["RXDCTL", "TXDCTL"] {
        let running = named(name).resets().filter(|(_, value)| value & crate::bits::dctl::ENABLE != 0);
        assert_eq!(running.count(), 1, "{name}");
    }
}
