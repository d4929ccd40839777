//! What the checks found: for people line by line, for programs as JSON.

use serde::Serialize;
use std::fmt;

/// What came of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// What was expected.
    Passes,
    /// Not what the datasheet says, but nothing that the drivers depend on.
    Differs,
    /// Not what was expected.
    Fails,
    /// It could not be asked here.
    Skipped,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Differs => "differs",
            Self::Fails => "FAILS",
            Self::Skipped => "skipped",
        }
    }
}

/// One check: what was expected, what came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// Its name.
    pub check: &'static str,
    /// What was expected.
    pub expected: &'static str,
    /// What came, or why it was not asked.
    pub saw: String,
    /// What came of it.
    pub result: Verdict,
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<8} {:<20} {}", self.result.name(), self.check, self.expected)?;
        if self.saw.is_empty() { Ok(()) } else { write!(f, ": {}", self.saw) }
    }
}

/// A function that took part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionReport {
    /// Where it is.
    pub address: String,
    /// `pf` or `vf`.
    pub role: &'static str,
    /// Its Ethernet address.
    pub mac: String,
}

/// A whole run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The functions that our drivers drove.
    pub functions: Vec<FunctionReport>,
    /// The checks, in the order they were made.
    pub checks: Vec<CheckReport>,
}

impl Report {
    /// How many checks came to that.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.checks.iter().filter(|check| check.result == verdict).count()
    }

    /// Whether nothing failed.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.count(Verdict::Fails) == 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |verdict| self.count(verdict);
        write!(
            f,
            "{} passed, {} differed, {} failed, {} skipped",
            count(Verdict::Passes),
            count(Verdict::Differs),
            count(Verdict::Fails),
            count(Verdict::Skipped)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{CheckReport, FunctionReport, Report, Verdict};

    fn report() -> Report {
        let check =
            |result| CheckReport { check: "link", expected: "a link within 5 s", saw: "down".into(), result };
        let pf =
            FunctionReport { address: "0000:01:00.0".into(), role: "pf", mac: "02:00:00:00:00:01".into() };
        Report { functions: vec![pf], checks: vec![check(Verdict::Passes), check(Verdict::Fails)] }
    }

    #[test]
    fn the_json_has_the_promised_shape() {
        assert_eq!(
            serde_json::to_string(&report()).unwrap(),
            r#"{"functions":[{"address":"0000:01:00.0","role":"pf","mac":"02:00:00:00:00:01"}],"#.to_owned()
                + r#""checks":[{"check":"link","expected":"a link within 5 s","saw":"down","result":"passes"},"#
                + r#"{"check":"link","expected":"a link within 5 s","saw":"down","result":"fails"}]}"#
        );
    }

    #[test]
    fn one_failure_spoils_the_run_and_stands_out() {
        assert!(!report().is_good());
        assert_eq!(report().to_string(), "1 passed, 0 differed, 1 failed, 0 skipped");
        assert_eq!(report().checks[1].to_string(), "FAILS    link                 a link within 5 s: down");
    }
}
