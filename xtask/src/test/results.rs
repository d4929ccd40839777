//! Parses the output of `cargo test`: the counts of each test program, the names of failed tests, and the tests that
//! report that they did not run. `cargo test` counts these as passed; here they count as skipped.

use super::tally::{TestFailure, TestTally};
use std::collections::BTreeMap;

/// Returns the test counts of all test programs of a run together, with the failed tests and their reasons.
pub(super) fn read<'a>(lines: impl Iterator<Item = &'a str>) -> TestTally {
    let mut tally = TestTally::default();
    let mut reasons = FailureReasonParser::default();
    for line in lines {
        reasons.read(line);
        if let Some(counts) = line.strip_prefix("test result: ") {
            tally.passed += count(counts, "passed");
            tally.failed += count(counts, "failed");
            tally.ignored += count(counts, "ignored");
        } else if let Some(skipped) = skipped(line) {
            tally.skipped.push(skipped.to_owned());
        } else if let Some((name, "FAILED")) = verdict(line) {
            tally.failures.push(TestFailure { name: name.to_owned(), reason: None });
        }
    }
    for failure in &mut tally.failures {
        failure.reason = reasons.found.remove(failure.name.as_str());
    }
    tally.passed = tally.passed.saturating_sub(tally.skipped.len());
    tally
}

/// Parser of the reasons of failed tests: the text of a panic, or the line after the verdict of a check of guests.
#[derive(Debug, Default)]
struct FailureReasonParser<'a> {
    found: BTreeMap<&'a str, String>,
    /// Failed test whose reason the next lines print.
    test: Option<&'a str>,
    /// True if the next line of the output is the reason of the failure.
    is_next: bool,
}

impl<'a> FailureReasonParser<'a> {
    fn read(&mut self, line: &'a str) {
        if let Some((name, "FAILED")) = verdict(line) {
            // Only a check of guests has a duration after its verdict.
            (self.test, self.is_next) = (Some(name), line.ends_with(')'));
        } else if let Some(name) =
            line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" stdout ----"))
        {
            (self.test, self.is_next) = (Some(name), false);
        } else if line.starts_with("thread '") && line.contains(" panicked at ") {
            self.is_next = true;
        } else if let Some(test) = self.test.filter(|_| self.is_next) {
            self.found.entry(test).or_insert_with(|| line.to_owned());
            (self.test, self.is_next) = (None, false);
        }
    }
}

/// Returns the output of a failed test run without the passed tests and their output.
pub(super) fn without_successes<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut in_successes = false;
    let mut kept = Vec::new();
    for line in lines {
        match line {
            "successes:" => in_successes = true,
            "failures:" => in_successes = false,
            line if line.starts_with("test result: ") => in_successes = false,
            _ => {}
        }
        let passed = verdict(line).is_some_and(|(_, verdict)| verdict != "FAILED");
        let repeats_blank = line.is_empty() && kept.last().is_some_and(|last: &&str| last.is_empty());
        if !in_successes && !passed && !repeats_blank {
            kept.push(line);
        }
    }
    kept
}

/// Returns the names of slow tests that have not ended, from the lines `test NAME has been running for over 60
/// seconds`.
pub(super) fn unfinished<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut under_way = Vec::new();
    for line in lines {
        if let Some((name, _)) = verdict(line) {
            under_way.retain(|slow| *slow != name);
        } else if let Some((name, _)) =
            line.strip_prefix("test ").and_then(|line| line.split_once(" has been running for over "))
        {
            under_way.push(name);
        }
    }
    under_way
}

