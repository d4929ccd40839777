//! The machine as a whole, and what it was calibrated on.

use super::{Attack, Cdna, Direction, Drive, Found, Plan, attack};
use hypervisor::cost::CostTable;
use sim::Span;

fn found(drive: Drive, direction: Direction, guests: u8) -> Found {
    let plan = Plan { table: CostTable::opteron(), drive, direction, guests, seed: 1 };
    Cdna::new(&plan).measure(Span::from_millis(20), Span::from_millis(60)).unwrap()
}

#[test]
fn the_two_values_that_it_was_calibrated_on_come_out() {
    let xen = found(Drive::Xen, Direction::Transmit, 1);
    assert!((xen.throughput_mbps / 1_602.0 - 1.0).abs() < 0.03, "{xen:?}");
    let cdna = found(Drive::Cdna, Direction::Transmit, 1);
    assert!((cdna.hypervisor_pct / 10.2 - 1.0).abs() < 0.05, "{cdna:?}");
}

#[test]
fn contexts_fill_both_wires_and_need_no_driver_domain() {
    for direction in [Direction::Transmit, Direction::Receive] {
        let [safe, bare] = [Drive::Cdna, Drive::Unprotected].map(|drive| found(drive, direction, 2));
        for it in [safe, bare] {
            assert!((1_850.0..1_885.0).contains(&it.throughput_mbps), "{it:?}");
            assert!(it.driver_pct < 1e-9, "{it:?}");
        }
        assert!(bare.hypervisor_pct < safe.hypervisor_pct);
        let parts = safe.hypervisor_pct + safe.driver_pct + safe.guest_pct + safe.idle_pct;
        assert!((99.0..101.0).contains(&parts), "{safe:?}");
    }
}

#[test]
fn sixteen_guests_keep_the_wires_full_over_contexts_and_not_over_a_driver_domain() {
    let of = |drive| found(drive, Direction::Transmit, 16).throughput_mbps;
    assert!(of(Drive::Cdna) > 1_870.0 && of(Drive::Xen) < 1_700.0, "{} {}", of(Drive::Cdna), of(Drive::Xen));
}

#[test]
fn every_attack_is_contained_and_disturbs_nobody() {
    for what in [
        Attack::ForgedProducer,
        Attack::DuplicateSequence,
        Attack::Wrap,
        Attack::FreeWhileDma,
        Attack::CrossContextMailbox,
        Attack::InterruptRingFull,
        Attack::TeardownRace,
    ] {
        assert_eq!(attack(what), (true, 0), "{what:?}");
    }
}
