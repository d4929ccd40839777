//! The harness of `cargo xtask bench` on the program as it is built for tests: it runs, and its report is whole. No
//! number is judged. Left out: the peers, whose packages would have to be fetched.

use ::bench::options::Options;
use clap::Parser;
use serde_json::Value;
use tempfile::TempDir;

#[test]
fn tiny_slices_make_a_whole_report() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        host::test_support::skipped("the benchmark's harness", "it takes two processors");
        return;
    }
    let folder = TempDir::new().unwrap();
    let out = folder.path().display().to_string();
    let words = ["bench", "--no-peers", "--rounds=1", "--slice-ms=20", "--latency-ms=50", "--sizes=64,1500"];
    let program = ["--softiov", env!("CARGO_BIN_EXE_softiov"), "--out", &out];
    let options = Options::parse_from(words.iter().chain(&program));
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
    assert_eq!(of("posted").filter(|row| row["bench"] == "VF to VF" && row["mpps"].is_number()).count(), 2);
    assert_eq!(of("posted").filter(|row| row.get("p999_ns").is_some()).count(), 6);
    assert!(of("raw").count() >= 5);
    for chart in ["forwarding.svg", "latency.svg"] {
        assert!(std::fs::read_to_string(folder.path().join(chart)).unwrap().starts_with("<svg"), "{chart}");
    }
}

#[test]
fn a_mode_that_is_not_there_is_refused_by_name() {
    let program = ["bench", "--no-peers", "--mode=mapped", "--softiov", env!("CARGO_BIN_EXE_softiov")];
    let error = ::bench::run(&Options::parse_from(program)).unwrap_err();
    assert!(error.to_string().contains("--mode posted"), "{error}");
}
