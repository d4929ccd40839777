//! Holds rules with a budget, for faults that still exist and may only become fewer. These are unclear sentences and
//! names, files that import each other in circles, type names of several crates, long argument lists, and registers
//! without a source.
//! `xtask/tidy-budget.json` has the number that each crate may have. The rules without exceptions are elsewhere.

mod arguments;
mod budget;
mod circles;
mod imports;
mod place;
mod sources;
mod type_names;
mod words;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use super::finding::TidyFinding;
use super::source::{RustSource, TrackedFile};
use budget::FindingBudget;
use place::{
    ARGUMENTS, BudgetedFinding, CIRCLES, FindingCounts, OPENINGS, RIDDLES, SOURCES, TEST_NAMES, TYPE_NAMES,
    owner,
};

/// Findings of the rules with a budget, by crate and rule.
#[derive(Debug, Default)]
pub(super) struct BudgetedFindings(BTreeMap<(String, &'static str), Vec<BudgetedFinding>>);

impl BudgetedFindings {
    /// Applies all rules with a budget to the files of the checkout.
    pub(super) fn find(tracked: &[TrackedFile], sources: &[RustSource]) -> Self {
        let mut places = Self::default();
        for file in tracked {
            if file.is_rust() {
                places.add(OPENINGS, words::openings(file));
            }
            if file.is_rust() || file.path.extension().is_some_and(|extension| extension == "md") {
                places.add(RIDDLES, words::riddles(file));
            }
            places.add(SOURCES, sources::check(file));
        }
        for rust in sources {
            places.add(TEST_NAMES, words::test_names(rust));
            places.add(ARGUMENTS, arguments::check(rust));
        }
        places.add(TYPE_NAMES, type_names::check(sources));
        places.add(CIRCLES, circles::check(&imports::crates(sources)));
        places
    }

    fn add(&mut self, rule: &'static str, places: Vec<BudgetedFinding>) {
        for place in places {
            self.0.entry((owner(&place.file), rule)).or_default().push(place);
        }
    }

    /// Returns a finding for each count of places that differs from its budget.
    ///
    /// # Errors
    /// If the budget cannot be read.
    pub(super) fn findings(&self, root: &Path) -> Result<Vec<TidyFinding>> {
        Ok(FindingBudget::load(root)?.findings(&self.counts()))
    }

    /// Lowers the budget to the present counts. A count that rose is left and stays a finding.
    ///
    /// # Errors
    /// If the budget cannot be read or written.
    pub(super) fn lower_budget(&self, root: &Path) -> Result<()> {
        FindingBudget::load(root)?.lowered(&self.counts()).store(root)
    }

    /// Returns counts and budgets of all crates as a table.
    ///
    /// # Errors
    /// If the budget cannot be read.
    pub(super) fn table(&self, root: &Path) -> Result<String> {
        Ok(FindingBudget::load(root)?.table(&self.counts()))
    }

    /// Returns the findings of a crate as text, a line each.
    pub(super) fn list(&self, owner: &str) -> String {
        let of_crate = self.0.iter().filter(|((of, _), _)| of == owner);
        let lines = of_crate.flat_map(|((_, rule), places)| places.iter().map(move |place| (rule, place)));
        lines
            .map(|(rule, BudgetedFinding { file, line, text })| {
                format!("{}:{line}: {rule}: {text}\n", file.display())
            })
            .collect()
    }

    fn counts(&self) -> FindingCounts {
        self.0.iter().map(|(key, places)| (key.clone(), places.len())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tidy_findings_are_counted_by_crate() {
        let file = |path: &str, text: &str| TrackedFile { path: path.into(), text: text.to_owned() };
        let files = [
            file("crates/nic/src/a.rs", "/// What it does.\nfn f() {}\n"),
            file("xtask/src/b.rs", "#[test]\nfn who_is_it() {}\n"),
            file("docs/c.md", &format!("It goes\n{}.\n", "on")),
            file("docs/d.svg", &format!("It goes {}.\n", "on")),
        ];
        let sources: Vec<_> =
            files.iter().filter(|file| file.is_rust()).map(|file| RustSource::parse(file).unwrap()).collect();
        let places = BudgetedFindings::find(&files, &sources);
        let keys: Vec<_> = places.0.keys().map(|(owner, rule)| (owner.as_str(), *rule)).collect();
        assert_eq!(keys, [("nic", OPENINGS), ("pages", RIDDLES), ("xtask", TEST_NAMES)]);
    }
}
