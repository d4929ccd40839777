//! Tests `softiov lab` on a made-up experiment.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use lab::catalogue::{ExperimentCatalogue, SettingDefinition};
use lab::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, Metric, PointOutcome, PointRunError, PointRunInputs,
};
use lab::named::NamedValues;
use lab::runner::RunResult;
use lab::value::ParameterValue;

use super::{LabSubcommand, list, run, run_with};

#[derive(Debug, Parser)]
struct LabCli {
    #[command(subcommand)]
    command: LabSubcommand,
}

fn catalogue() -> ExperimentCatalogue {
    const DOUBLE: Experiment = Experiment {
        name: "double",
        title: "Twice as much",
        shows: "Nothing of note.",
        axes: &[ExperimentAxis {
            name: "vms",
            what: "virtual machines",
            values: ExperimentAxisValues::Range { first: 1, last: 3, step: 1 },
            labels: &[],
        }],
        points: AxisCombinations::All,
        metrics: &[Metric { name: "mbps", unit: "Mb/s", what: "throughput" }],
        figures: &[FigureDefinition {
            title: "Twice",
            kind: FigureKind::Lines,
            x: &["vms"],
            x_title: "VMs",
            split: None,
            left: FigureScale { title: "Throughput", unit: "Mb/s", series: &[("mbps", "throughput")] },
            right: None,
        }],
        run: double,
    };
    let setting = SettingDefinition {
        name: "factor".into(),
        default: ParameterValue::Int(2),
        unit: "times",
        what: "how much".into(),
        choices: &[],
    };
    ExperimentCatalogue { experiments: &[DOUBLE], settings: vec![setting], ..ExperimentCatalogue::default() }
}

fn double(point: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let mbps = point.axes.int("vms")? * context.settings.int("factor")?;
    if mbps < 0 {
        return Err(PointRunError::Invariant("frames came out of nowhere".into()));
    }
    Ok(PointOutcome {
        metrics: NamedValues::new().with("mbps", mbps as f64),
        trace: context.seed,
        simulated_ps: 1_000_000_000_000,
        events: 1_000_000,
        cycles: None,
    })
}

fn softiov_lab(arguments: &str) -> anyhow::Result<ExitCode> {
    let cli = LabCli::try_parse_from(format!("softiov {arguments}").split(' '))?;
    run_with(&catalogue(), &cli.command)
}

#[test]
fn stored_experiment_rows_become_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().display();
    softiov_lab(&format!("run all --out {rows} --shard 1/2")).unwrap();
    softiov_lab(&format!("run double --out {rows} --shard 2/2 --jobs 1")).unwrap();
    softiov_lab(&format!("report --in {rows} --out {rows}/page.html")).unwrap();
    let kept = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    softiov_lab(&format!("report --out {rows}/again.html --jobs 2")).unwrap();
    assert_eq!(kept, std::fs::read_to_string(folder.path().join("again.html")).unwrap());
    assert!(folder.path().join("page.csv").exists() && folder.path().join("page.json").exists());
}

#[test]
fn swept_rows_of_all_seeds_become_csv_with_a_codebook() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("rows.csv");
    softiov_lab(&format!("run double --sweep vms=1..2 --sweep factor=2,5 --seeds 2 --csv {}", csv.display()))
        .unwrap();
    let rows = std::fs::read_to_string(&csv).unwrap();
    let values: Vec<_> =
        rows.lines().map(|line| line.split(',').take(5).collect::<Vec<_>>().join(" ")).collect();
    let first = ["double 1 2 2 1", "double 1 5 5 1", "double 2 2 4 1", "double 2 5 10 1"];
    assert_eq!(values[0], "experiment vms factor mbps seed");
    assert_eq!(values[1..5], first);
    assert!(rows.contains(",softiov lab run double --set vms=2 --set factor=5 --seed 2\n"), "{rows}");
    let columns = std::fs::read_to_string(folder.path().join("rows-columns.csv")).unwrap();
    assert!(columns.contains("factor,setting,times,how much\n"), "{columns}");
    assert!(folder.path().join("rows-constants.csv").exists());
}

#[test]
fn samples_of_ranges_become_rows_that_vary_together() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("rows.csv");
    let path = csv.display();
    softiov_lab(&format!("run double --set vms=2 --samples 5 --sample factor=10..59 --csv {path}")).unwrap();
    let rows = std::fs::read_to_string(&csv).unwrap();
    let factors = rows.lines().skip(1).map(|line| line.split(',').nth(2).unwrap().parse::<u32>().unwrap());
    let parts: std::collections::BTreeSet<_> = factors.map(|factor| factor / 10).collect();
    assert_eq!(parts, (1..=5).collect());
}

