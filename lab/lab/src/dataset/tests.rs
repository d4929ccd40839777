//! Tests of datasets: columns, defaults, commands that repeat rows, and names that mean one thing.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use super::ResultDataset;
use crate::experiments::catalogue;
use crate::runner::plan::ExperimentSelection;
use crate::runner::{ExperimentOptions, run};
use crate::synthetic;

fn dataset(sweep: &[&str], seeds: u64, jobs: usize) -> ResultDataset {
    let catalogue = synthetic::catalogue();
    let mut records = Vec::new();
    for seed in 1..=seeds {
        let options = ExperimentOptions {
            seed,
            jobs: NonZeroUsize::new(jobs).unwrap(),
            sweep: sweep.iter().map(|text| text.parse().unwrap()).collect(),
            ..ExperimentOptions::default()
        };
        let selection = ExperimentSelection::Names(vec!["queue".to_owned()]);
        records.extend(run(&catalogue, &selection, &options, &mut ()).unwrap().records);
    }
    ResultDataset::new(&catalogue, &records, false)
}

#[test]
fn dataset_has_a_record_for_each_combination_and_seed() {
    let dataset = dataset(&["vms=2..4", "accel=true", "contention=1,2.5"], 2, 1);
    let lines: Vec<_> = dataset.rows.lines().collect();
    assert_eq!(lines.len(), 1 + 3 * 2 * 2);
    assert!(lines[0].starts_with("experiment,vms,accel,contention,throughput_mbps,"), "{}", lines[0]);
    assert!(lines[0].ends_with(",seed,version,trace,command"), "{}", lines[0]);
    assert!(lines[2].starts_with("queue,2,true,2.5,"), "{}", lines[2]);
    let command = "softiov lab run queue --set vms=4 --set accel=true --set contention=2.5 --seed 2";
    assert!(lines[12].ends_with(command), "{}", lines[12]);
}

#[test]
fn dataset_row_of_a_default_setting_has_the_default() {
    let catalogue = synthetic::catalogue();
    let contention = catalogue.settings.iter().find(|setting| setting.name == "contention").unwrap();
    let sweep = format!("contention={},3", contention.default);
    let dataset = dataset(&[&sweep, "vms=1", "accel=true"], 1, 1);
    let first = dataset.rows.lines().nth(1).unwrap();
    assert!(first.starts_with(&format!("queue,1,true,{},", contention.default)), "{first}");
}

#[test]
fn dataset_is_byte_equal_for_any_number_of_jobs() {
    assert_eq!(
        dataset(&["vms=1..5", "accel=true,false"], 2, 1),
        dataset(&["vms=1..5", "accel=true,false"], 2, 3)
    );
}

#[test]
fn codebook_has_the_unit_of_each_metric() {
    let dataset = dataset(&["vms=1"], 1, 1);
    assert!(
        dataset.columns.contains("throughput_mbps,metric,Mb/s,payload received\n"),
        "{}",
        dataset.columns
    );
    assert_eq!(dataset.columns.lines().count() - 1, dataset.rows.lines().next().unwrap().split(',').count());
}

#[test]
fn column_name_of_an_axis_or_setting_is_no_metric() {
    let catalogue = catalogue();
    let axes = catalogue.experiments.iter().flat_map(|experiment| experiment.axes).map(|axis| axis.name);
    let names: BTreeSet<_> =
        axes.chain(catalogue.settings.iter().map(|setting| setting.name.as_str())).collect();
    let metrics = catalogue.experiments.iter().flat_map(|experiment| experiment.metrics);
    let both: Vec<_> = metrics.map(|metric| metric.name).filter(|name| names.contains(name)).collect();
    assert!(both.is_empty(), "{both:?}");
}

#[test]
fn metric_of_several_experiments_has_one_unit() {
    let catalogue = catalogue();
    let metrics = catalogue.experiments.iter().flat_map(|experiment| experiment.metrics);
    let pairs: BTreeSet<_> = metrics.map(|metric| (metric.name, metric.unit)).collect();
    let names: BTreeSet<_> = pairs.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), pairs.len(), "{pairs:?}");
}

/// Checks that a failed write, as on a full disk, leaves the files of the run before.
#[test]
fn failed_write_of_a_dataset_keeps_the_earlier_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.csv");
    let (before, after) = (dataset(&["vms=2"], 1, 1), dataset(&["vms=3"], 1, 1));
    before.write(&file).unwrap();
    let blocked = folder.path().join(format!("rows-constants.csv.partial-{}", std::process::id()));
    std::fs::create_dir_all(blocked.join("in the way")).unwrap();
    assert!(after.write(&file).is_err());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before.rows);
    std::fs::remove_dir_all(blocked).unwrap();
    after.write(&file).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), after.rows);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3, "no part is left");
    let link = folder.path().join("link.csv");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    before.write(&link).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before.rows, "a link stays, as /dev/stdout is one");
    assert!(link.is_symlink());
}

/// Checks that a folder that takes no further file, here since names would be too long, does not cost the rows.
#[test]
fn dataset_is_written_in_place_if_no_part_can_be() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("{}.csv", "r".repeat(255 - "-constants.csv".len())));
    let [before, after] = [2, 3].map(|vms| dataset(&[&format!("vms={vms}")], 1, 1));
    for dataset in [before, after] {
        let [rows, columns, constants] = dataset.write(&file).unwrap();
        let read = |path| std::fs::read_to_string(path).unwrap();
        assert_eq!(
            (read(rows), read(columns), read(constants)),
            (dataset.rows, dataset.columns, dataset.constants)
        );
    }
}
