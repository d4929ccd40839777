//! Findings of `softiov doctor`: name of the check, severity, observation and remedy.

use serde::Serialize;
use std::fmt::Write;

/// Severity of a finding of `softiov doctor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum DoctorVerdict {
    /// The check of `softiov doctor` found no fault.
    Ok,
    /// The checked part works, but slower or less safely than possible.
    Warning,
    /// The check of `softiov doctor` found that something does not work.
    Problem,
}

/// Result of one check of `softiov doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct DoctorFinding {
    /// Name of the check of `softiov doctor`, one word.
    pub(super) check: &'static str,
    pub(super) verdict: DoctorVerdict,
    /// State that the check observed.
    pub(super) seen: String,
    /// Remedy for the finding; none if the check found no fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
}

impl DoctorFinding {
    pub(super) fn ok(check: &'static str, seen: impl Into<String>) -> Self {
        Self { check, verdict: DoctorVerdict::Ok, seen: seen.into(), remedy: None }
    }

    pub(super) fn warning(check: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, verdict: DoctorVerdict::Warning, seen: seen.into(), remedy: Some(remedy.into()) }
    }

    pub(super) fn problem(check: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: DoctorVerdict::Problem, ..Self::warning(check, seen, remedy) }
    }
}

/// Returns findings as text, one line each, with the remedy on the line below.
pub(super) fn text(findings: &[DoctorFinding]) -> String {
    let mut text = String::new();
    for DoctorFinding { check, verdict, seen, remedy } in findings {
        let verdict = match verdict {
            DoctorVerdict::Ok => "ok",
            DoctorVerdict::Warning => "warning",
            DoctorVerdict::Problem => "PROBLEM",
        };
        let _ = writeln!(text, "{verdict:<8} {check:<8} {seen}");
        if let Some(remedy) = remedy {
            let _ = writeln!(text, "{:<18}remedy: {remedy}", "");
        }
    }
    text
}
