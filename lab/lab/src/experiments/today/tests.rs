//! Tests of today's paths and of the translation of a port's DMA.

use super::counts::{CountKind, InterruptOrigin, OperationCount, PathCounts, paths};
use super::paths::PATH;
use super::translate::{TranslationSetup, work};
use crate::experiments::tests::run_point;
use crate::named::Metrics;
use crate::value::ParameterValue;
use hypervisor::iommu::IommuPageSize;

fn counts(path: &PathCounts) -> Vec<&OperationCount> {
    path.operations().map(|(_, count)| count).collect()
}

fn row(path: &str, interrupts: &str, more: &[&str]) -> Metrics {
    let point = [format!("path={path}"), format!("interrupts={interrupts}")];
    let set: Vec<_> = point.iter().map(String::as_str).chain(more.iter().copied()).collect();
    run_point("today", &set).unwrap().metrics
}

fn metric(row: &Metrics, name: &str) -> f64 {
    *row.get(name).unwrap()
}

/// Checks that no count is exact without a reason, and that measured ones say that the guests ran without KVM.
#[test]
fn path_count_has_a_source_and_a_range_unless_derived() {
    for path in paths().unwrap() {
        assert!(!path.what.is_empty());
        for count in counts(path) {
            assert!(!count.source.is_empty(), "{}: {count:?}", path.name);
            let range = count.least.zip(count.most);
            assert_eq!(range.is_some(), count.kind != CountKind::Derived, "{}: {count:?}", path.name);
            let is_inside = |(least, most)| (least..=most).contains(&count.value);
            assert!(range.is_none_or(is_inside) && count.value > 0.0, "{}: {count:?}", path.name);
            assert!(
                count.kind != CountKind::Measured || count.source.contains("TCG"),
                "{}: {count:?}",
                path.name
            );
        }
    }
}

#[test]
fn path_counts_are_among_the_listed_constants() {
    let catalogue = crate::experiments::catalogue();
    for path in paths().unwrap() {
        let table = format!("today {}", path.name);
        let listed = catalogue.parameters.iter().filter(|constant| constant.table == table);
        let sources: Vec<_> = listed.map(|constant| constant.source.as_str()).collect();
        assert_eq!(sources.len(), counts(path).len(), "{table}");
        assert!(counts(path).iter().zip(sources).all(|(count, source)| source.ends_with(&count.source)));
    }
}

#[test]
fn axis_of_today_has_the_paths_of_the_data_file() {
    let names: Vec<_> =
        paths().unwrap().iter().map(|path| ParameterValue::Text(path.name.clone().into())).collect();
    assert_eq!(PATH.values.list(), names);
}

#[test]
fn paths_with_rings_in_a_card_need_no_host_thread() {
    for path in paths().unwrap() {
        let is_served = path.host_packets.is_none() && path.wakes.is_none();
        assert_eq!(is_served, path.signal == InterruptOrigin::Device, "{}", path.name);
        let host = metric(&row(&path.name, "posted", &[]), "host_cycles");
        assert_eq!(host < 10.0, is_served, "{}: {host}", path.name);
    }
}

/// Checks that interrupt remapping affects messages of cards only: KVM posts an irqfd's interrupt itself.
#[test]
fn remapped_interrupts_cost_more_only_for_cards() {
    for path in paths().unwrap() {
        let cycles = ["posted", "remapped", "emulated"]
            .map(|delivery| metric(&row(&path.name, delivery, &[]), "cycles"));
        let is_card = path.signal == InterruptOrigin::Device;
        assert_eq!(cycles[0] < cycles[1], is_card, "{}: {cycles:?}", path.name);
        assert!(cycles[0] <= cycles[1] && cycles[1] < cycles[2], "{}: {cycles:?}", path.name);
    }
}

/// Checks that the price of a host's packet is that of a small frame, to which the copy of the payload is added.
#[test]
fn host_pays_for_the_copy_of_each_payload() {
    let host = |copy: &str| metric(&row("avf-mapped", "posted", &[copy]), "host_cycles");
    let more = host("cost.rx_copy=400") - host("cost.rx_copy=300");
    assert!((144.0..145.0).contains(&more), "{more}");
}

/// Checks the prediction against `docs/performance.md`: frames of 1,500 bytes take 368 cycles in the machine's fast state to
/// 3,382 in its slow one. No price comes from these rows.
#[test]
fn host_cycles_of_mapped_ports_lie_within_the_measured_ones() {
    for path in ["vhost-user", "82576-mapped", "avf-mapped"] {
        let host = metric(&row(path, "posted", &[]), "host_cycles");
        assert!((368.0..3_382.0).contains(&host), "{path}: {host}");
    }
}

