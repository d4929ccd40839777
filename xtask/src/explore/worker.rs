//! Runs property tests with one seed, as many at a time as there are processors. Keeps nothing.

use std::process::Command;
use std::sync::Mutex;
use std::thread;

use anyhow::Result;

use super::cases::Case;
use super::properties::{Program, Property};
use super::{SEED, WRITES_NOTHING};
use crate::test::process::{self, Show};

/// Runs every property with the seed. Returns a case for each that fails.
pub(super) fn round(properties: &[Property], seed: u64) -> Result<Vec<Case>> {
    let waiting = Mutex::new(properties.iter());
    let work = || {
        let mut cases = Vec::new();
        loop {
            // The lock is free again before the test runs. A worker that panicked held it no longer than this either.
            let next = waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
            let Some(property) = next else { return Ok(cases) };
            if let Some(output) = failure(&property.program, &property.test, seed)? {
                cases.push(Case::new(property, seed, &output));
            }
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut cases = Vec::new();
        for worker in workers {
            cases.extend(worker.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a worker panicked")))?);
        }
        Ok(cases)
    })
}

/// Runs one test with a seed. Returns what it printed if it failed.
pub(super) fn failure(program: &Program, test: &str, seed: u64) -> Result<Option<String>> {
    let mut command = Command::new(&program.path);
    command.args(["--exact", test]).current_dir(&program.folder);
    command.env(SEED, seed.to_string()).env(WRITES_NOTHING, "1");
    command.env("CARGO_MANIFEST_DIR", &program.folder);
    let output = process::run(&mut command, Show::OnFailure)?;
    Ok((!output.success).then(|| output.all()))
}
