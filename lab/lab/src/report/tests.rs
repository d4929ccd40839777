//! Tests of reports on synthetic experiments.

use super::{ExperimentReport, ReportError, SeedRange};
use crate::runner::plan::ExperimentSelection;
use crate::runner::store::StoredResultRow;
use crate::runner::{self, ExperimentOptions};
use crate::synthetic::catalogue;

pub(crate) fn records(seed: u64, set: &[&str]) -> Vec<StoredResultRow> {
    let set = set.iter().map(|text| text.parse().unwrap()).collect();
    let options = ExperimentOptions { seed, set, unaffected: true, ..ExperimentOptions::default() };
    runner::run(&catalogue(), &ExperimentSelection::All, &options, &mut ()).unwrap().records
}

pub(super) fn report(records: Vec<StoredResultRow>) -> ExperimentReport {
    ExperimentReport::new(&catalogue(), records, None).unwrap()
}

fn refusal(records: Vec<StoredResultRow>, seed: Option<u64>) -> ReportError {
    ExperimentReport::new(&catalogue(), records, seed).unwrap_err()
}

#[test]
fn report_page_is_self_contained() {
    let page = report(records(1, &[])).to_html();
    let without_namespace = page.replace("http://www.w3.org/2000/svg", "");
    for outside in ["http://", "https://", "src=", "<script", "<link", "@import", "url(h"] {
        assert!(!without_namespace.contains(outside), "{outside}");
    }
    assert!(page.contains("a &lt;test&gt; &amp; nothing else"));
}

#[test]
fn report_page_has_every_figure_table_and_command() {
    let records = records(7, &[]);
    let version = records[0].version.clone();
    let page = report(records).to_html();
    assert_eq!(page.matches("<svg").count(), 4);
    assert_eq!(page.matches("<table>").count(), 3 + 3);
    for said in [
        "softiov lab run queue --seed 7<",
        "softiov lab run queue ladder sizes --seed 7 --out results\n",
        version.as_str(),
        "contention",
        "fitted",
        "+12.4 %",
        "+0.6 %",
    ] {
        assert!(page.contains(said), "{said}");
    }
    assert!(!page.contains("have not been run"));
}

#[test]
fn report_marks_sensitivity_of_another_version_as_outdated() {
    let records = records(1, &[]);
    let mut catalogue = catalogue();
    let page = |catalogue: &_| ExperimentReport::new(catalogue, records.clone(), None).unwrap().to_html();
    assert!(page(&catalogue).contains("<code>eoi_full</code>: \u{2212}12.3 %, +12.4 %"));
    assert!(page(&catalogue).contains("may be out of date"));
    catalogue.sensitivity.version = records[0].version.clone();
    assert!(!page(&catalogue).contains("may be out of date"));
}

#[test]
fn report_is_independent_of_record_order() {
    let in_order = records(1, &[]);
    let mut reversed = in_order.clone();
    reversed.reverse();
    let (one, other) = (report(in_order), report(reversed));
    assert_eq!(one.to_html(), other.to_html());
    assert_eq!((one.to_csv(), one.to_json()), (other.to_csv(), other.to_json()));
}

#[test]
fn report_has_a_section_for_each_set_of_changed_settings() {
    let changed = records(1, &["cpu=modern"]);
    let beyond = records(1, &["vms=9"]);
    let report = report([changed, beyond, records(1, &[])].concat());
    let sections: Vec<_> =
        report.sections.iter().map(|section| (section.id(), section.rows.len(), section.missing)).collect();
    let section = |id: &str, rows| (id.to_owned(), rows, 0);
    assert_eq!(
        sections,
        [
            section("queue", 16),
            section("queue-cpu-modern", 14),
            section("ladder", 5),
            section("ladder-cpu-modern", 5),
            section("sizes", 4),
            section("sizes-cpu-modern", 4),
        ]
    );
    assert_eq!(
        report.sections[1].commands(SeedRange { first: 1, count: 1 }),
        ["softiov lab run queue --seed 1 --set cpu=modern"]
    );
    assert_eq!(
        report.commands()[..2],
        ["", " --set cpu=modern"].map(|set| format!("softiov lab run queue ladder sizes --seed 1{set}"))
    );
    let last = report.sections[0].rows[15].params.to_string();
    assert_eq!(last, "vms=9 accel=true");
}

