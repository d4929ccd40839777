//! Functions and regions of the product's sources, and which of them were run.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// Crates of which only the files that an input reaches are counted: the rest of them runs only in a live host.
const PARTS: [&str; 3] = ["daemon", "host", "backplane"];
/// Kind of a region that is code, in LLVM's list.
const CODE: u64 = 0;

/// Place of a region or function: first line and column, last line and column.
type Place = [u64; 4];

/// Regions and functions of one source file, and whether they were run by any input.
#[derive(Debug, Default)]
struct SourceFile {
    functions: BTreeMap<u64, bool>,
    regions: BTreeMap<Place, bool>,
}

/// Regions of all source files of the product, by path from the root.
#[derive(Debug, Default)]
pub(super) struct ReachedCode(BTreeMap<String, SourceFile>);

/// Coverage of one crate by all targets, or of all crates by one target.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Coverage {
    name: String,
    /// Number of functions and of regions, those that were run first.
    functions: [usize; 2],
    regions: [usize; 2],
    /// Functions that no input runs: file, line and the line's text.
    unreached: Vec<(String, u64, String)>,
}

impl ReachedCode {
    /// Adds the counts of one program, as `llvm-cov export` prints them. A function that the compiler made for several types
    /// is one function, and was run if any of them was.
    ///
    /// # Errors
    /// If the text is no such list.
    pub(super) fn add(&mut self, root: &Path, text: &str) -> Result<()> {
        let list: Value = serde_json::from_str(text).context("llvm-cov prints JSON")?;
        let functions = list["data"][0]["functions"].as_array().context("the list has functions")?;
        for function in functions {
            let regions = function["regions"].as_array().context("a function has regions")?;
            let number = |region: &Value, at: usize| region[at].as_u64().unwrap_or(0);
            for (index, region) in regions.iter().enumerate() {
                let name = function["filenames"][number(region, 5) as usize].as_str().unwrap_or_default();
                let Some(name) = source(root, name).filter(|_| number(region, 7) == CODE) else { continue };
                let file = self.0.entry(name).or_default();
                let run = number(region, 4) > 0;
                *file.regions.entry([0, 1, 2, 3].map(|at| number(region, at))).or_default() |= run;
                if index == 0 {
                    *file.functions.entry(number(region, 0)).or_default() |= run;
                }
            }
        }
        Ok(())
    }

    /// Adds what another program has run.
    pub(super) fn merge(&mut self, other: Self) {
        for (name, file) in other.0 {
            let own = self.0.entry(name).or_default();
            file.functions.into_iter().for_each(|(at, run)| *own.functions.entry(at).or_default() |= run);
            file.regions.into_iter().for_each(|(at, run)| *own.regions.entry(at).or_default() |= run);
        }
    }

    /// Returns the coverage of all crates, under the name of a target.
    pub(super) fn sum(&self, root: &Path, target: &str) -> Coverage {
        let mut sum = Coverage::new(target);
        for Coverage { functions, regions, .. } in self.crates(root) {
            let both = |[a, b]: [usize; 2], [c, d]: [usize; 2]| [a + c, b + d];
            (sum.functions, sum.regions) = (both(sum.functions, functions), both(sum.regions, regions));
        }
        sum
    }

    /// Returns what was run, by crate.
    pub(super) fn crates(&self, root: &Path) -> Vec<Coverage> {
        let mut crates: BTreeMap<&str, Coverage> = BTreeMap::new();
        for (path, file) in &self.0 {
            let Some(name) = path.split('/').nth(1) else { continue };
            if PARTS.contains(&name) && !file.functions.values().any(|run| *run) {
                continue;
            }
            let coverage = crates.entry(name).or_insert_with(|| Coverage::new(name));
            let count = |[run, all]: &mut [usize; 2], is_run: &bool| {
                *run += usize::from(*is_run);
                *all += 1;
            };
            file.functions.values().for_each(|run| count(&mut coverage.functions, run));
            file.regions.values().for_each(|run| count(&mut coverage.regions, run));
            let text = fs::read_to_string(root.join(path)).unwrap_or_default();
            for line in file.functions.iter().filter(|(_, run)| !**run).map(|(line, _)| *line) {
                let words = text.lines().nth(line as usize - 1).unwrap_or_default().trim();
                coverage.unreached.push((path.clone(), line, words.to_owned()));
            }
        }
        crates.into_values().collect()
    }
}

