//! Result of a fuzz target: what libFuzzer's output says, and the table of all targets.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitStatus;

use serde_json::json;

/// Last lines of a target's output that are printed after a crash.
const LAST_LINES: usize = 12;

/// Result of one run of a fuzz target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TargetReport {
    pub(super) target: String,
    /// Number of inputs that were run.
    pub(super) executions: u64,
    pub(super) executions_a_second: u64,
    /// Number of edges between basic blocks that all inputs together reached.
    pub(super) edges: u64,
    /// Command that repeats the crash, if the target crashed.
    pub(super) crash: Option<String>,
    /// File with the input of the crash.
    artifact: Option<String>,
    /// Lines of the output that are no status, the last ones.
    output: Vec<String>,
}

/// Reads a line of libFuzzer's output: a status (`#123 NEW cov: 7 ft: 9 ... exec/s: 41`), a final figure, the file of a
/// crash, or other text.
pub(super) fn read_line(line: &str, report: &mut TargetReport) {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    if let Some(status) = line.strip_prefix('#') {
        let words: Vec<&str> = status.split_whitespace().collect();
        let value = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            number(words.get(at + 1)?)
        };
        if let Some(executions) = words.first().and_then(|word| number(word)) {
            report.executions = report.executions.max(executions);
        }
        report.edges = value("cov:").unwrap_or(report.edges);
        report.executions_a_second = value("exec/s:").unwrap_or(report.executions_a_second);
    } else if let Some(value) = line.strip_prefix("stat::number_of_executed_units:") {
        report.executions = number(value).unwrap_or(report.executions);
    } else if let Some(value) = line.strip_prefix("stat::average_exec_per_sec:") {
        report.executions_a_second = number(value).unwrap_or(report.executions_a_second);
    } else if let Some((_, path)) = line.split_once("Test unit written to ") {
        report.artifact = Some(path.trim().to_owned());
    } else {
        report.output.push(line.to_owned());
        let surplus = report.output.len().saturating_sub(LAST_LINES);
        report.output.drain(..surplus);
    }
}

impl TargetReport {
    pub(super) fn new(target: &str) -> Self {
        Self { target: target.to_owned(), ..Self::default() }
    }

    /// Returns a line about a running target.
    pub(super) fn progress(&self) -> String {
        format!("{}: {} executions, {} edges", self.target, self.executions, self.edges)
    }

    /// Records that the process of the target failed.
    pub(super) fn set_crash(&mut self, status: ExitStatus, program: &Path) {
        let repeat = self.artifact.as_ref().map(|artifact| format!("{} {artifact}", program.display()));
        self.crash =
            Some(repeat.unwrap_or_else(|| format!("{} ended without an input: {status}", self.target)));
    }

    /// Returns the text about a crash: the end of the target's output, and the command that repeats the crash.
    pub(super) fn crash_text(&self) -> String {
        let crash = self.crash.as_deref().unwrap_or_default();
        format!("{}: crash\n{}\nrepeat it with: {crash}", self.target, self.output.join("\n"))
    }
}

/// Returns the results of all targets as a table for people.
pub(super) fn table(reports: &[TargetReport]) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{:<22} {:>12} {:>9} {:>7}  crash", "target", "executions", "a second", "edges");
    for report in reports {
        let TargetReport { target, executions, executions_a_second, edges, crash, .. } = report;
        let crash = crash.as_deref().unwrap_or("-");
        let _ = writeln!(text, "{target:<22} {executions:>12} {executions_a_second:>9} {edges:>7}  {crash}");
    }
    let sum: u64 = reports.iter().map(|report| report.executions).sum();
    let crashes = reports.iter().filter(|report| report.crash.is_some()).count();
    let _ = writeln!(text, "{} targets, {sum} executions, {crashes} crashes", reports.len());
    text
}

/// Returns the results of all targets as a list of JSON objects.
pub(super) fn json(reports: &[TargetReport]) -> String {
    let list: Vec<_> = reports
        .iter()
        .map(|report| {
            json!({
                "target": report.target,
                "executions": report.executions,
                "executions_per_second": report.executions_a_second,
                "edges": report.edges,
                "crash": report.crash,
            })
        })
        .collect();
    format!("{:#}\n", serde_json::Value::from(list))
}

#[cfg(test)]
mod tests {
    use super::{TargetReport, json, read_line, table};

    fn report(output: &str) -> TargetReport {
        let mut report = TargetReport::new("journal");
        output.lines().for_each(|line| read_line(line, &mut report));
        report
    }

    #[test]
    fn fuzzer_status_lines_give_executions_and_edges() {
        let output = "INFO: Seed: 7\n#2\tINITED cov: 90 ft: 91 corp: 1/1b exec/s: 0 rss: 38Mb\n\
                      #4096\tpulse  cov: 321 ft: 700 corp: 40/2Kb lim: 4096 exec/s: 2048 rss: 40Mb\n\
                      stat::number_of_executed_units: 5000\nstat::average_exec_per_sec:     2500\n";
        let TargetReport { executions, executions_a_second, edges, crash, .. } = report(output);
        assert_eq!((executions, executions_a_second, edges, crash), (5000, 2500, 321, None));
    }

    #[test]
    fn crash_of_a_fuzz_target_names_the_command_that_repeats_it() {
        use std::os::unix::process::ExitStatusExt;
        let output = "#9\tNEW    cov: 3 ft: 4\nthread 'main' panicked at a.rs:1:2:\n\
                      artifact_prefix='x/'; Test unit written to x/journal-crash-00ff\n";
        let mut report = report(output);
        let status = std::process::ExitStatus::from_raw(77 << 8);
        report.set_crash(status, std::path::Path::new("target/journal"));
        assert_eq!(report.crash.as_deref(), Some("target/journal x/journal-crash-00ff"));
        assert!(report.crash_text().contains("panicked at a.rs:1:2"));
        assert!(table(std::slice::from_ref(&report)).ends_with("1 targets, 9 executions, 1 crashes\n"));
        assert!(json(&[report]).contains("\"edges\": 3"));
    }
}
