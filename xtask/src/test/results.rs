//! Reads what `cargo test` prints: the count of each test program, and the tests that say that they did not
//! run. Such a test counts as passed where it ran; here it counts as skipped instead.

use super::summary::Tally;

/// The sum over all test programs of a run.
pub(super) fn read<'a>(lines: impl Iterator<Item = &'a str>) -> Tally {
    let mut tally = Tally::default();
    for line in lines {
        if let Some(counts) = line.strip_prefix("test result: ") {
            tally.passed += count(counts, "passed");
            tally.failed += count(counts, "failed");
            tally.ignored += count(counts, "ignored");
        } else if let Some(skipped) = skipped(line) {
            tally.skipped.push(skipped.to_owned());
        }
    }
    tally.passed = tally.passed.saturating_sub(tally.skipped.len());
    tally
}

/// The number before a word: `ok. 3 passed; 0 failed; ...`.
fn count(counts: &str, of: &str) -> usize {
    let words: Vec<_> = counts.split([' ', ';']).collect();
    let number = words.windows(2).find(|pair| pair[1] == of).and_then(|pair| pair[0].parse().ok());
    number.unwrap_or(0)
}

/// What follows `SKIPPED:` at the beginning of a line, or after the name of a test whose output is not captured.
fn skipped(line: &str) -> Option<&str> {
    let (before, skipped) = line.split_once("SKIPPED: ")?;
    (before.is_empty() || before.starts_with("test ") && before.ends_with("... ")).then_some(skipped.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_programs_are_summed() {
        let output = "running 2 tests\ntest a ... ok\n\
            test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 5 filtered out; finished in 1.00s\n";
        let tally = read(output.lines());
        assert_eq!((tally.passed, tally.failed, tally.ignored), (15, 2, 1));
    }

    #[test]
    fn a_test_that_says_it_was_skipped_is_not_passed() {
        let output = "SKIPPED: taps: no /dev/net/tun\ntest b ... SKIPPED: golden: no lspci\n\
            expected \"SKIPPED: x\"\ntest result: ok. 3 passed; 0 failed; 0 ignored\n";
        let tally = read(output.lines());
        assert_eq!(tally.skipped, ["taps: no /dev/net/tun", "golden: no lspci"]);
        assert_eq!((tally.passed, tally.skips()), (1, 2));
    }
}
