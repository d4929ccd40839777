//! Results of cases as a table, and as JSON.

use crate::run::CaseResult;
use serde::Serialize;
use std::fmt;

/// Results of the cases on one host.
#[derive(Debug, Serialize)]
pub struct HostResults {
    /// Name of the attacked host, such as its build.
    pub host: String,
    /// Results in the order of the cases.
    pub results: Vec<CaseResult>,
}

/// Results of the cases on all hosts.
#[derive(Debug, Serialize)]
pub struct AttackReport {
    /// Results of each host.
    pub hosts: Vec<HostResults>,
}

impl AttackReport {
    /// Returns the number of cases that failed, over all hosts.
    #[must_use]
    pub fn failures(&self) -> usize {
        self.hosts.iter().flat_map(|host| &host.results).filter(|result| result.failure.is_some()).count()
    }
}

impl fmt::Display for AttackReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.hosts.iter().map(|host| host.host.as_str()).collect();
        writeln!(f, "| group | case | family | {} | rule | remedy |", names.join(" | "))?;
        writeln!(f, "|---|---|---|{}---|---|", "---|".repeat(names.len()))?;
        let cases = self.hosts.first().map_or(&[][..], |host| &host.results);
        for (at, CaseResult { group, case, family, rule, remedy, .. }) in cases.iter().enumerate() {
            write!(f, "| {group} | {case} | {family} |")?;
            for host in &self.hosts {
                let failed = host.results.get(at).is_some_and(|result| result.failure.is_some());
                write!(f, " {} |", if failed { "FAILED" } else { "ok" })?;
            }
            writeln!(f, " {rule} | {remedy} |")?;
        }
        for HostResults { host, results } in &self.hosts {
            for result in results {
                if let Some(failure) = &result.failure {
                    writeln!(f, "\n{} on {host}: {failure}", result.case)?;
                    writeln!(f, "  rule: {}\n  look at: {}", result.rule, result.remedy.code)?;
                }
            }
        }
        let all: usize = self.hosts.iter().map(|host| host.results.len()).sum();
        let failed = self.failures();
        write!(f, "\n{} passed, {failed} failed", all - failed)
    }
}
