//! `cargo xtask test`: runs every check in order, from cheap to expensive, and reports the outcomes. Stages after a
//! failed one still run, except those that need a failed build. Checks that could not run count as skipped. The names
//! of failures are printed at the end, their output where they ran.

mod ahead;
mod cluster;
mod context;
mod demo;
pub(crate) mod kubernetes;
mod lints;
pub(crate) mod process;
mod results;
pub(crate) mod setup;
mod stage;
mod summary;
pub(crate) mod tally;

use std::env;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;

use crate::metadata;
use ahead::BackgroundBuilds;
pub(crate) use context::GUEST_TESTS;
use context::TestWorkspace;
use stage::TestStage;
use summary::StageResult;
use tally::TestTally;

/// Arguments of `cargo xtask test`: the stages to run.
#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// Run formatting, tidy, lints and the unit tests of the pure crates, for the time between two edits. The other
    /// stages count as skipped.
    #[arg(long)]
    quick: bool,
    /// Run these test stages and no others.
    #[arg(long, value_name = "STAGE", num_args = 1.., conflicts_with = "quick")]
    only: Vec<TestStage>,
}

/// Runs the selected test stages, and prints their outcomes on standard output.
pub(crate) fn run(options: &TestArgs) -> Result<ExitCode> {
    let root = metadata::workspace_root()?;
    // In a fresh clone there is nothing that git could report; even a lock file that this very program's
    // build changed is an error there.
    let status = TestWorkspace::git_status(&root)
        .map(|now| if env::var_os("CI").is_some() { String::new() } else { now });
    let context = TestWorkspace { root, status };
    let mut finished: Vec<StageResult> = Vec::new();
    let mut ahead = BackgroundBuilds::default();
    let stages = options.stages();
    for &stage in &stages {
        let built = finished.iter().all(|done| done.stage != TestStage::Build || done.tally.failed == 0);
        println!("\n== {}: {}", stage.name(), stage.title());
        let begun = Instant::now();
        let tally = match options.reason_to_skip(stage, built) {
            Some(reason) => TestTally::skip(format!("{}: {reason}", stage.title())),
            None => {
                match stage {
                    TestStage::Linux if stages.contains(&TestStage::Demo) => ahead.begin(&context.root),
                    TestStage::Instructions | TestStage::Demo => ahead.wait(),
                    _ => {}
                }
                stage.run(&context).unwrap_or_else(|error| {
                    println!("{error:#}");
                    TestTally::FAILED
                })
            }
        };
        let done = StageResult { stage, tally, took: begun.elapsed() };
        println!("   {done}");
        finished.push(done);
    }
    println!("\n{}", summary::TestSummary(&finished));
    let failed = finished.iter().any(|done| done.tally.failed > 0);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl TestArgs {
    fn stages(&self) -> Vec<TestStage> {
        let selects = |stage: &TestStage| {
            let (whole, named) = (self.only.is_empty(), self.only.contains(stage));
            named || whole && !stage.is_by_name() && (self.quick || !stage.is_part_of_another())
        };
        TestStage::ALL.into_iter().filter(selects).collect()
    }

    fn reason_to_skip(&self, stage: TestStage, built: bool) -> Option<&'static str> {
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
        let options = TestArgs { quick: false, only: vec![TestStage::Test, TestStage::Fmt] };
        assert_eq!(options.stages(), [TestStage::Fmt, TestStage::Test]);
    }

    #[test]
    fn full_test_run_has_every_stage_once() {
        let all = TestArgs { quick: false, only: Vec::new() };
        let mut expected = TestStage::ALL.to_vec();
        // The stage `test` runs the unit tests of all crates, and the cluster runs by name.
        expected.retain(|stage| *stage != TestStage::Unit && *stage != TestStage::Kubernetes);
        assert_eq!(all.stages(), expected);
    }

    #[test]
    fn quick_test_run_has_four_stages() {
        let options = TestArgs { quick: true, only: Vec::new() };
        let mut stages = options.stages();
        stages.retain(|&stage| options.reason_to_skip(stage, true).is_none());
        assert_eq!(stages, [TestStage::Fmt, TestStage::Tidy, TestStage::Clippy, TestStage::Unit]);
    }

    #[test]
    fn skipped_test_stage_has_a_reason() {
        let options = TestArgs { quick: true, only: Vec::new() };
        assert_eq!(options.reason_to_skip(TestStage::Linux, true), Some("skipped by --quick"));
        let options = TestArgs { quick: false, only: Vec::new() };
        assert_eq!(options.reason_to_skip(TestStage::Test, false), Some("skipped because the build failed"));
        assert_eq!(options.reason_to_skip(TestStage::Test, true), None);
        assert_eq!(options.reason_to_skip(TestStage::Tree, false), None);
    }
}