#[test]
fn experiment_points_without_a_row_are_counted_in_the_report() {
    let mut some = records(1, &[]);
    some.truncate(13);
    assert!(report(some).to_html().contains("that have not been run: 1."));
}

#[test]
fn csv_of_a_report_has_all_columns_and_empty_cells() {
    let csv = report(records(1, &[])).to_csv();
    let mut lines = csv.lines();
    let heading = "experiment,vms,accel,guest,opts,message_bytes,throughput_mbps,cpu_dom0_pct,cpu_xen_pct,cpu_guest_pct";
    assert_eq!(lines.next(), Some(heading));
    assert!(lines.next().unwrap().starts_with("queue,1,false,,,,956."), "{csv}");
    assert!(csv.lines().all(|line| line.matches(',').count() == 9));
}

#[test]
fn report_json_contains_rows_residuals_and_sensitivity() {
    let records = records(1, &[]);
    let json: serde_json::Value = serde_json::from_str(&report(records.clone()).to_json()).unwrap();
    assert_eq!(json["rows"][0], serde_json::to_value(&records[0].row).unwrap());
    assert_eq!(json["rows"].as_array().unwrap().len(), records.len());
    assert_eq!(json["residuals"][1]["model"], 561.0);
    assert_eq!(json["sensitivity"]["value"][0]["effect"][1]["constant"], "contention");
}

#[test]
fn report_of_no_rows_or_rows_of_several_versions_is_rejected() {
    assert!(matches!(refusal(Vec::new(), None), ReportError::Empty));
    assert_eq!(
        refusal(records(1, &[]), Some(3)).to_string(),
        "no rows with seed 3: run `softiov lab run all --seed 3 --out DIR` first"
    );
    let mut versions = records(1, &[]);
    versions[3].version = "0.0.9+0".to_owned();
    assert!(refusal(versions, None).to_string().contains("versions of the model: 0.0.9+0, "));
    let mut unknown = records(1, &[]);
    unknown[0].row.experiment = "fig99".to_owned();
    assert!(refusal(unknown, None).to_string().contains("experiment `fig99`"));
}

#[test]
fn report_has_a_command_for_a_point_beyond_the_sweep() {
    let only = |set: &[&str]| {
        let queue = records(1, set).into_iter().filter(|record| record.row.experiment == "queue");
        queue.collect::<Vec<_>>()
    };
    let set = ["vms=9", "accel=true", "cpu=modern"];
    let nine = "softiov lab run queue --seed 1 --set vms=9 --set accel=true --set cpu=modern";
    assert_eq!(report(only(&set)).commands(), [nine]);
    let both = report([only(&["cpu=modern"]), only(&set)].concat());
    let sweep = "softiov lab run queue --seed 1 --set cpu=modern";
    assert_eq!(both.commands(), [sweep, nine]);
    assert_eq!(both.sections[0].commands(SeedRange { first: 1, count: 1 }), [sweep, nine]);
    assert!(both.to_html().contains(nine));
}

#[test]
fn report_shows_means_and_intervals_of_several_seeds() {
    let seeds = [records(1, &[]), records(2, &[]), records(3, &[])];
    let first = |records: &[StoredResultRow]| *records[0].row.metrics.get("throughput_mbps").unwrap();
    let mean = seeds.iter().map(|records| first(records)).sum::<f64>() / 3.0;
    let all = seeds.concat();
    assert_eq!(ExperimentReport::new(&catalogue(), all.clone(), Some(2)).unwrap().seed, 2);
    let several = report(all);
    assert_eq!((several.sections[0].rows.len(), several.seeds), (14, 3));
    let row = &several.sections[0].rows[0];
    let found = *row.metrics.get("throughput_mbps").unwrap();
    assert!((found - mean).abs() < 0.01, "{found} {mean}");
    assert!(several.half(row, "throughput_mbps").is_some_and(|half| half < 0.5));
    let page = several.to_html();
    assert!(page.contains(" \u{b1}\u{a0}0."), "the page shows a confidence interval");
    assert!(page.contains("softiov lab run queue --seed 1 --seeds 3<"));
    assert!(!report(records(1, &[])).to_html().contains("\u{b1}"));
}