#[test]
fn refused_lab_arguments_name_the_remedy() {
    for (arguments, message) in [
        ("run triple", "unknown experiment `triple`; known: double"),
        ("list triple", "unknown experiment `triple`; known: double"),
        (
            "run all --set vms=1 --set vms=2",
            "`vms` is set twice, to 1 and 2; give it once, or --sweep vms=1,2",
        ),
        (
            "explain double:vms=1 --machine nowhere.toml",
            "cannot read the machine file nowhere.toml; machines ",
        ),
        ("run all --set fctor=3", "unknown axis or setting `fctor`; did you mean factor?"),
        (
            "run all --set vms=2 --set factor=-1",
            "double vms=2 factor=-1: invariant of the model violated: frames came",
        ),
        ("run all triple", "unknown experiment `all`; give `all` alone, since it includes each experiment"),
        (
            "run all --out Cargo.toml",
            "cannot store the rows of the run: cannot read or write Cargo.toml/rows: ",
        ),
        ("run all --seeds 2", "--seeds needs a place for the rows of each seed: add --out DIR or --csv FILE"),
        ("run all --csv nowhere/rows.csv", "cannot write nowhere/rows.csv: No such file or directory"),
        ("run all --sweep fctor=1,2", "unknown axis or setting `fctor`; did you mean factor?"),
        ("run all --samples 9 --sample factor=1..3", "factor has 3 integers from 1 to 3 for 9 samples"),
        ("run all --sweep vms=1,2 --set vms=3", "`vms` is swept and set, or swept twice; give it once"),
        (
            "run double --machine nowhere.toml",
            "cannot read the machine file nowhere.toml; machines with a name are nehalem, ",
        ),
        ("compare unchanged fctor=3", "no value is stated for these experiments"),
        ("compare unchanged factr", "cannot read the machine file factr; machines with a name are nehalem, "),
        (
            "explain double",
            "double selects 3 rows, for example `double:vms=1`; give values for more parameters",
        ),
        ("explain double:vms=1", "double:vms=1 has no processor cycles to explain"),
        ("report --out nowhere/page.html", "cannot write nowhere/page.html: No such file or directory"),
        ("report --out page.json", "page.json: the page's name must not end in .csv or .json"),
        ("calibrate --out nowhere/file", "cannot write nowhere/file: No such file or directory"),
        ("calibrate --knobs eoi_fast", "cannot fit eoi_fast: its value is stated"),
        ("calibrate --hold timer_write", "unknown knob or constant `timer_write`; did you mean timer_writes"),
        ("calibrate --targets nowhere.toml", "targets file nowhere.toml: No such file or directory"),
        ("calibrate --hold device_model --profile device", "no fitted knob is called device"),
        ("host --save nowhere/file", "cannot write nowhere/file: No such file or directory"),
        ("report --in nowhere", "store rows with `softiov lab run all --out DIR`"),
    ] {
        let error = format!("{:#}", softiov_lab(arguments).unwrap_err());
        assert!(error.contains(message), "{error}");
        assert_eq!(crate::exit_code(&anyhow::anyhow!(error)), 1);
    }
}

#[test]
fn bad_machine_file_is_refused_with_line_and_nearest_key() {
    let settings = lab::experiments::catalogue().settings;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        super::machine::read_checked(&path.display().to_string(), &settings)
    };
    let error = format!("{:#}", read("[machine]\nsokets = 2\n").unwrap_err());
    assert!(
        error.ends_with("line 2: unknown key `machine.sokets`; did you mean machine.sockets?"),
        "{error}"
    );
    let error = format!("{:#}", read("[machine]\nthreads_per_core = 1\n").unwrap_err());
    assert!(error.contains("machine.guest_home is thread-1: a core has only 1 threads"), "{error}");
    assert_eq!(read("[machine]\nsockets = 4\n").unwrap().name, "mine");
    assert_eq!(super::machine::read_checked("harpertown", &settings).unwrap().name, "harpertown");
}

#[test]
fn invalid_lab_arguments_exit_with_a_usage_error() {
    for arguments in [
        "run",
        "run all --set vms",
        "run all --shard 3/2",
        "run all --jobs 0",
        "report --in a --jobs 2",
        "run all --sweep vms=3..1",
        "run all --sample factor=1..3",
        "explain",
        "explain double:vms",
    ] {
        let error = softiov_lab(arguments).unwrap_err();
        assert_eq!(error.downcast::<clap::Error>().unwrap().exit_code(), 2, "{arguments}");
    }
}

