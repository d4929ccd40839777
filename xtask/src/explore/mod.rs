//! `cargo xtask explore`: runs every property test with new seeds until its time is over. It keeps a failing test as a
//! case in `xtask/found-cases.json`, and `cargo xtask test` runs each case again. proptest shrinks the input.

mod cases;
pub(crate) mod properties;
pub(crate) mod seed;
pub(crate) mod worker;

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};

use crate::metadata;
use cases::FailingCase;

/// Arguments of `cargo xtask explore`: bounds and start of a search.
#[derive(Debug, clap::Args)]
pub(crate) struct ExploreArgs {
    /// Draw new seeds for this many minutes; the round that is running then is finished.
    #[arg(long, value_name = "N", default_value_t = 10)]
    minutes: u64,
    /// Begin with this seed and count up from it, to repeat a search. Without it the clock chooses.
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Run only the property tests whose name contains this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
}

/// Runs property tests with new seeds until the time is over, and stores the failures that it finds.
///
/// # Errors
/// If the tests do not build, if no test has the name that was asked for, or if the file of cases cannot be written.
pub(crate) fn run(options: &ExploreArgs) -> Result<ExitCode> {
    let root = metadata::workspace_root()?;
    let mut properties = properties::all(&root)?;
    properties.retain(|property| property.test.contains(&options.only));
    ensure!(
        !properties.is_empty(),
        "no property test has `{}` in its name; give a part of a test's name, or none for all tests",
        options.only
    );
    let end = Instant::now() + Duration::from_secs(60 * options.minutes);
    let first = options.seed.unwrap_or_else(seed_of_the_clock);
    println!("{} property tests, first seed {first}, {} minutes", properties.len(), options.minutes);

    let mut found: Vec<FailingCase> = Vec::new();
    for (rounds, seed) in (first..=u64::MAX).enumerate() {
        if rounds > 0 && Instant::now() >= end {
            println!("{rounds} rounds, {} failures", found.len());
            break;
        }
        // A test that has failed would fail again, for the same reason as a rule.
        properties.retain(|property| !found.iter().any(|case| case.is_of(property)));
        let cases = worker::round(&properties, seed)?;
        let left = end.saturating_duration_since(Instant::now()).as_secs() / 60;
        println!("seed {seed}: {} tests, {} failures, {left} minutes left", properties.len(), cases.len());
        cases::add(&root, &cases)?;
        found.extend(cases);
    }
    for case in &found {
        println!("FOUND {case}");
    }
    if found.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "cases are kept in {}: for each one mend the defect, write the input as a test, and remove the case",
        cases::FILE
    );
    Ok(ExitCode::FAILURE)
}

/// Returns a seed that no earlier search is likely to have begun with.
fn seed_of_the_clock() -> u64 {
    // A clock before 1970 gives a seed as good as any other.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
