//! Keeps the failures that `cargo xtask explore` found in a file, each a property test and its seed. A mended failure
//! leaves the file, and its input becomes a test.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::properties::{PropertyTest, TestProgram};

/// Path of the file of failing cases, relative to the workspace.
pub(super) const FILE: &str = "xtask/found-cases.json";

/// Text before the failing input in a message of proptest.
const INPUT: &str = "minimal failing input: ";

/// Property test, and a seed with which the test fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailingCase {
    package: String,
    target: String,
    test: String,
    seed: u64,
    /// Smallest failing input, as proptest prints the input; empty if the test printed none.
    input: String,
}

impl fmt::Display for FailingCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { package, target, seed, input, .. } = self;
        write!(f, "{} ({package}, {target}, seed {seed}): {input}", self.name())
    }
}

impl FailingCase {
    /// Creates the case of a property that failed with `seed`, with the input that the test's output names.
    pub(super) fn new(property: &PropertyTest, seed: u64, output: &str) -> Self {
        let input = output.lines().find_map(|line| Some(line.split_once(INPUT)?.1));
        Self {
            package: property.program.package.clone(),
            target: property.program.target.clone(),
            test: property.test.clone(),
            seed,
            input: input.unwrap_or_default().to_owned(),
        }
    }

    /// Returns true if the case is a failure of the property test `property`.
    pub(super) fn is_of(&self, property: &PropertyTest) -> bool {
        let PropertyTest { program, test } = property;
        (&self.package, &self.target, &self.test) == (&program.package, &program.target, test)
    }

    /// Returns true if the test program has this case's test.
    pub(super) fn is_in(&self, program: &TestProgram) -> bool {
        (&self.package, &self.target) == (&program.package, &program.target)
    }

    /// Returns the arguments for repeating a failing case: the test's full name and the seed.
    pub(super) fn call(&self) -> (&str, u64) {
        (&self.test, self.seed)
    }

    pub(super) fn name(&self) -> String {
        format!("{}_seed_{}", self.test.replace("::", "_"), self.seed)
    }

    fn to_json(&self) -> Value {
        let Self { package, target, test, seed, input } = self;
        let name = self.name();
        json!({ "name": name, "package": package, "target": target, "test": test, "seed": seed, "input": input })
    }

    fn from_json(value: &Value) -> Option<Self> {
        let text = |key: &str| Some(value[key].as_str()?.to_owned());
        Some(Self {
            package: text("package")?,
            target: text("target")?,
            test: text("test")?,
            seed: value["seed"].as_u64()?,
            input: text("input")?,
        })
    }
}

/// Adds failing cases to the file, each once.
pub(super) fn add(root: &Path, cases: &[FailingCase]) -> Result<()> {
    if cases.is_empty() {
        return Ok(());
    }
    let mut all = load(root)?;
    all.extend(cases.iter().cloned());
    all.sort_by_key(FailingCase::name);
    all.dedup();
    let values: Vec<_> = all.iter().map(FailingCase::to_json).collect();
    fs::write(root.join(FILE), serde_json::to_string_pretty(&values)? + "\n")
        .with_context(|| format!("cannot write {FILE}"))
}

/// Reads the file of failing test cases.
pub(super) fn load(root: &Path) -> Result<Vec<FailingCase>> {
    let text = fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    read(&text).with_context(|| format!("{FILE} is not a list of failing cases"))
}

fn read(text: &str) -> Option<Vec<FailingCase>> {
    let value: Value = serde_json::from_str(text).ok()?;
    value.as_array()?.iter().map(FailingCase::from_json).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_case_keeps_the_input_that_proptest_prints() {
        let program = TestProgram {
            package: "nic".to_owned(),
            target: "card".to_owned(),
            path: "x".into(),
            folder: "y".into(),
        };
        let property = PropertyTest { program, test: "uncut::cut".to_owned() };
        let output = "thread panicked\nTest failed: no.\nminimal failing input: case = Case { mss: 3 }\n\tsuccesses: 1\n";
        let case = FailingCase::new(&property, 7, output);
        assert!(case.is_of(&property));
        assert_eq!(
            (case.name().as_str(), case.input.as_str()),
            ("uncut_cut_seed_7", "case = Case { mss: 3 }")
        );
        let text = Value::Array(vec![case.to_json()]).to_string();
        assert_eq!(read(&text), Some(vec![case]));
    }

    #[test]
    fn damaged_file_of_failing_test_cases_is_an_error() {
        assert_eq!(read("[]"), Some(Vec::new()));
        assert_eq!(read("{}"), None);
        assert_eq!(read(r#"[{"package": "nic"}]"#), None);
    }
}
