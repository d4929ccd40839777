//! What is found, how bad it is, and what helps.

use serde::Serialize;
use std::fmt::Write;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    /// As it should be.
    Ok,
    /// It works, and less well than it could.
    Warning,
    /// Something does not work.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// What was looked at, in a word.
    pub(super) check: &'static str,
    pub(super) verdict: Verdict,
    /// What was seen.
    pub(super) seen: String,
    /// What helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, seen: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Ok, seen: seen.into(), remedy: None }
    }

    pub(super) fn warning(check: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Warning, seen: seen.into(), remedy: Some(remedy.into()) }
    }

    pub(super) fn problem(check: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Verdict::Problem, ..Self::warning(check, seen, remedy) }
    }
}

/// A line for each, and a line below it for what helps.
pub(super) fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { check, verdict, seen, remedy } in findings {
        let verdict = match verdict {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Problem => "PROBLEM",
        };
        let _ = writeln!(text, "{verdict:<8} {check:<8} {seen}");
        if let Some(remedy) = remedy {
            let _ = writeln!(text, "{:<18}remedy: {remedy}", "");
        }
    }
    text
}