#[test]
fn mapped_doorbells_save_the_exits_of_a_sleeping_port() {
    for family in ["82576", "avf"] {
        let [asleep, mapped] =
            ["asleep", "mapped"].map(|wait| row(&format!("{family}-{wait}"), "posted", &[]));
        let saved = metric(&asleep, "hypervisor_cycles") - metric(&mapped, "hypervisor_cycles");
        assert!(saved > 0.5 * metric(&asleep, "hypervisor_cycles"), "{family}: {saved}");
    }
}

#[test]
fn siov_costs_as_much_as_a_vf_but_for_composed_accesses() {
    let [vf, siov] = ["vf-vfio", "siov"].map(|path| row(path, "posted", &[]));
    assert_eq!(metric(&vf, "guest_cycles"), metric(&siov, "guest_cycles"));
    let more = metric(&siov, "cycles") - metric(&vf, "cycles");
    assert!(more > 0.0 && more < 0.01 * metric(&vf, "cycles"), "{more}");
}

/// Checks an estimate and a derived constant: each has a range in the cost table, and a given price has none.
#[test]
fn given_price_narrows_the_range_of_a_prediction() {
    let spread = |more: &[&str]| {
        let row = row("vhost-net", "posted", more);
        let [least, value, most] = ["cycles_least", "cycles", "cycles_most"].map(|name| metric(&row, name));
        assert!(least < value && value < most, "{least} {value} {most}");
        most - least
    };
    for given in ["cost.host_packet=300", "cost.rx_copy=320"] {
        assert!(spread(&[given]) < spread(&[]), "{given}");
    }
}

fn setup(page: IommuPageSize, vfs: u16) -> TranslationSetup {
    TranslationSetup { page, is_nested: false, vfs, iotlb: (128, 4) }
}

#[test]
fn rings_within_large_pages_never_miss_the_iotlb() {
    let found = work(&setup(IommuPageSize::Large, 4)).unwrap();
    assert_eq!((found.misses, found.loads), (0.0, 0.0));
}

/// Checks 256 pages of buffers and 2 of descriptors for 512 packets; each page is used for consecutive packets.
#[test]
fn small_pages_miss_the_iotlb_once_for_two_packets() {
    let found = work(&setup(IommuPageSize::Small, 1)).unwrap();
    assert!((0.5..0.51).contains(&found.misses), "{found:?}");
    assert_eq!(found.loads, found.misses * 4.0);
}

#[test]
fn nested_walks_load_24_entries_for_small_pages() {
    let nested = TranslationSetup { is_nested: true, ..setup(IommuPageSize::Small, 1) };
    let found = work(&nested).unwrap();
    assert_eq!(found.loads, found.misses * 24.0);
}

#[test]
fn more_vfs_than_iotlb_entries_miss_in_large_pages_too() {
    let misses = [16, 64].map(|vfs| work(&setup(IommuPageSize::Large, vfs)).unwrap().misses);
    assert!(misses[0] < misses[1], "{misses:?}");
}

#[test]
fn slower_page_table_loads_lower_the_rate_of_small_pages_only() {
    let rate = |page: &str, load: &str| {
        let set = [page, "nested=true", "vfs=1", load];
        *run_point("translate", &set).unwrap().metrics.get("max_gbps").unwrap()
    };
    assert!(rate("page=4k", "cost.iotlb_load=400") < rate("page=4k", "cost.iotlb_load=40"));
    assert_eq!(rate("page=2m", "cost.iotlb_load=400"), rate("page=2m", "cost.iotlb_load=40"));
}

/// Checks that a rate's range covers the IOTLB's unknown associativity, from direct-mapped to fully associative.
#[test]
fn given_iotlb_ways_narrow_the_range_of_a_rate() {
    let spread = |more: &[&str]| {
        let known = ["page=2m", "nested=true", "vfs=64", "cost.iotlb_entries=128", "cost.iotlb_load=400"];
        let set = [&known, ["cost.iotlb_walks=4"].as_slice(), more].concat();
        let row = run_point("translate", &set).unwrap().metrics;
        metric(&row, "max_gbps_most") - metric(&row, "max_gbps_least")
    };
    assert_eq!(spread(&["cost.iotlb_ways=4"]), 0.0);
    assert!(spread(&[]) > 0.0);
}

#[test]
fn iotlb_with_more_ways_than_entries_is_refused() {
    let at = |ways| {
        let set = ["page=4k", "nested=true", "vfs=1", "cost.iotlb_entries=8", ways];
        run_point("translate", &set).map_err(|error| error.to_string())
    };
    let error = at("cost.iotlb_ways=9").unwrap_err();
    assert!(error.contains("cost.iotlb_ways is 9 and cost.iotlb_entries is 8"), "{error}");
    assert!(at("cost.iotlb_ways=8").is_ok());
}

#[test]
fn iotlb_has_no_more_ways_than_entries() {
    let found =
        |ways| work(&TranslationSetup { iotlb: (32, ways), ..setup(IommuPageSize::Small, 4) }).unwrap();
    assert_eq!(found(32), found(64));
}
