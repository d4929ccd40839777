//! Tests the page for artifact evaluation: its commands and claims, and the lab's notebook (docs/artifact/figures.py),
//! whose packages come from the Python package index, with hashes, into the cache folder.

use crate::guide::reader;
use crate::process::{SOFTIOV, finish};
use host::test_support::skipped;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use tempfile::tempdir;

const PAGE: &str = include_str!("../../../../docs/artifact/README.md");
const ARTIFACT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/artifact");

/// Claims that take longer than this according to the page are not run, in seconds on one processor.
const LONGEST_CLAIM_S: u32 = 5;

/// Runs all experiments for two milliseconds each.
const SHORT: &str = "--set measure_ms=2 --set warm_up_ms=2 --unaffected";

/// Returns the page with another command in place of one of its commands.
fn replaced(page: &str, command: &str, other: &str) -> String {
    assert!(page.contains(command), "the page has no command {command}");
    page.replace(command, other)
}

/// Returns the page's command that installs the notebook's packages into `results/python`.
fn install_command() -> &'static str {
    PAGE.lines().find(|line| line.starts_with("python3 -m pip install ")).expect("the page installs packages")
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("{command:?}: {}", text(&output.stderr)))
    }
}

/// Folder with the notebook's packages, or the reason why there is none.
static PACKAGES: LazyLock<Result<PathBuf, String>> = LazyLock::new(install);

/// Installs the notebook's packages with the page's command, unless they are installed, and returns their folder. The
/// folder's name has the version of Python and the hash of the list of packages, and it exists only after all packages
/// are installed.
fn install() -> Result<PathBuf, String> {
    let program = "import hashlib, sys; \
                   name = hashlib.sha256(open(sys.argv[1], 'rb').read()).hexdigest()[:16]; \
                   print('python%d.%d' % sys.version_info[:2], name, sep='-')";
    let list = format!("{ARTIFACT}/requirements.txt");
    let name = run(Command::new("python3").args(["-c", program, &list]))?;
    let cache = linux_guest::cache_folder().map_err(|error| error.to_string())?.join("python");
    let folder = cache.join(name);
    if folder.is_dir() {
        return Ok(folder);
    }
    fs::create_dir_all(&cache).map_err(|error| format!("{}: {error}", cache.display()))?;
    let unfinished = tempfile::tempdir_in(&cache).map_err(|error| format!("{}: {error}", cache.display()))?;
    let path = unfinished.path().to_string_lossy();
    let command = replaced(install_command(), "results/python", &path);
    let command = replaced(&command, "docs/artifact", ARTIFACT);
    let mut pip = Command::new("sh");
    pip.args(["-c", &command]).env("PIP_RETRIES", "2").env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
    let installed = run(&mut pip);
    // Without the index or with an old Python there are no packages. Other packages than the listed ones are a fault.
    let refused = installed.as_ref().is_err_and(|why| why.contains("DO NOT MATCH THE HASHES"));
    assert!(!refused, "{installed:?}");
    installed.map_err(|why| why.lines().last().unwrap_or_default().to_owned())?;
    match fs::rename(unfinished.path(), &folder) {
        // Another test run may have installed them meanwhile.
        Err(error) if !folder.is_dir() => Err(format!("{}: {error}", folder.display())),
        _ => Ok(folder),
    }
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Returns a parameter's value as the lab prints it.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn strings(values: &Value) -> Vec<&str> {
    values.as_array().unwrap().iter().map(|value| value.as_str().unwrap()).collect()
}

/// Numbers of figures by figure, point and metric: value, and half of its interval.
type FigureNumbers = BTreeMap<(String, String, String), (f64, f64)>;

/// Returns the numbers that figures of `rows` must show, from the definitions of `list`: means over seeds.
fn expected_numbers(list: &Value, rows: &[Value]) -> FigureNumbers {
    let mut values = BTreeMap::<_, Vec<f64>>::new();
    for row in rows {
        let experiment = list["experiments"].as_array().unwrap().iter();
        let experiment = experiment.clone().find(|it| it["name"] == row["experiment"]).unwrap();
        for (index, figure) in experiment["figures"].as_array().unwrap().iter().enumerate() {
            let name = format!("{}-{}", row["experiment"].as_str().unwrap(), index + 1);
            let axes = strings(&figure["x"]).into_iter().chain(figure["split"].as_str());
            let point: Vec<_> = axes.map(|axis| format!("{axis}={}", text(&row["params"][axis]))).collect();
            let scales = ["left", "right"].map(|scale| figure[scale]["series"].as_array());
            for series in scales.into_iter().flatten().flatten() {
                let metric = series[0].as_str().unwrap();
                let key = (name.clone(), point.join(";"), metric.to_owned());
                values.entry(key).or_default().extend(row["metrics"][metric].as_f64());
            }
        }
    }
    values.retain(|_, values| !values.is_empty());
    values.into_iter().map(|(key, values)| (key, mean_and_half(&values))).collect()
}

