//! Tests of the cost tables: completeness, sources, and setting values.

use std::collections::BTreeSet;

use super::*;

#[test]
fn cost_table_rows_are_in_enum_order_with_unique_names() {
    for table in CostTable::all() {
        for (at, row) in table.iter().enumerate() {
            assert_eq!(row.cost as usize, at, "{}", row.name);
        }
        let names: BTreeSet<_> = table.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), CostConstant::COUNT);
    }
}

#[test]
fn cost_constant_has_a_source_and_lies_in_its_range() {
    for table in CostTable::all() {
        for row in table.iter() {
            assert!(!row.source.is_empty(), "{}", row.name);
            assert!((row.range.0..=row.range.1).contains(&row.value), "{}", row.name);
            assert!(row.allowed().contains(&row.value), "{}", row.name);
        }
    }
}

#[test]
fn cost_constant_stated_by_the_paper_has_a_one_value_range() {
    let stated = CostTable::nehalem();
    for row in stated.iter().filter(|row| row.kind == CostEvidenceKind::Stated) {
        assert_eq!((row.value, row.value), row.range, "{}", row.name);
    }
}

#[test]
fn all_cost_tables_have_the_same_constant_names_and_units() {
    let (old, new) = (CostTable::nehalem(), CostTable::modern());
    for (old, new) in old.iter().zip(new.iter()) {
        assert_eq!((old.name, old.unit), (new.name, new.unit));
    }
}

#[test]
fn cost_constant_is_set_by_name() {
    let mut table = CostTable::nehalem();
    table.set("eoi_fast", 3_000).expect("the constant exists");
    assert_eq!(
        (table[CostConstant::EoiFast], table.row(CostConstant::EoiFast).kind),
        (3_000, CostEvidenceKind::Given)
    );
    table.fit("eoi_fast", 2_900).expect("the constant exists");
    assert_eq!(
        (table[CostConstant::EoiFast], table.row(CostConstant::EoiFast).kind),
        (2_900, CostEvidenceKind::Fitted)
    );
}

#[test]
fn measured_cost_constant_records_its_source() {
    let mut table = CostTable::modern();
    table.measure(CostConstant::CopyWarm, 45, "a stopwatch").expect("the value is in the constant's range");
    let CostRow { value, kind, source, .. } = *table.row(CostConstant::CopyWarm);
    assert_eq!((value, kind, source), (45, CostEvidenceKind::Measured, "a stopwatch"));
    assert!(table.measure(CostConstant::CopyWarm, u64::MAX, "a broken one").is_err());
}

#[test]
fn cost_with_unknown_name_or_value_out_of_range_is_rejected() {
    let mut table = CostTable::nehalem();
    assert_eq!(table.set("eoi_slow", 1), Err(SetCostError::Unknown));
    let refused = table.set("clock_hertz", 0);
    assert!(matches!(refused, Err(SetCostError::OutOfRange { unit: CostUnit::Hertz, least: 1_000_000, .. })));
    assert_eq!(table, CostTable::nehalem());
}

#[test]
fn smt_contention_factor_below_1000_permille_is_rejected() {
    let mut table = CostTable::nehalem();
    let refused = table.set("smt_contention", 999);
    assert!(matches!(refused, Err(SetCostError::OutOfRange { unit: CostUnit::Permille, least: 1_000, .. })));
    assert_eq!(table.set("smt_contention", 1_000), Ok(()));
    assert_eq!(table.set("timer_writes", 999), Ok(()));
}

#[test]
fn vm_exit_cost_below_the_vm_transition_cost_is_rejected() {
    for mut table in CostTable::all() {
        for cost in CostConstant::EXITS {
            assert!(
                table[cost] >= table[CostConstant::VmTransition],
                "{} {}",
                table.name(),
                table.row(cost).name
            );
        }
        let least = table[CostConstant::VmTransition];
        assert_eq!(table.set("eoi_fast", least - 1), Err(SetCostError::BelowTransition { least }));
        assert_eq!(table.set("eoi_fast", least), Ok(()));
        assert_eq!(table.set("injection", 1), Ok(()), "a constant that is no exit cost may be below");
    }
}

#[test]
fn cost_tables_are_found_by_name() {
    assert_eq!(CostTable::named("modern"), Some(CostTable::modern()));
    assert_eq!(CostTable::named("alpha"), None);
}

#[test]
fn cold_copy_of_a_full_frame_costs_1742_cycles() {
    assert_eq!(CostTable::nehalem().bytes(CostConstant::CopyCold, 1_514), 1_742);
}

#[test]
fn packet_in_the_stock_network_back_end_costs_9000_cycles() {
    let table = CostTable::nehalem();
    let fixed = [
        CostConstant::Backend,
        CostConstant::GrantCopy,
        CostConstant::Bridge,
        CostConstant::Softirq,
        CostConstant::RxDriver,
        CostConstant::RxSkb,
    ];
    let sum: u64 = fixed.iter().map(|cost| table[*cost]).sum();
    let packet = sum + table.bytes(CostConstant::CopyCold, 1_514);
    assert!((8_900..=9_100).contains(&packet), "{packet}");
}

#[test]
fn cost_constant_read_in_a_copy_counts_as_read_in_the_original() {
    let mut table = CostTable::nehalem();
    let copy = table.clone();
    table.set("eoi_fast", 3_000).unwrap();
    assert!(table.iter().all(|row| table.was_looked_up(row.name) == Some(false)));
    let _ = copy[CostConstant::EoiFast];
    let looked_up = table.iter().filter(|row| table.was_looked_up(row.name) == Some(true));
    assert!(looked_up.map(|row| row.cost).eq([CostConstant::EoiFast]));
    assert_eq!(table.was_looked_up("alpha"), None);
    assert_eq!(CostTable::nehalem().was_looked_up("eoi_fast"), Some(false));
}
