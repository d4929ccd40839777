//! Budget of findings: the number of places that each crate may still have for each tidy rule. A count above the budget
//! is a finding, and so is one below it, since the budget then has to shrink. Finds no places.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::place::{FindingCounts, RULES};
use crate::tidy::finding::TidyFinding;

/// Path of the budget's file, relative to the workspace.
const FILE: &str = "xtask/tidy-budget.json";

/// Permitted number of findings, by crate and tidy rule.
#[derive(Debug)]
pub(super) struct FindingBudget(BTreeMap<String, BTreeMap<String, usize>>);

impl FindingBudget {
    pub(super) fn load(root: &Path) -> Result<Self> {
        let text = fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
        Self::read(&text)
    }

    fn read(text: &str) -> Result<Self> {
        let value: serde_json::Value =
            serde_json::from_str(text).with_context(|| format!("{FILE} is not JSON"))?;
        let number = |(rule, count): (&String, &serde_json::Value)| {
            Some((rule.clone(), count.as_u64()?.try_into().ok()?))
        };
        let row = |(owner, row): (&String, &serde_json::Value)| {
            Some((owner.clone(), row.as_object()?.iter().map(number).collect::<Option<_>>()?))
        };
        let rows = value.as_object().and_then(|rows| rows.iter().map(row).collect());
        rows.map(Self).with_context(|| format!("{FILE} is not a table of numbers"))
    }

    pub(super) fn store(&self, root: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(&serde_json::json!(self.0))? + "\n";
        fs::write(root.join(FILE), text).with_context(|| format!("cannot write {FILE}"))
    }

    fn of(&self, owner: &str, rule: &str) -> usize {
        self.0.get(owner).and_then(|row| row.get(rule)).copied().unwrap_or(0)
    }

    /// Returns the budget with each number lowered to the count where that is smaller.
    pub(super) fn lowered(&self, counts: &FindingCounts) -> Self {
        let row = |(owner, row): (&String, &BTreeMap<String, usize>)| {
            let number =
                |(rule, budget): (&String, &usize)| (rule.clone(), (*budget).min(count(counts, owner, rule)));
            (
                owner.clone(),
                row.iter().map(number).filter(|(_, number)| *number > 0).collect::<BTreeMap<_, _>>(),
            )
        };
        Self(self.0.iter().map(row).filter(|(_, row)| !row.is_empty()).collect())
    }

    /// Returns a finding for each count of places that differs from its budget.
    pub(super) fn findings(&self, counts: &FindingCounts) -> Vec<TidyFinding> {
        let mut findings = Vec::new();
        for (owner, rule) in self.keys(counts) {
            let (count, budget) = (count(counts, &owner, rule), self.of(&owner, rule));
            if count != budget {
                let remedy = if count > budget {
                    "mend the added places (`cargo xtask tidy --list CRATE` lists all places); the budget \
                     never rises"
                } else {
                    "lower the budget: cargo xtask tidy --lower"
                };
                let what = format!(
                    "{owner} has {count} places that break the rule `{rule}`; the budget is {budget}"
                );
                findings.push(TidyFinding { file: FILE.into(), line: 1, rule: "budget", what, remedy });
            }
        }
        findings
    }

    /// Returns the counts and budgets of all crates as a table, with their sums.
    pub(super) fn table(&self, counts: &FindingCounts) -> String {
        let mut owners: Vec<_> = self.keys(counts).map(|(owner, _)| owner).collect();
        owners.dedup();
        let titles: String = RULES.iter().map(|rule| format!(" {rule:>10} {:>6}", "budget")).collect();
        let mut sums = RULES.map(|_| (0, 0));
        let mut text = format!("{:16}{titles}\n", "crate");
        for owner in &owners {
            let row = RULES.map(|rule| (count(counts, owner, rule), self.of(owner, rule)));
            text += &format!("{owner:16}{}\n", numbers(row));
            sums.iter_mut().zip(row).for_each(|(sum, pair)| *sum = (sum.0 + pair.0, sum.1 + pair.1));
        }
        text + &format!("{:16}{}\n", "all", numbers(sums))
    }

    /// Returns every pair of a crate and a rule that has a count or a budget.
    fn keys(&self, counts: &FindingCounts) -> impl Iterator<Item = (String, &'static str)> {
        let mut keys: Vec<(String, &'static str)> = counts.keys().cloned().collect();
        keys.extend(self.0.keys().flat_map(|owner| RULES.map(|rule| (owner.clone(), rule))));
        keys.sort();
        keys.dedup();
        keys.into_iter()
    }
}

/// Returns the pairs of count and budget of a row of the table as text.
fn numbers(row: [(usize, usize); RULES.len()]) -> String {
    row.iter().map(|(count, budget)| format!(" {count:10} {budget:6}")).collect()
}

fn count(counts: &FindingCounts, owner: &str, rule: &str) -> usize {
    let found = counts.iter().find(|((of, is), _)| of == owner && *is == rule);
    found.map_or(0, |(_, count)| *count)
}

#[cfg(test)]
mod tests {
    use super::super::place::{OPENINGS, RIDDLES};
    use super::*;

    fn counts(of: &[(&str, &'static str, usize)]) -> FindingCounts {
        of.iter().map(|&(owner, rule, count)| ((owner.to_owned(), rule), count)).collect()
    }

    #[test]
    fn tidy_count_above_or_below_its_budget_is_a_finding() {
        let budget = FindingBudget::read(r#"{"nic": {"openings": 3, "riddles": 2}}"#).unwrap();
        assert!(budget.findings(&counts(&[("nic", OPENINGS, 3), ("nic", RIDDLES, 2)])).is_empty());
        let findings =
            budget.findings(&counts(&[("nic", OPENINGS, 4), ("nic", RIDDLES, 1), ("avf", RIDDLES, 1)]));
        let found: Vec<_> = findings.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(
            found,
            [
                "avf has 1 places that break the rule `riddles`; the budget is 0",
                "nic has 4 places that break the rule `openings`; the budget is 3",
                "nic has 1 places that break the rule `riddles`; the budget is 2"
            ]
        );
    }

    #[test]
    fn tidy_budget_only_shrinks() {
        let budget =
            FindingBudget::read(r#"{"nic": {"openings": 3, "riddles": 2}, "avf": {"riddles": 1}}"#).unwrap();
        let lowered =
            budget.lowered(&counts(&[("nic", OPENINGS, 5), ("nic", RIDDLES, 1), ("plane", RIDDLES, 1)]));
        assert_eq!((lowered.of("nic", OPENINGS), lowered.of("nic", RIDDLES)), (3, 1));
        assert_eq!((lowered.of("plane", RIDDLES), lowered.0.len()), (0, 1));
    }
}
