//! Tests the harness of `cargo xtask bench` on the program as it is built for tests: the harness runs, and its report
//! is complete. No number is judged. Peers (compared software switches) are skipped, since their packages would have to
//! be downloaded.

use ::bench::options::BenchmarkOptions;
use ::bench::report::rows::{ArrivalOrder, BenchmarkRow};
use clap::Parser;
use serde_json::Value;
use tempfile::TempDir;

#[test]
fn bench_with_short_slices_prints_a_complete_report() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        host::test_support::skipped("the benchmark's harness", "the benchmark needs two processors");
        return;
    }
    let folder = TempDir::new().unwrap();
    let out = folder.path().display().to_string();
    let words = ["bench", "--no-peers", "--rounds=1", "--slice-ms=20", "--latency-ms=50", "--silences=2"];
    let program = ["--sizes=64,1500", "--softiov", env!("CARGO_BIN_EXE_softiov"), "--out", &out];
    let options = BenchmarkOptions::parse_from(words.iter().chain(&program));
    let report = ::bench::run(&options).unwrap();

    let text = std::fs::read_to_string(folder.path().join("summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&text).unwrap();
    let rows = summary["rows"].as_array().unwrap();
    assert_eq!(rows.len(), report.rows.len());
    for row in rows {
        for key in
            ["bench", "peer", "size", "mode", "mpps", "gbps", "cycles_per_packet", "ratio_to_best_peer"]
        {
            assert!(row.get(key).is_some(), "no {key} in {row}");
        }
    }
    let of = |mode: &'static str| rows.iter().filter(move |row| row["mode"] == mode);
    let vfs = ["softiov", "softiov avf", "softiov avf flexible"];
    for (mode, cards) in [("posted", &vfs[..]), ("mapped", &vfs[..]), ("kicked", &["softiov virtio"][..])] {
        let of_bench = |name: &'static str| of(mode).filter(move |row| row["bench"] == name);
        for card in cards {
            let rows = of_bench("VF to VF").filter(|row| row["peer"] == *card);
            let sizes: Vec<_> = rows.map(|row| row["size"].as_u64().unwrap()).collect();
            assert_eq!(sizes, [64, 1500], "{card}, {mode}");
        }
        // On a busy machine no process may run in such a short slice, and a row then has no numbers.
        assert!(of_bench("VF to VF").any(|row| row["mpps"].as_f64() > Some(0.0)), "{mode}: {text}");
        if mode == "kicked" {
            // Everything but the rates is measured with the first card.
            continue;
        }
        assert_eq!(of_bench("one way").count(), 6);
        assert!(of_bench("one way").any(|row| row["p999_ns"].is_number()), "{mode}: {text}");
        assert_eq!(of(mode).filter(|row| row["idle_share"].is_number()).count(), 1);
    }
    assert!(of("raw").count() >= 5);
    for chart in ["forwarding.svg", "latency.svg"] {
        assert!(std::fs::read_to_string(folder.path().join(chart)).unwrap().starts_with("<svg"), "{chart}");
    }
}

#[test]
fn bench_compare_has_rows_of_each_family_and_the_model() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        host::test_support::skipped("the comparison of families", "the benchmark needs two processors");
        return;
    }
    let folder = TempDir::new().unwrap();
    let out = folder.path().display().to_string();
    let words = ["bench", "--compare", "--ports=2,9", "--rounds=1", "--slice-ms=20", "--latency-ms=50"];
    let axes = ["--mode=posted", "--messages=4000", "--model-ms=20", "--workers=1,2", "--dispatcher=spread"];
    let program = ["--card=82576,virtio-packed", "--softiov", env!("CARGO_BIN_EXE_softiov"), "--out", &out];
    let words = words.iter().chain(&axes).chain(&program);
    let report = ::bench::run(&BenchmarkOptions::parse_from(words)).unwrap();
    let of = |bench: &'static str| report.rows.iter().filter(move |row| row.bench == bench);
    let spread = "softiov virtio packed, workers = 2; dispatcher = \"spread\"";
    for (bench, peers) in [
        ("messages, 2 ports", &["softiov", "softiov virtio packed", spread][..]),
        ("messages, 9 ports", &["softiov virtio packed", spread]),
    ] {
        let found: Vec<_> = of(bench).map(|row| (row.size, row.peer.as_str())).collect();
        let expected: Vec<_> = peers.iter().map(|&peer| (4000, peer)).collect();
        assert_eq!(found, expected, "{bench}");
    }
    for peer in ["softiov", "softiov virtio packed", spread] {
        let orders: Vec<_> = of("one way").filter(|row| row.peer == peer).map(|row| row.order).collect();
        assert_eq!(orders, [Some(ArrivalOrder { lost: 0, reordered: 0 })], "{peer}");
    }
    // The 82576 runs on one thread and has 8 VFs; the other cards are measured without it.
    let [workers, vfs] = &report.skipped[..] else { panic!("{:?}", report.skipped) };
    assert!(
        workers.starts_with("softiov, workers = 2; dispatcher = \"spread\" (posted): pf0.workers:"),
        "{workers}"
    );
    assert!(vfs.starts_with("softiov (posted): pf0.vfs: 9 is out of range (1-8"), "{vfs}");
    assert_eq!(of("messages, model of two guests").filter(|row| row.gbps > Some(0.0)).count(), 2);
    // The stock back end, the live workers, and the paper's.
    let modelled = of("workers, model of four guests").filter(|row| row.gbps > Some(0.0));
    let modelled: Vec<_> = modelled.map(|row| row.variation.as_str()).collect();
    assert_eq!(
        modelled,
        ["", "workers = 2; dispatcher = \"spread\"", "workers = 4; dispatcher = \"balanced\""]
    );
    let cards = ["compare.svg", "compare-cycles.svg", "compare-model.svg", "compare-stated.svg"];
    for chart in cards.into_iter().chain(["compare-workers.svg", "latency.svg"]) {
        assert!(std::fs::read_to_string(folder.path().join(chart)).unwrap().starts_with("<svg"), "{chart}");
    }
    // Papers' rates come from the program's lab: figures 12, 14 and 16, and four tasklets beside one.
    for (chart, stated) in [
        ("compare-stated.svg", &["2.8 Gb/s", "9.57 Gb/s", "3.6 Gb/s"][..]),
        ("compare-workers.svg", &["1.61 ratio"]),
    ] {
        let svg = std::fs::read_to_string(folder.path().join(chart)).unwrap();
        for value in stated {
            assert!(svg.contains(&format!("{value} (stated by the paper")), "{value}: {svg}");
        }
    }
}