/// Returns the mean of values of up to three seeds, and half of its interval of 95 %.
fn mean_and_half(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    // Student's t for one and for two degrees of freedom.
    let t = match values.len() {
        1 => return (mean, 0.0),
        2 => 12.706,
        3 => 4.303,
        seeds => panic!("{seeds} seeds"),
    };
    (mean, t * (squares / (count - 1.0) / count).sqrt())
}

/// Returns the numbers that the notebook drew in folder `figures`, and the stated values among them.
fn drawn_numbers(figures: &Path) -> (FigureNumbers, FigureNumbers) {
    let (mut series, mut stated) = (FigureNumbers::new(), FigureNumbers::new());
    for line in fs::read_to_string(figures.join("drawn.csv")).unwrap().lines().skip(1) {
        let cells: Vec<_> = line.split(',').collect();
        let [figure, point, metric, value, half, star] = cells[..] else { panic!("{line}") };
        let numbers = if star == "True" { &mut stated } else { &mut series };
        let key = (figure.to_owned(), point.to_owned(), metric.to_owned());
        let before = numbers.insert(key, (value.parse().unwrap(), half.parse().unwrap()));
        assert_eq!(before, None, "drawn twice: {line}");
    }
    (series, stated)
}

#[track_caller]
fn assert_same_numbers(drawn: &FigureNumbers, expected: &FigureNumbers) {
    assert!(drawn.keys().eq(expected.keys()), "other points or series: {drawn:?}\n{expected:?}");
    for (key, (value, half)) in drawn {
        let (expected_value, expected_half) = expected[key];
        // A bar's height is the difference of its ends.
        let is_same = |one: f64, other: f64| (one - other).abs() <= 1e-9 * (1.0 + expected_value.abs());
        assert!(is_same(*value, expected_value), "{key:?}: {value} is drawn, {expected_value} in the rows");
        assert!(is_same(*half, expected_half), "{key:?}: {half} is drawn, {expected_half} in the rows");
    }
}