/// Returns name and first word of the outcome in `test NAME ... OUTCOME`.
fn verdict(line: &str) -> Option<(&str, &str)> {
    let (name, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let outcome = outcome.split(' ').next().unwrap_or_default();
    ["ok", "ignored", "FAILED"].contains(&outcome).then_some((name, outcome))
}

/// Returns the number before the word `of` in cargo's line of test counts: `ok. 3 passed; 0 failed; ...`.
fn count(counts: &str, of: &str) -> usize {
    let words: Vec<_> = counts.split([' ', ';']).collect();
    let number = words.windows(2).find(|pair| pair[1] == of).and_then(|pair| pair[0].parse().ok());
    number.unwrap_or(0)
}

/// Returns the text after `SKIPPED:` at the beginning of a line, or after the name of a test whose output is not
/// captured.
fn skipped(line: &str) -> Option<&str> {
    let (before, skipped) = line.split_once("SKIPPED: ")?;
    (before.is_empty() || before.starts_with("test ") && before.ends_with("... ")).then_some(skipped.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_results_of_all_programs_are_summed() {
        let output = "running 2 tests\ntest a ... ok\n\
            test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            test b::c ... FAILED\ntest d ... FAILED (1.2 s)\n\
            test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 5 filtered out; finished in 1.00s\n";
        let tally = read(output.lines());
        assert_eq!((tally.passed, tally.failed, tally.ignored), (15, 2, 1));
        assert!(tally.failures.iter().map(|failure| failure.name.as_str()).eq(["b::c", "d"]));
    }

    #[test]
    fn test_failure_has_the_reason_that_the_test_printed() {
        let output = "test a::b ... FAILED\ntest c ... FAILED\n\nsuccesses:\n\n---- d stdout ----\nSKIPPED: d: no tap\n\n\
            failures:\n\n---- a::b stdout ----\nseen\n\nthread 'a::b' (7) panicked at crates/a.rs:3:5:\n\
            assertion failed: one\nnote: run\n\n---- c stdout ----\nError: none\n\nfailures:\n    a::b\n    c\n\
            test e ... FAILED (1.2 s)\nguest: the link should be up\nmore\ntest f ... ok (1.0 s)\n";
        let reasons: Vec<_> =
            read(output.lines()).failures.into_iter().map(|failure| failure.reason).collect();
        let [one, guest] =
            ["assertion failed: one", "guest: the link should be up"].map(|text| Some(text.to_owned()));
        assert_eq!(reasons, [one, None, guest]);
    }

    #[test]
    fn failed_test_run_is_shown_without_passed_tests() {
        let output = "   Running a\n\nrunning 3 tests\ntest a ... ok\ntest b ... FAILED\ntest c ... ignored\n\n\
            successes:\n\n---- a stdout ----\nthread 'a' panicked as it should\n\nsuccesses:\n    a\n\n\
            failures:\n\n---- b stdout ----\nleft: 1\n\nfailures:\n    b\n\n\
            test result: FAILED. 1 passed; 1 failed\n\nsuccesses:\n    z\n\ntest result: ok. 1 passed\n";
        let kept = without_successes(output.lines()).join("\n");
        let expected = "   Running a\n\nrunning 3 tests\ntest b ... FAILED\n\n\
            failures:\n\n---- b stdout ----\nleft: 1\n\nfailures:\n    b\n\n\
            test result: FAILED. 1 passed; 1 failed\n\ntest result: ok. 1 passed";
        assert_eq!(kept, expected);
    }

    #[test]
    fn slow_test_counts_as_running_until_its_result_is_printed() {
        let output = "test a has been running for over 60 seconds\ntest b ... ok\n\
            test c has been running for over 60 seconds\ntest a ... ok";
        assert_eq!(unfinished(output.lines()), ["c"]);
    }

    #[test]
    fn test_that_reports_a_skip_is_not_counted_as_passed() {
        let output = "SKIPPED: taps: no /dev/net/tun\ntest b ... SKIPPED: golden: no lspci\n\
            expected \"SKIPPED: x\"\ntest result: ok. 3 passed; 0 failed; 0 ignored\n";
        let tally = read(output.lines());
        assert_eq!(tally.skipped, ["taps: no /dev/net/tun", "golden: no lspci"]);
        assert_eq!((tally.passed, tally.skips()), (1, 2));
    }
}