#[test]
fn bench_compare_counts_interrupts_of_guests_that_sleep() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        host::test_support::skipped(
            "guests that sleep until an interrupt",
            "the benchmark needs two processors",
        );
        return;
    }
    let folder = TempDir::new().unwrap();
    let out = folder.path().display().to_string();
    // The model has no messages of this size.
    let words = ["bench", "--compare", "--events", "--ports=2", "--messages=1400", "--latency-ms=0"];
    let short = ["--rounds=1", "--slice-ms=50", "--mode=posted", "--card=82576,avf,virtio,virtio-packed"];
    let program = ["--softiov", env!("CARGO_BIN_EXE_softiov"), "--out", &out];
    let words = words.iter().chain(&short).chain(&program);
    let report = ::bench::run(&BenchmarkOptions::parse_from(words)).unwrap();
    // On a busy machine a guest may move no frame in such a short time, and its row then has no notifications.
    let asleep = |row: &&BenchmarkRow| row.peer.ends_with("events");
    let interrupts = |row: &BenchmarkRow| row.notifications.map_or(0.0, |rates| rates.interrupts);
    for family in ["softiov,", "softiov avf,", "softiov virtio"] {
        let mut own = report.rows.iter().filter(asleep).filter(|row| row.peer.starts_with(family));
        assert!(own.any(|row| interrupts(row) > 0.0), "{family}: {report}");
    }
    let mut polled = report.rows.iter().filter(|row| !asleep(row));
    assert!(polled.all(|row| interrupts(row) == 0.0), "{report}");
}