/// Reads rows of `lab run --json`.
fn rows(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn artifact_page_commands_draw_each_number_of_each_row() {
    let packages = match &*PACKAGES {
        Ok(folder) => folder,
        Err(why) => return skipped("the lab's notebook", why),
    };
    let page = replaced(PAGE, "cargo build --release", "true");
    let all = format!("softiov lab run all {SHORT} --json --csv results/rows.csv > results/rows.json");
    let page = replaced(&page, "softiov lab run all --csv results/rows.csv", &all);
    let page = replaced(&page, install_command(), &format!("ln -s {} results/python", packages.display()));
    let page = replaced(&page, "$ PYTHONPATH", "$ LAB_FORMATS=svg PYTHONPATH");
    let page = replaced(&page, "--seeds 5", "--seeds 2 --only direct-net");
    let page = replaced(&page, "lab run all --jobs", &format!("lab run fig08 fig12 {SHORT} --jobs"));
    let folder = tempdir().unwrap();
    reader(&folder).follow(&page);

    let results = folder.path().join("home/results");
    let list = json(&results.join("lab.json"));
    let (drawn, stars) = drawn_numbers(&results.join("figures"));
    assert_same_numbers(&drawn, &expected_numbers(&list, &rows(&results.join("rows.json"))));
    let experiments = list["experiments"].as_array().unwrap();
    let mut number = 0;
    for experiment in experiments {
        for index in 1..=experiment["figures"].as_array().unwrap().len() {
            let name = format!("{}-{index}", experiment["name"].as_str().unwrap());
            let picture = fs::read_to_string(results.join(format!("figures/{name}.svg"))).unwrap();
            let stars = stars.keys().filter(|(figure, ..)| *figure == name).count();
            assert_eq!(picture.matches("id=\"stated-").count(), stars, "{name}");
            number += 1;
        }
    }
    let figures = fs::read_to_string(results.join("figures/figures.csv")).unwrap();
    assert_eq!(figures.lines().count() - 1, number);
    // Each star is a value that a paper states.
    for ((figure, _, metric), (value, _)) in stars {
        let (name, _) = figure.rsplit_once('-').unwrap();
        let experiment = experiments.iter().find(|experiment| experiment["name"] == name).unwrap();
        let is_same = |it: &Value| {
            it["metric"] == metric.as_str() && (it["value"].as_f64().unwrap() - value).abs() < 1e-9 * value
        };
        assert!(experiment["stated"].as_array().unwrap().iter().any(is_same), "{figure}: {metric} {value}");
    }
}

#[test]
fn artifact_notebook_draws_means_with_intervals_and_equal_bytes() {
    let packages = match &*PACKAGES {
        Ok(folder) => folder,
        Err(why) => return skipped("the lab's notebook", why),
    };
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let lab = |arguments: &str| {
        let output = finish(Command::new(SOFTIOV).arg("lab").args(arguments.split(' ')).current_dir(&folder));
        assert_eq!(output.status, Some(0), "{arguments}: {}", output.err);
        output.out
    };
    fs::write(at("lab.json"), lab("list --json")).unwrap();
    fs::write(at("rows.json"), lab(&format!("run fig06 fig12 --seeds 3 {SHORT} --json --csv rows.csv")))
        .unwrap();
    let draw = || {
        let mut python = Command::new("python3");
        python
            .arg(format!("{ARTIFACT}/figures.py"))
            .env("PYTHONPATH", packages)
            .env("LAB_RESULTS", folder.path())
            .env_remove("LAB_FORMATS")
            .env("MPLBACKEND", "agg");
        let drawn = finish(python.env("MPLCONFIGDIR", at("matplotlib")));
        assert_eq!(drawn.status, Some(0), "{}{}", drawn.out, drawn.err);
        ["fig06-1.svg", "fig06-1.pdf", "fig12-1.svg", "drawn.csv"]
            .map(|name| fs::read(at("figures").join(name)).unwrap())
    };

    let first = draw();

    let (drawn, _) = drawn_numbers(&at("figures"));
    assert!(drawn.values().any(|(_, half)| *half > 0.0));
    assert_same_numbers(&drawn, &expected_numbers(&json(&at("lab.json")), &rows(&at("rows.json"))));
    assert!(first == draw(), "the same rows give other bytes");
}

/// Checks that figures of rows with many settings have names that a file system takes, and that the table has their settings.
#[test]
fn artifact_notebook_draws_rows_of_a_machine_with_many_settings() {
    let packages = match &*PACKAGES {
        Ok(folder) => folder,
        Err(why) => return skipped("the lab's notebook", why),
    };
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let machine = "table = \"modern\"\n[machine]\nsockets = 2\ncores_per_socket = 24\nthreads_per_core = 2\n\
                   service_home = \"cores-0-7\"\nguest_home = \"cores-8-47\"\n[wire]\nmbps = 10000\nturnaround_us = 8\n\
                   [cost]\nclock_hertz = 3100000000\nrx_skb = 380\nrx_udp = 600\n";
    fs::write(at("server.toml"), machine).unwrap();
    let lab = |arguments: &str| {
        let output = finish(Command::new(SOFTIOV).arg("lab").args(arguments.split(' ')).current_dir(&folder));
        assert_eq!(output.status, Some(0), "{arguments}: {}", output.err);
        output.out
    };
    fs::write(at("lab.json"), lab("list --json")).unwrap();
    lab(&format!("run fig08 --machine server.toml --sweep cost.rx_wake=800,900 {SHORT} --csv rows.csv"));

    let mut python = Command::new("python3");
    let python =
        python.arg(format!("{ARTIFACT}/figures.py")).env("PYTHONPATH", packages).env("LAB_FORMATS", "svg");
    let python = python.env("LAB_RESULTS", folder.path()).env("MPLBACKEND", "agg");
    let drawn = finish(python.env("MPLCONFIGDIR", at("matplotlib")));

    assert_eq!(drawn.status, Some(0), "{}{}", drawn.out, drawn.err);
    let figures = fs::read_to_string(at("figures/figures.csv")).unwrap();
    for wake in ["800", "900"] {
        let line = figures.lines().find(|line| line.ends_with(&format!("cost.rx_wake={wake}"))).unwrap();
        let name = line.split(',').next().unwrap();
        assert!(name.len() < 130 && at(&format!("figures/{name}.svg")).exists(), "{line}");
    }
}

#[test]
fn artifact_claims_equal_their_rows_and_stated_values() {
    let list = finish(Command::new(SOFTIOV).args(["lab", "list", "--json"]));
    let list: Value = serde_json::from_str(&list.out).unwrap();
    let (_, claims) = PAGE.split_once("| claim | command |").unwrap();
    let claims = claims.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut found = BTreeMap::new();
    for claim in claims {
        let cells: Vec<_> =
            claim.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let [_, command, metric, kind, paper, model, within, time] = cells[..] else { panic!("{claim}") };
        let arguments: Vec<_> = command.split(' ').skip(1).collect();
        let paper: f64 = paper.parse().unwrap();

        let stated = list["experiments"].as_array().unwrap().iter().filter(|it| it["name"] == arguments[2]);
        let mut stated = stated.flat_map(|it| it["stated"].as_array().unwrap());
        let is_set =
            |(axis, value): (&String, &Value)| command.contains(&format!("--set {axis}={}", text(value)));
        let is_own =
            |it: &&Value| it["metric"] == metric && it["point"].as_object().unwrap().iter().all(is_set);
        let stated = stated.find(is_own).unwrap_or_else(|| panic!("no paper states {claim}"));
        assert!((stated["value"].as_f64().unwrap() / paper - 1.0).abs() < 1e-9, "{claim}: {stated}");
        assert_eq!(stated["calibrated"], kind == "fitted", "{claim}");

        if time.strip_suffix(" s").unwrap().parse::<u32>().unwrap() >= LONGEST_CLAIM_S {
            continue;
        }
        let row = found.entry(command).or_insert_with(|| {
            let output = finish(Command::new(SOFTIOV).args(&arguments).arg("--json"));
            assert_eq!(output.status, Some(0), "{command}: {}", output.err);
            serde_json::from_str::<Value>(&output.out).unwrap()
        });
        let value = row["metrics"][metric].as_f64().unwrap();
        let digits = model.split_once('.').map_or(0, |(_, digits)| digits.len());
        assert_eq!(format!("{value:.digits$}"), model, "{claim}");
        let within: f64 = within.strip_suffix(" %").unwrap().parse().unwrap();
        assert!((value / paper - 1.0).abs() * 100.0 <= within, "{claim}: {value}");
    }
    assert!(found.len() > 10, "{}", found.len());
}

/// Experiments of the score that are run again: those of one guest, which take about a second.
const SCORED: &str = "cdna-throughput direct-net smart-vnic-rx smart-vnic-tx";

/// Returns the cells of the page's table that begins with `heading`.
fn page_table(heading: &str) -> Vec<Vec<&'static str>> {
    let (_, table) = PAGE.split_once(heading).unwrap_or_else(|| panic!("the page has no table {heading}"));
    let lines = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Returns the number in a cell, which may have a sign and a percent sign.
#[track_caller]
fn number(cell: &str) -> f64 {
    cell.trim_end_matches(" %").parse().unwrap_or_else(|error| panic!("{cell}: {error}"))
}

#[test]
fn artifact_score_adds_up_and_equals_its_rows() {
    let values = page_table("| experiment | point | metric | kind | paper |");
    let catalogue = lab::experiments::catalogue();
    assert_eq!(values.len(), catalogue.stated.len() + catalogue.relations.len());
    let error = |cells: &[&str]| (number(cells[5]) / number(cells[4]) - 1.0) * 100.0;
    for cells in &values {
        assert_eq!(cells[7], format!("{:+.1} %", error(cells)), "{cells:?}");
    }
    for cells in page_table("| values | count | within 10 % |") {
        let own = values.iter().filter(|value| match cells[0] {
            "all" => true,
            // Bounded values are predictions too.
            "predicted" => value[3] != "fitted",
            "predicted, not bounded" => value[3] == "predicted",
            kind => value[3] == kind,
        });
        let errors: Vec<_> = own.map(|value| error(value).abs()).collect();
        let within = |limit: f64| errors.iter().filter(|error| **error <= limit).count();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let counts = [errors.len(), within(10.0), within(30.0)].map(|count| count.to_string());
        assert_eq!(cells[1..4], counts, "{cells:?}");
        assert_eq!(cells[4], format!("{mean:.1} %"), "{cells:?}");
    }

    let arguments = format!("lab compare unchanged unchanged --seeds 5 --json --only {SCORED}");
    let output = finish(Command::new(SOFTIOV).args(arguments.split(' ')));
    assert_eq!(output.status, Some(0), "{}", output.err);
    let found: Value = serde_json::from_str(&output.out).unwrap();
    let found = found["values"].as_array().unwrap();
    let plain = |cell: &str| cell.replace('`', "");
    let scored = values.iter().filter(|cells| SCORED.split(' ').any(|name| name == cells[0]));
    let mut count = 0;
    for cells in scored {
        let is_own = |value: &&Value| {
            let names = ["experiment", "point", "metric"].map(|key| value[key].as_str().unwrap());
            names == [cells[0], &plain(cells[1]), &plain(cells[2])]
        };
        let value = found.iter().find(is_own).unwrap_or_else(|| panic!("no paper states {cells:?}"));
        let numbers = [&value["stated"], &value["models"][0], &value["half"][0]];
        for (cell, number) in cells[4..7].iter().zip(numbers) {
            assert_eq!(cell.parse::<f64>().unwrap(), number.as_f64().unwrap(), "{cells:?}");
        }
        assert_eq!(value["is_calibrated"], cells[3] == "fitted", "{cells:?}");
        assert_eq!(value["is_bounded"], cells[3] == "bounded", "{cells:?}");
        count += 1;
    }
    assert_eq!(count, found.len());
}
