//! Results of cases in a guest, as a table and as JSON.

use super::bus::LongestAccess;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Result of a case, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestVerdict {
    /// No check of the guest has found a broken rule.
    Passed,
    /// The device or its PF answered otherwise than the rule demands.
    AnswerDiffers,
    /// An access to a register took longer than allowed.
    SlowAccess,
    /// The case changed the device's configuration space.
    ConfigChanged,
    /// The device does not work after the case, also after resets.
    DeviceSilent,
}

/// Result of a case with its figures.
#[derive(Debug, Clone, Serialize)]
pub struct GuestResult {
    /// Name of the case's group.
    pub group: &'static str,
    /// Name of the case.
    pub case: &'static str,
    /// Rule that the device must keep.
    pub rule: &'static str,
    /// Worst result of the checks.
    pub result: GuestVerdict,
    /// Explanation of a result other than passed.
    pub detail: Option<String>,
    /// Duration in microseconds of the longest access to a register.
    pub longest_access_us: u64,
    /// Byte offset of the register with the longest access.
    pub longest_access_register: u32,
    /// Time in milliseconds from the end of the case until the device has completed a frame of a well-behaved driver.
    pub recovery_ms: u64,
}

/// Observations of a case, from which its result follows.
#[derive(Debug, Default)]
pub struct CaseObservations {
    /// Step that did not go as the rule demands.
    pub differs: Option<String>,
    /// Longest access of the case.
    pub longest: LongestAccess,
    /// Change of configuration space.
    pub config: Option<String>,
    /// Reason why the device is taken to be silent.
    pub silent: Option<String>,
    /// Time until the device worked again.
    pub recovery: Duration,
}

impl CaseObservations {
    /// Returns the worst result, and the explanations of all that are not passed. `limit` is the longest allowed access.
    #[must_use]
    pub fn judge(&self, limit: Duration) -> (GuestVerdict, Option<String>) {
        let LongestAccess { time, register, is_write } = self.longest;
        let kind = if is_write { "write" } else { "read" };
        let slow = (time > limit)
            .then(|| format!("a {kind} of register {register:#x} took {} ms", time.as_millis()));
        let found = [
            (GuestVerdict::DeviceSilent, self.silent.clone()),
            (GuestVerdict::ConfigChanged, self.config.clone()),
            (GuestVerdict::SlowAccess, slow),
            (GuestVerdict::AnswerDiffers, self.differs.clone()),
        ];
        let worst = found.iter().find(|(_, text)| text.is_some());
        let verdict = worst.map_or(GuestVerdict::Passed, |(verdict, _)| *verdict);
        let texts: Vec<_> = found.into_iter().filter_map(|(_, text)| text).collect();
        (verdict, (!texts.is_empty()).then(|| texts.join("; ")))
    }
}

/// Case for the device that would not test its rule in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InapplicableCase {
    /// Name of the case.
    pub case: &'static str,
    /// Reason why the case would not test its rule.
    pub reason: String,
}

/// Results of all cases on a device.
#[derive(Debug, Default, Serialize)]
pub struct GuestReport {
    /// PCI address of the device.
    pub device: String,
    /// Vendor and device id.
    pub id: String,
    /// Results in the order of the cases.
    pub results: Vec<GuestResult>,
    /// Names of the cases that did not run, since the device was silent or a signal ended the run.
    pub not_run: Vec<&'static str>,
    /// Cases for the device that the run left out.
    pub not_applicable: Vec<InapplicableCase>,
    /// True if a signal ended the run.
    pub interrupted: bool,
}

impl GuestReport {
    /// Returns true if every case ran and passed.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        let failed = self.results.iter().any(|result| result.result != GuestVerdict::Passed);
        !failed && self.not_run.is_empty() && !self.interrupted
    }
}

impl GuestVerdict {
    /// Returns the result's words in the table.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::AnswerDiffers => "ANSWER DIFFERS",
            Self::SlowAccess => "SLOW ACCESS",
            Self::ConfigChanged => "CONFIG CHANGED",
            Self::DeviceSilent => "DEVICE SILENT",
        }
    }
}