#[test]
fn lab_list_shows_points_and_settings_of_experiments() {
    let text = list::as_text(&catalogue());
    assert_eq!(
        text,
        "experiment  points  parameters  title\n\
         double      3       vms         Twice as much\n\n\
         setting  default  what\n\
         factor   2 times  how much\n"
    );
    let json: serde_json::Value = serde_json::from_str(&list::as_json(&catalogue()).unwrap()).unwrap();
    assert_eq!(json["experiments"][0]["params"]["vms"], serde_json::json!([1, 2, 3]));
    assert_eq!(json["settings"][0]["default"], 2);
    let figure = &json["experiments"][0]["figures"][0];
    assert_eq!(figure["kind"], "lines");
    assert_eq!(figure["left"]["series"], serde_json::json!([["mbps", "throughput"]]));
}

#[test]
fn lab_list_of_a_name_describes_parameters_and_metrics() {
    assert_eq!(
        list::describe(&catalogue().experiments[0]),
        "double: Twice as much\nNothing of note.\n\n\
         parameter  values  what\n\
         vms        1 2 3   virtual machines\n\n\
         metric  unit  what\n\
         mbps    Mb/s  throughput\n"
    );
    softiov_lab("list double").unwrap();
}

#[test]
fn lab_table_has_many_equal_settings_in_a_line_above() {
    let set = ["table=modern", "policy=2k", "measure_ms=2", "warm_up_ms=2"].map(|text| text.parse().unwrap());
    let mut machine = vec!["cost.rx_skb=400", "cost.rx_udp=600", "cost.rx_wake=900", "cost.softirq=700"];
    let mut text = |more: &[&'static str]| {
        machine.extend(more);
        let machine = machine.iter().map(|text| text.parse().unwrap()).collect();
        let options = lab::runner::ExperimentOptions { set: set.to_vec(), machine, ..Default::default() };
        let selection = lab::runner::plan::ExperimentSelection::Names(vec!["fig08".to_owned()]);
        run::tables(&lab::runner::run(&lab::experiments::catalogue(), &selection, &options, &mut ()).unwrap())
    };
    assert!(text(&[]).starts_with("fig08  policy"), "four settings are columns");
    let above = "settings of all rows: cost.softirq=700 cost.napi_entry=600 cost.rx_skb=400 cost.rx_udp=600 cost.rx_wake=900\n";
    let many = text(&["cost.napi_entry=600"]);
    assert!(many.starts_with(above), "{many}");
    assert!(many.lines().nth(1).unwrap().starts_with("fig08  policy   table"), "{many}");
}

#[test]
fn lab_list_json_has_the_values_that_papers_state() {
    let catalogue = lab::experiments::catalogue();
    let json: serde_json::Value = serde_json::from_str(&list::as_json(&catalogue).unwrap()).unwrap();
    let experiments = json["experiments"].as_array().unwrap();
    let listed = experiments.iter().flat_map(|experiment| experiment["stated"].as_array().unwrap());
    assert_eq!(listed.count(), catalogue.stated.len());
    let direct = experiments.iter().find(|experiment| experiment["name"] == "direct-net").unwrap();
    let stated = serde_json::json!({
        "point": {"path": "vmdq"}, "metric": "throughput_gbps", "value": 8.2, "calibrated": false,
    });
    assert!(direct["stated"].as_array().unwrap().contains(&stated), "{}", direct["stated"]);
}

#[test]
fn lab_run_without_json_prints_tables_and_speed() {
    let options = lab::runner::ExperimentOptions {
        set: vec!["vms=2".parse().unwrap()],
        ..lab::runner::ExperimentOptions::default()
    };
    let found =
        lab::runner::run(&catalogue(), &lab::runner::plan::ExperimentSelection::All, &options, &mut ())
            .unwrap();
    assert_eq!(run::tables(&found), "double  vms  mbps\n          2     4\n");
    assert_eq!(
        run::summary(&found, Duration::from_millis(500)),
        "1 rows; 1.0 s simulated in 0.5 s: 2.00 times real time, 2.00 M events/s"
    );
    assert_eq!(
        run::summary(&RunResult { reused: 1, ..found }, Duration::ZERO),
        "1 rows, 1 of them stored before"
    );
}

#[test]
fn lab_command_line_settings_override_the_settings_file() {
    let folder = tempfile::tempdir().unwrap();
    let (rows, file) = (folder.path().join("rows"), folder.path().join("mine"));
    std::fs::write(&file, "# mine\nfactor=5\n\nvms=2\n").unwrap();
    let settings = file.display();
    softiov_lab(&format!("run all --settings {settings} --set vms=3 --out {}", rows.display())).unwrap();
    let kept = lab::runner::store::read(&rows).unwrap().0;
    let texts: Vec<_> = kept.iter().map(|record| record.row.params.to_string()).collect();
    assert_eq!(texts, ["vms=3 factor=5"]);
    std::fs::write(&file, "factor\n").unwrap();
    let error = format!("{:#}", softiov_lab(&format!("run all --settings {settings}")).unwrap_err());
    assert!(
        error.ends_with("mine: invalid setting \"factor\": expected an assignment of the form key=value"),
        "{error}"
    );
}
