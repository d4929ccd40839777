//! Tests that a mechanism moves the rows that it explains, and no others.

use crate::experiments::tests::run_point;
use crate::named::Metrics;

fn metrics(experiment: &str, set: &[&str]) -> Metrics {
    run_point(experiment, set).unwrap().metrics
}

/// Returns `true` if two values of a setting give a point the same metrics.
fn is_unmoved(experiment: &str, point: &[&str], values: [&str; 2]) -> bool {
    let [one, other] = values.map(|value| metrics(experiment, &[point, &[value]].concat()));
    one == other
}

/// Checks that attribution moves the service domain's hypercalls from the hypervisor's account to the domain's, and no
/// other cycles. A bare machine has neither.
#[test]
fn attributed_accounts_have_the_same_sum_as_own_ones() {
    let points: [(&str, &[&str], bool); 4] = [
        ("fig06", &["vms=1", "msi_accel=false"], true),
        ("fig14", &["vms=20"], true),
        ("fig16", &["vms=10", "backend_threads=1"], true),
        ("fig11", &["guest=native", "opts=none"], false),
    ];
    for (experiment, set, is_moved) in points {
        let metrics = metrics(experiment, &[set, &["warm_up_ms=20"]].concat());
        let value = |name: &str| *metrics.get(name).unwrap();
        let own = [value("cpu_dom0_pct"), value("cpu_xen_pct")];
        let attributed = [value("cpu_dom0_attributed_pct"), value("cpu_xen_attributed_pct")];
        let difference = own.iter().sum::<f64>() - attributed.iter().sum::<f64>();
        assert!(difference.abs() < 1e-3, "{experiment} {set:?}: {own:?} {attributed:?}");
        assert_eq!(attributed[0] > own[0], is_moved, "{experiment} {set:?}: {own:?} {attributed:?}");
        assert!(is_moved || own == [0.0, 0.0], "{experiment} {set:?}: {own:?}");
    }
}

/// Checks the second descriptor of a datagram, which halves the datagrams of a client's ring. It shortens the bursts of
/// clients that share a ring with many others. The bursts of few clients are those of their sockets, and a stream's segments
/// are bounded by its window.
#[test]
fn second_descriptor_moves_only_datagrams_of_many_clients() {
    let rings = ["wire.ring=128", "wire.ring=256"];
    for (experiment, point, unmoved) in [
        ("fig06", ["vms=7", "msi_accel=true"].as_slice(), false),
        ("fig06", &["vms=1", "msi_accel=true"], true),
        ("fig06", &["vms=4", "msi_accel=true"], true),
        ("fig09", &["policy=20k"], true),
        ("direct-net", &["path=direct"], true),
    ] {
        assert_eq!(is_unmoved(experiment, point, rings), unmoved, "{experiment} {point:?}");
    }
}

/// Checks that a larger last-level cache moves no row of a guest whose pages fit the small one, and that the copy between
/// domains, which it makes cheaper, is not a part of guests with VFs.
#[test]
fn larger_cache_and_grant_copies_move_no_row_of_few_vfs() {
    let caches = ["cost.last_level_cache=8192", "cost.last_level_cache=65536"];
    for (experiment, point) in [
        ("fig06", ["vms=1", "msi_accel=true"].as_slice()),
        ("fig08", &["policy=20k"]),
        ("fig09", &["policy=20k"]),
    ] {
        assert!(is_unmoved(experiment, point, caches), "{experiment} {point:?}");
    }
    let copies = ["cost.grant_copy=400", "cost.grant_copy=4000"];
    assert!(is_unmoved("fig14", &["vms=20", "warm_up_ms=20"], copies));
    assert!(!is_unmoved("fig16", &["vms=10", "backend_threads=1"], copies));
}

/// Checks that the sockets of back end and guests matter to split drivers alone: guests with VFs fill and read their
/// buffers on their own socket, in either case.
#[test]
fn shared_cache_of_a_socket_moves_no_row_of_guests_with_vfs() {
    let machine =
        ["machine.threads_per_core=1", "machine.service_home=cores-0-3", "machine.guest_home=cores-4-7"];
    for (experiment, point) in [
        ("fig06", ["vms=2", "msi_accel=true"].as_slice()),
        ("fig08", &["policy=20k"]),
        ("fig09", &["policy=2k"]),
    ] {
        let [one, two] = [
            ["machine.sockets=1", "machine.cores_per_socket=8"],
            ["machine.sockets=2", "machine.cores_per_socket=4"],
        ]
        .map(|sockets| metrics(experiment, &[point, &machine, &sockets].concat()));
        assert_eq!(one, two, "{experiment} {point:?}");
    }
}

