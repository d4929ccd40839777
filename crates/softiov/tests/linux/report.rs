//! Runs the checks one after the other and prints their outcomes as a plain test program does, for readers of `cargo
//! test`'s output.

use crate::conformance;
use crate::world::LinuxTestbed;
use anyhow::Result;
use std::io::{Write, stdout};
use std::process::ExitCode;
use std::time::Instant;

/// Function of a named check on the guests. An error is the observation that made the check fail.
pub(crate) type ScenarioCheck = fn(&mut LinuxTestbed) -> Result<LinuxCheckOutcome>;

/// Outcome of a check that did not fail.
#[derive(Debug)]
pub(crate) enum LinuxCheckOutcome {
    /// The check passed.
    Passed,
    /// The check could not run here, with the reason.
    Skipped(String),
}

/// Runs the checks whose names contain a word of the command line, and prints their outcomes.
pub(crate) fn run(checks: &[(&str, ScenarioCheck)]) -> ExitCode {
    start_log();
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str()));
    let chosen: Vec<_> = checks.iter().filter(|(name, _)| wants(name)).collect();
    let begun = Instant::now();
    println!("\nrunning {} tests", chosen.len());
    let (mut passed, mut failed) = (0, 0);
    let mut outcomes = Vec::new();
    let world = if chosen.is_empty() { None } else { Some(LinuxTestbed::start()) };
    match world {
        None => {}
        Some(Err(error)) => {
            println!("cannot start the guests: {error:#}");
            failed = chosen.len();
        }
        Some(Ok(mut world)) => {
            for (name, check) in &chosen {
                let outcome = run_one(name, *check, &mut world);
                outcomes.push((*name, outcome));
                if outcome == Some(false) {
                    failed += 1;
                } else {
                    passed += 1;
                }
            }
        }
    }
    if outcomes.len() == checks.len()
        && let Err(error) = conformance::follow(&outcomes)
    {
        println!("{error:#}");
        failed += 1;
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    let left_out = checks.len() - chosen.len();
    let seconds = begun.elapsed().as_secs_f32();
    println!(
        "\ntest result: {verdict}. {passed} passed; {failed} failed; 0 ignored; 0 measured; \
         {left_out} filtered out; finished in {seconds:.2}s\n"
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a check and prints its outcome. Returns true if the check passed, and `None` if it was skipped. A skipped check
/// counts as passed here, like a test that returns early; `cargo xtask test` counts the word SKIPPED.
fn run_one(name: &str, check: ScenarioCheck, world: &mut LinuxTestbed) -> Option<bool> {
    print!("test {name} ... ");
    let begun = Instant::now();
    // A closed terminal is no reason to stop.
    let _ = stdout().flush();
    let outcome = world.settle().and_then(|()| check(world));
    let seconds = begun.elapsed().as_secs_f32();
    match &outcome {
        Ok(LinuxCheckOutcome::Passed) => println!("ok ({seconds:.1} s)"),
        Ok(LinuxCheckOutcome::Skipped(why)) => println!("SKIPPED: {name}: {why}"),
        Err(error) => println!("FAILED ({seconds:.1} s)\n{}\n", cause_first(error)),
    }
    match outcome {
        Ok(LinuxCheckOutcome::Passed) => Some(true),
        Ok(LinuxCheckOutcome::Skipped(_)) => None,
        Err(_) => Some(false),
    }
}

/// Describes an error from its cause outwards. A scene's state is long, and reports keep the first lines of a failure.
fn cause_first(error: &anyhow::Error) -> String {
    let mut chain: Vec<_> = error.chain().map(ToString::to_string).collect();
    chain.reverse();
    chain.join("\n")
}

/// Sends the host's log to standard error: errors, or what RUST_LOG selects.
fn start_log() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false).init();
}