impl fmt::Display for GuestReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| case | rule | result | longest access | works again after |\n|---|---|---|---|---|")?;
        for result in &self.results {
            let GuestResult { case, rule, longest_access_us, recovery_ms, .. } = result;
            write!(f, "| {case} | {rule} | {} ", result.result.words())?;
            writeln!(f, "| {longest_access_us} us | {recovery_ms} ms |")?;
        }
        for result in self.results.iter().filter(|result| result.detail.is_some()) {
            writeln!(f, "\n{}: {}", result.case, result.detail.as_deref().unwrap_or_default())?;
        }
        if !self.not_run.is_empty() {
            let cause = if self.interrupted { "a signal ended the run" } else { "the device is silent" };
            writeln!(f, "\nnot run, since {cause}: {}", self.not_run.join(", "))?;
        }
        for InapplicableCase { case, reason } in &self.not_applicable {
            writeln!(f, "\nnot applicable: {case}: {reason}")?;
        }
        let passed = self.results.iter().filter(|result| result.result == GuestVerdict::Passed).count();
        let (others, not_run) = (self.results.len() - passed, self.not_run.len());
        let not_applicable = self.not_applicable.len();
        writeln!(
            f,
            "\n{passed} passed, {others} others, {not_run} not run, {not_applicable} not applicable, on {} ({})",
            self.device, self.id
        )?;
        write!(f, "The guest runs, so its VMM has survived: look at the VMM's log too.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worst_observation_is_the_result_and_all_are_told() {
        let longest = LongestAccess { time: Duration::from_millis(30), register: 0x3818, is_write: true };
        let mut seen = CaseObservations { longest, ..CaseObservations::default() };
        assert_eq!(seen.judge(Duration::from_millis(30)), (GuestVerdict::Passed, None));
        let slow = "a write of register 0x3818 took 30 ms";
        assert_eq!(seen.judge(Duration::from_millis(29)), (GuestVerdict::SlowAccess, Some(slow.into())));
        seen.differs = Some("step 1".into());
        let told = Some(format!("{slow}; step 1"));
        assert_eq!(seen.judge(Duration::from_millis(29)), (GuestVerdict::SlowAccess, told));
        seen.silent = Some("no frame".into());
        assert_eq!(seen.judge(Duration::MAX).0, GuestVerdict::DeviceSilent);
        assert_eq!(seen.judge(Duration::MAX).1.as_deref(), Some("no frame; step 1"));
    }

    #[test]
    fn report_lists_each_case_with_its_rule_and_figures() {
        let result = GuestResult {
            group: "resets",
            case: "a-case",
            rule: "a rule",
            result: GuestVerdict::ConfigChanged,
            detail: Some("byte 0x4 changed".into()),
            longest_access_us: 17,
            longest_access_register: 8,
            recovery_ms: 250,
        };
        let report = GuestReport {
            device: "0000:00:04.0".into(),
            id: "8086:10ca".into(),
            results: vec![result],
            not_run: vec!["another"],
            not_applicable: vec![InapplicableCase { case: "third", reason: "it needs --neighbour".into() }],
            interrupted: true,
        };
        let text = report.to_string();
        assert!(text.contains("| a-case | a rule | CONFIG CHANGED | 17 us | 250 ms |"), "{text}");
        assert!(text.contains("not run, since a signal ended the run: another"), "{text}");
        assert!(text.contains("not applicable: third: it needs --neighbour"), "{text}");
        assert!(text.contains("a-case: byte 0x4 changed"), "{text}");
        assert!(
            text.contains("0 passed, 1 others, 1 not run, 1 not applicable, on 0000:00:04.0 (8086:10ca)"),
            "{text}"
        );
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["results"][0]["result"], "config-changed");
        assert!(!report.has_passed());
    }
}
