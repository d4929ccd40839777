//! Runs the checks and prints what came of them as a plain test program does, so that what reads the output of
//! `cargo test` reads this too. Left out: running side by side, and capturing output.

use crate::conformance;
use crate::world::World;
use anyhow::Result;
use std::io::{Write, stdout};
use std::process::ExitCode;
use std::time::Instant;

/// A check: it fails with what it saw.
pub(crate) type Check = fn(&mut World) -> Result<Outcome>;

/// What came of a check that did not fail.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// What it shows is so.
    Passed,
    /// It could not run here, and why.
    Skipped(String),
}

/// Runs the checks whose names contain what the command line asks for.
pub(crate) fn run(checks: &[(&str, Check)]) -> ExitCode {
    start_log();
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str()));
    let chosen: Vec<_> = checks.iter().filter(|(name, _)| wants(name)).collect();
    let begun = Instant::now();
    println!("\nrunning {} tests", chosen.len());
    let (mut passed, mut failed) = (0, 0);
    let mut outcomes = Vec::new();
    let world = if chosen.is_empty() { None } else { Some(World::start()) };
    match world {
        None => {}
        Some(Err(error)) => {
            println!("the guests cannot be brought up: {error:#}");
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

/// Whether the check passed; `None` if it was skipped. As with tests that return early, one that was skipped is
/// counted as passed here; `cargo xtask test` counts by the word SKIPPED.
fn run_one(name: &str, check: Check, world: &mut World) -> Option<bool> {
    print!("test {name} ... ");
    let begun = Instant::now();
    // A terminal that is gone is no reason to stop.
    let _ = stdout().flush();
    let outcome = world.settle().and_then(|()| check(world));
    let seconds = begun.elapsed().as_secs_f32();
    match &outcome {
        Ok(Outcome::Passed) => println!("ok ({seconds:.1} s)"),
        Ok(Outcome::Skipped(why)) => println!("SKIPPED: {name}: {why}"),
        Err(error) => println!("FAILED ({seconds:.1} s)\n{error:#}\n"),
    }
    match outcome {
        Ok(Outcome::Passed) => Some(true),
        Ok(Outcome::Skipped(_)) => None,
        Err(_) => Some(false),
    }
}

/// The host's log goes to standard error: errors, or what RUST_LOG asks for.
fn start_log() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false).init();
}
