//! Runs property tests with one seed, as many at a time as there are processors, and runs kept cases again. Keeps no
//! case.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result};

use super::cases::{self, FailingCase};
use super::properties::{self, PropertyTest, TestProgram};
use super::seed::{SEED, WRITES_NOTHING};
use crate::test::process::{self, OutputVisibility};
use crate::test::tally::{TestFailure, TestTally};

/// Runs every property test with the seed. Returns a case for each test that fails.
pub(super) fn round(properties: &[PropertyTest], seed: u64) -> Result<Vec<FailingCase>> {
    let waiting = Mutex::new(properties.iter());
    let work = || {
        let mut cases = Vec::new();
        loop {
            // The lock is free again before the test runs. A worker that panicked held it no longer than this either.
            let next = waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
            let Some(property) = next else { return Ok(cases) };
            if let Some(output) = failure(&property.program, &property.test, seed)? {
                cases.push(FailingCase::new(property, seed, &output));
            }
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut cases = Vec::new();
        for worker in workers {
            cases.extend(worker.join().unwrap_or_else(|_| {
                Err(anyhow::anyhow!("a worker thread that runs property tests panicked"))
            })?);
        }
        Ok(cases)
    })
}

/// Runs each stored failing test case again. Each counts as a test.
///
/// # Errors
/// If the file of cases is damaged, or the tests do not build.
pub(crate) fn repeat(root: &Path) -> Result<TestTally> {
    let cases = cases::load(root)?;
    let mut tally = TestTally::default();
    if cases.is_empty() {
        return Ok(tally);
    }
    let programs = properties::programs(root)?;
    for case in &cases {
        let program = programs.iter().find(|program| case.is_in(program));
        let program = program.with_context(|| {
            format!("{} names a test program that does not exist: {case}; remove the case", cases::FILE)
        })?;
        let (test, seed) = case.call();
        match failure(program, test, seed)? {
            Some(_) => {
                tally.failed += 1;
                tally.failures.push(TestFailure { name: case.name(), reason: None });
            }
            None => tally.passed += 1,
        }
    }
    Ok(tally)
}

/// Runs one property test with a seed. Returns the test's output if the test failed.
fn failure(program: &TestProgram, test: &str, seed: u64) -> Result<Option<String>> {
    let mut command = Command::new(&program.path);
    command.args(["--exact", test]).current_dir(&program.folder);
    command.env(SEED, seed.to_string()).env(WRITES_NOTHING, "1");
    command.env("CARGO_MANIFEST_DIR", &program.folder);
    let output = process::run(&mut command, OutputVisibility::OnFailure)?;
    Ok((!output.success).then(|| output.all()))
}
