//! `cargo xtask test`: every check in order, from cheap to dear, and what came of it. A failing stage does not
//! hide the ones behind it, except that nothing is run that could not be built; what could not run is said and
//! counted as skipped. What failed is named at the end; what it printed is shown where it ran.

mod ahead;
mod context;
mod demo;
pub(crate) mod process;
mod results;
mod setup;
mod stage;
mod summary;
pub(crate) mod tally;

use std::env;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;

use crate::metadata;
use ahead::Ahead;
use context::Context;
pub(crate) use context::GUEST_TESTS;
use stage::Stage;
use summary::Finished;
use tally::Tally;

/// Selects the stages to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Run formatting, tidy, lints and the unit tests of the pure crates, for the time between two edits. The other
    /// stages count as skipped.
    #[arg(long)]
    quick: bool,
    /// Run these stages and no others.
    #[arg(long, value_name = "STAGE", num_args = 1.., conflicts_with = "quick")]
    only: Vec<Stage>,
}

/// Runs the stages that were asked for, and tells of them on standard output.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let root = metadata::workspace_root()?;
    // In a fresh clone there is nothing that git could report; even a lock file that this very program's
    // build changed is an error there.
    let status =
        Context::git_status(&root).map(|now| if env::var_os("CI").is_some() { String::new() } else { now });
    let context = Context { root, status };
    let mut finished: Vec<Finished> = Vec::new();
    let mut ahead = Ahead::default();
    let stages = options.stages();
    for &stage in &stages {
        let built = finished.iter().all(|done| done.stage != Stage::Build || done.tally.failed == 0);
        println!("\n== {}: {}", stage.name(), stage.title());
        let begun = Instant::now();
        let tally = match options.reason_to_skip(stage, built) {
            Some(reason) => Tally::skip(format!("{}: {reason}", stage.title())),
            None => {
                match stage {
                    Stage::Linux if stages.contains(&Stage::Demo) => ahead.begin(&context.root),
                    Stage::Instructions | Stage::Demo => ahead.wait(),
                    _ => {}
                }
                stage.run(&context).unwrap_or_else(|error| {
                    println!("{error:#}");
                    Tally::FAILED
                })
            }
        };
        let done = Finished { stage, tally, took: begun.elapsed() };
        println!("   {done}");
        finished.push(done);
    }
    println!("\n{}", summary::Summary(&finished));
    let failed = finished.iter().any(|done| done.tally.failed > 0);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl Options {
    fn stages(&self) -> Vec<Stage> {
        let selects = |stage: &Stage| {
            let (whole, named) = (self.only.is_empty(), self.only.contains(stage));
            named || whole && (self.quick || !stage.is_part_of_another())
        };
        Stage::ALL.into_iter().filter(selects).collect()
    }

    fn reason_to_skip(&self, stage: Stage, built: bool) -> Option<&'static str> {
        if self.quick && !stage.is_quick() {
            Some("skipped by --quick")
        } else if !built && stage.needs_build() {
            Some("skipped because the build failed")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_stages_run_in_fixed_order() {
        let options = Options { quick: false, only: vec![Stage::Test, Stage::Fmt] };
        assert_eq!(options.stages(), [Stage::Fmt, Stage::Test]);
    }

    #[test]
    fn whole_test_run_has_every_stage_once() {
        let all = Options { quick: false, only: Vec::new() };
        let mut expected = Stage::ALL.to_vec();
        // The stage `test` runs the unit tests of all crates.
        expected.retain(|stage| *stage != Stage::Unit);
        assert_eq!(all.stages(), expected);
    }

    #[test]
    fn quick_test_run_has_four_stages() {
        let options = Options { quick: true, only: Vec::new() };
        let mut stages = options.stages();
        stages.retain(|&stage| options.reason_to_skip(stage, true).is_none());
        assert_eq!(stages, [Stage::Fmt, Stage::Tidy, Stage::Clippy, Stage::Unit]);
    }

    #[test]
    fn skipped_test_stage_has_a_reason() {
        let options = Options { quick: true, only: Vec::new() };
        assert_eq!(options.reason_to_skip(Stage::Linux, true), Some("skipped by --quick"));
        let options = Options { quick: false, only: Vec::new() };
        assert_eq!(options.reason_to_skip(Stage::Test, false), Some("skipped because the build failed"));
        assert_eq!(options.reason_to_skip(Stage::Test, true), None);
        assert_eq!(options.reason_to_skip(Stage::Tree, false), None);
    }
}