impl Coverage {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), functions: [0; 2], regions: [0; 2], unreached: Vec::new() }
    }
}

/// Returns a file's path from the root if it is a source of a crate of the product, and no test.
fn source(root: &Path, name: &str) -> Option<String> {
    let path = Path::new(name);
    let path = path.strip_prefix(root).unwrap_or(path).to_str()?;
    // A target names a module that it shares by a path through its own folder.
    let path = path.rsplit("../").next()?.trim_start_matches("./");
    let is_source = path.starts_with("crates/") && path.contains("/src/");
    let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
    (is_source && !is_test).then(|| path.to_owned())
}

/// Returns the coverage as tables for people, and the functions that no input runs.
pub(super) fn table(crates: &[Coverage], targets: &[Coverage]) -> String {
    let mut text = String::new();
    for Coverage { unreached, .. } in crates {
        for (file, line, words) in unreached {
            let _ = writeln!(text, "{file}:{line}: {words}");
        }
    }
    for (title, rows) in [("crate", crates), ("target", targets)] {
        let _ =
            writeln!(text, "\n{title:<20} {:>10} {:>6} {:>9} {:>6}", "functions", "run", "regions", "run");
        for Coverage { name, functions, regions, .. } in rows {
            let share = |[run, all]: [usize; 2]| format!("{}%", (100 * run).checked_div(all).unwrap_or(0));
            let (of_functions, of_regions) = (share(*functions), share(*regions));
            let _ = writeln!(
                text,
                "{name:<20} {:>10} {of_functions:>6} {:>9} {of_regions:>6}",
                functions[1], regions[1]
            );
        }
    }
    text
}

/// Returns the coverage as lists of JSON objects.
pub(super) fn json(crates: &[Coverage], targets: &[Coverage]) -> String {
    let entry = |coverage: &Coverage| {
        let Coverage { name, functions, regions, unreached } = coverage;
        let unreached: Vec<_> = unreached.iter().map(|(file, line, _)| format!("{file}:{line}")).collect();
        json!({
            "name": name,
            "functions": functions[1], "functions_run": functions[0],
            "regions": regions[1], "regions_run": regions[0],
            "unreached": unreached,
        })
    };
    let [crates, targets] = [crates, targets].map(|list| Value::from_iter(list.iter().map(entry)));
    format!("{:#}\n", json!({ "crates": crates, "targets": targets }))
}

#[cfg(test)]
mod tests {
    use super::{ReachedCode, table};
    use std::path::Path;

    /// A function `a` that ran for one of two types, a function `b` that never ran, and a test.
    const LIST: &str = r#"{"data": [{"functions": [
        {"filenames": ["/project/crates/nic/src/a.rs"], "regions": [[3, 1, 5, 2, 0, 0, 0, 0], [4, 1, 4, 9, 0, 0, 0, 0]]},
        {"filenames": ["/project/crates/nic/src/a.rs"], "regions": [[3, 1, 5, 2, 7, 0, 0, 0], [4, 1, 4, 9, 0, 0, 0, 0]]},
        {"filenames": ["/project/fuzz/../crates/nic/src/a.rs"], "regions": [[8, 1, 9, 2, 0, 0, 0, 0]]},
        {"filenames": ["/project/crates/nic/src/tests/b.rs"], "regions": [[1, 1, 9, 2, 1, 0, 0, 0]]},
        {"filenames": ["/project/crates/daemon/src/main.rs"], "regions": [[1, 1, 9, 2, 0, 0, 0, 0]]}
    ]}]}"#;

    #[test]
    fn function_is_reached_if_it_ran_for_any_type() {
        let mut reached = ReachedCode::default();
        reached.add(Path::new("/project"), LIST).unwrap();
        let [crate_] = &reached.crates(Path::new("/project"))[..] else { panic!("the crate nic alone") };
        assert_eq!((crate_.name.as_str(), crate_.functions, crate_.regions), ("nic", [1, 2], [1, 3]));
        assert_eq!(crate_.unreached, [("crates/nic/src/a.rs".to_owned(), 8, String::new())]);
        let sum = reached.sum(Path::new("/project"), "avf_guest");
        let text = table(&reached.crates(Path::new("/project")), &[sum]);
        assert!(text.contains("nic                           2    50%"), "{text}");
        assert!(text.contains("avf_guest                     2    50%"), "{text}");
    }
}
