//! Prints the table of results at the end of a test run. The last line is for programs too:
//! `N passed, N failed, N skipped`.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::stage::TestStage;
use super::tally::TestTally;

/// Result of a test stage: its counts and its duration.
#[derive(Debug)]
pub(super) struct StageResult {
    pub(super) stage: TestStage,
    pub(super) tally: TestTally,
    pub(super) took: Duration,
}

impl StageResult {
    fn verdict(&self) -> &'static str {
        match &self.tally {
            tally if tally.failed > 0 => "FAILED",
            tally if tally.passed == 0 => "skipped",
            _ => "ok",
        }
    }
}

impl fmt::Display for StageResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({:.1} s)", self.verdict(), self.tally, self.took.as_secs_f64())
    }
}

/// Table of all test stages, with the reasons of skipped tests, the failed tests, and the sums.
#[derive(Debug)]
pub(super) struct TestSummary<'a>(pub(super) &'a [StageResult]);

impl fmt::Display for TestSummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:8} {:8} {:>7} {:>7} {:>8} {:>9}", "stage", "", "passed", "failed", "skipped", "time")?;
        let mut sum = TestTally::default();
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for done in self.0 {
            let StageResult { stage, tally, took } = done;
            let (name, verdict, skips) = (stage.name(), done.verdict(), tally.skips());
            let seconds = took.as_secs_f64();
            writeln!(
                f,
                "{name:8} {verdict:8} {:7} {:7} {skips:8} {seconds:7.1} s",
                tally.passed, tally.failed
            )?;
            sum = sum.and(tally.clone());
            for reason in &tally.skipped {
                *reasons.entry(reason).or_default() += 1;
            }
        }
        for StageResult { stage, tally, .. } in self.0.iter().filter(|done| done.tally.failed > 0) {
            match tally.failures.as_slice() {
                [] => writeln!(f, "FAILED: {}: {}", stage.name(), stage.title())?,
                tests => tests.iter().try_for_each(|test| writeln!(f, "FAILED: {}: {test}", stage.name()))?,
            }
        }
        for (reason, times) in reasons {
            let times = if times > 1 { format!(" ({times} times)") } else { String::new() };
            writeln!(f, "SKIPPED: {reason}{times}")?;
        }
        if sum.ignored > 0 {
            writeln!(f, "SKIPPED: {} tests that are marked as ignored", sum.ignored)?;
        }
        writeln!(f, "\n{sum}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::TestFailure;
    use super::*;

    #[test]
    fn test_summary_names_failures_and_skips_and_ends_with_the_sum() {
        let skips = vec!["taps: no tun".to_owned(), "taps: no tun".to_owned(), "lspci: none".to_owned()];
        let test = TestTally {
            passed: 40,
            failed: 1,
            ignored: 2,
            skipped: skips,
            failures: vec![TestFailure {
                name: "rings::wrap".to_owned(),
                reason: Some("left: 1".to_owned()),
            }],
        };
        let took = Duration::from_millis(1500);
        let finished = [
            StageResult { stage: TestStage::Fmt, tally: TestTally::PASSED, took },
            StageResult { stage: TestStage::Doc, tally: TestTally::FAILED, took },
            StageResult { stage: TestStage::Test, tally: test, took },
            StageResult {
                stage: TestStage::Linux,
                tally: TestTally::skip("guests: left out".to_owned()),
                took,
            },
        ];
        let text = TestSummary(&finished).to_string();
        assert!(text.contains("fmt      ok             1       0        0     1.5 s\n"), "{text}");
        assert!(text.contains("test     FAILED        40       1        5     1.5 s\n"), "{text}");
        assert!(text.contains("linux    skipped        0       0        1     1.5 s\n"), "{text}");
        assert!(text.contains("FAILED: test: rings::wrap: left: 1\n"), "{text}");
        assert!(text.contains("FAILED: doc: documentation builds without warnings\n"), "{text}");
        assert!(text.contains("SKIPPED: taps: no tun (2 times)\n"), "{text}");
        assert!(text.contains("SKIPPED: 2 tests that are marked as ignored\n"), "{text}");
        assert_eq!(text.lines().last(), Some("41 passed, 2 failed, 6 skipped"));
    }
}
