//! Report of a run of the checks: line by line for people, as JSON for programs.

use serde::Serialize;
use std::fmt;

/// Verdict on a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CardCheckVerdict {
    /// The check passed: the card behaves as expected.
    Passes,
    /// The card differs from the datasheet, but in no point that the drivers depend on.
    Differs,
    /// The check failed: the card behaves otherwise than expected.
    Fails,
    /// The check was skipped: the run lacks a function that the check needs.
    Skipped,
}

impl CardCheckVerdict {
    fn name(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Differs => "differs",
            Self::Fails => "FAILS",
            Self::Skipped => "skipped",
        }
    }
}

/// Report of one check of the card: the expected behaviour, and the observed one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CardCheckReport {
    /// Name of the check.
    pub check: &'static str,
    /// Behaviour that the check expects of the card.
    pub expected: &'static str,
    /// Observed behaviour, or the reason why the check was skipped.
    pub saw: String,
    /// Verdict on the check.
    pub result: CardCheckVerdict,
}

impl fmt::Display for CardCheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<8} {:<20} {}", self.result.name(), self.check, self.expected)?;
        if self.saw.is_empty() { Ok(()) } else { write!(f, ": {}", self.saw) }
    }
}

/// Function that took part in a run of the checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckedFunctionReport {
    /// PCI address or socket of the function.
    pub address: String,
    /// Role of the function: `pf` or `vf`.
    pub role: &'static str,
    /// Ethernet address of the function.
    pub mac: String,
}

/// Report of a whole run of the checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CardCheckRunReport {
    /// Functions that this program's drivers drove.
    pub functions: Vec<CheckedFunctionReport>,
    /// Reports of the checks, in their order.
    pub checks: Vec<CardCheckReport>,
}

impl CardCheckRunReport {
    /// Returns the number of checks with the given verdict.
    #[must_use]
    pub fn count(&self, verdict: CardCheckVerdict) -> usize {
        self.checks.iter().filter(|check| check.result == verdict).count()
    }

    /// Returns true if no check of the run failed.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.count(CardCheckVerdict::Fails) == 0
    }
}

impl fmt::Display for CardCheckRunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |verdict| self.count(verdict);
        write!(
            f,
            "{} passed, {} differed, {} failed, {} skipped",
            count(CardCheckVerdict::Passes),
            count(CardCheckVerdict::Differs),
            count(CardCheckVerdict::Fails),
            count(CardCheckVerdict::Skipped)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{CardCheckReport, CardCheckRunReport, CardCheckVerdict, CheckedFunctionReport};

    fn report() -> CardCheckRunReport {
        let check = |result| CardCheckReport {
            check: "link",
            expected: "a link within 5 s",
            saw: "down".into(),
            result,
        };
        let pf = CheckedFunctionReport {
            address: "0000:01:00.0".into(),
            role: "pf",
            mac: "02:00:00:00:00:01".into(),
        };
        CardCheckRunReport {
            functions: vec![pf],
            checks: vec![check(CardCheckVerdict::Passes), check(CardCheckVerdict::Fails)],
        }
    }

    #[test]
    fn check_report_json_has_the_documented_form() {
        assert_eq!(
            serde_json::to_string(&report()).unwrap(),
            r#"{"functions":[{"address":"0000:01:00.0","role":"pf","mac":"02:00:00:00:00:01"}],"#.to_owned()
                + r#""checks":[{"check":"link","expected":"a link within 5 s","saw":"down","result":"passes"},"#
                + r#"{"check":"link","expected":"a link within 5 s","saw":"down","result":"fails"}]}"#
        );
    }

    #[test]
    fn failed_check_fails_the_whole_report() {
        assert!(!report().is_good());
        assert_eq!(report().to_string(), "1 passed, 0 differed, 1 failed, 0 skipped");
        assert_eq!(report().checks[1].to_string(), "FAILS    link                 a link within 5 s: down");
    }
}