/// Ends of the ranges of walks in one dimension and in two.
const WALKS: [[&str; 2]; 2] =
    [["cost.tlb_walk=30", "cost.tlb_walk=60"], ["cost.tlb_walk_nested=90", "cost.tlb_walk_nested=200"]];

/// Checks that walks of page tables are a cost of guests alone: prices of a bare machine's work include its own walks.
/// Nested walks cost guests on hardware virtualization.
#[test]
fn tlb_walks_move_no_row_of_bare_machines() {
    let [one, nested] = WALKS;
    for (experiment, point, values, unmoved) in [
        ("fig08", ["policy=20k"].as_slice(), nested, false),
        ("fig14", &["vms=20", "warm_up_ms=20"], nested, false),
        ("fig15", &["vms=20", "warm_up_ms=20"], nested, true),
        ("fig15", &["vms=20", "warm_up_ms=20"], one, false),
        ("fig11", &["guest=native", "opts=none"], one, true),
        ("fig11", &["guest=native", "opts=none"], nested, true),
        ("direct-net", &["path=direct"], nested, true),
        ("direct-net", &["path=pv"], one, true),
        ("bitvisor-latency", &["pf=classical", "guest=idle"], nested, true),
    ] {
        assert_eq!(is_unmoved(experiment, point, values), unmoved, "{experiment} {point:?} {values:?}");
    }
}

/// Returns the change of a metric from one value of a setting to the other.
fn change(metric: &str, experiment: &str, point: &[&str], values: [&str; 2]) -> [f64; 2] {
    values.map(|value| *metrics(experiment, &[point, &[value]].concat()).get(metric).unwrap())
}

/// Checks that walks change neither the exits of a guest nor the back end's work in the service domain.
#[test]
fn nested_walks_leave_exits_and_service_domain_as_they_are() {
    let [_, nested] = WALKS;
    for (metric, experiment, point) in [
        ("total_mcycles_per_s", "fig07", ["vms=1", "eoi_accel=false"].as_slice()),
        ("apic_access_mcycles", "fig07", &["vms=1", "eoi_accel=false"]),
        ("cpu_dom0_attributed_pct", "fig16", &["vms=10", "backend_threads=1", "cost.smt_contention=1000"]),
    ] {
        let [least, most] = change(metric, experiment, point, nested);
        assert!((most / least - 1.0).abs() < 0.005, "{metric} {experiment} {point:?}: {least} {most}");
    }
}

/// Checks misses times walk: ten links bring 813 K datagrams a second, and each that a program reads is a system call.
/// Sockets drop the others in the first milliseconds of the adaptive policy.
#[test]
fn guests_pay_misses_times_walk_for_each_packet() {
    let point = ["vms=10", "warm_up_ms=20", "cost.smt_contention=1000"];
    let [gbps, _] = change("throughput_gbps", "fig15", &point, WALKS[1]);
    let (arriving, read) = (813e3, gbps * 1e9 / 8.0 / 1_472.0);
    assert!((0.7 * arriving..arriving).contains(&read), "{read}");
    let calls = ["cost.call_pages=6", "cost.call_pages=16"];
    for (experiment, values, cycles_per_s) in [
        // Four streamed pages, and 110 cycles more for each walk.
        ("fig14", WALKS[1], arriving * 4.0 * 110.0),
        // Kernel entries of a paravirtualized guest are not global.
        ("fig15", calls, read * 10.0 * 45.0),
        ("fig14", calls, 0.0),
    ] {
        let [less, more] = change("cpu_guest_pct", experiment, &point, values);
        let points = cycles_per_s / 2.8e9 * 100.0;
        assert!((more - less - points).abs() < 0.03 * points + 1e-9, "{experiment} {less} {more} {points}");
    }
}
