//! Counts sentences and names that a stranger has to solve: summaries that open with a question word or a pronoun, words
//! without an actor, test names that are no rule. A budget for each crate only shrinks. Left out: spelling and style.

mod budget;
mod rules;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use super::Finding;
use super::source::{Rust, Tracked};
use crate::metadata;
use budget::Budget;
use rules::Place;

/// Sentences and names that break a rule, by crate and rule.
type Places = BTreeMap<(String, &'static str), Vec<Place>>;

/// Shows the counts, or one crate's places, or lowers the budget.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// List the places of a crate (`pages` for pages outside the crates).
    #[arg(value_name = "CRATE")]
    places: Option<String>,
    /// Lower the budget to the present counts. A count that rose is left and stays a finding.
    #[arg(long, conflicts_with = "places")]
    lower: bool,
}

/// Runs `cargo xtask words`.
///
/// # Errors
/// If the checkout or the budget cannot be read, or the budget cannot be written.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let root = metadata::workspace_root()?;
    let places = places(&super::source::tracked(&root)?);
    let budget = Budget::load(&root)?;
    if options.lower {
        budget.lowered(&counts(&places)).store(&root)?;
    } else if let Some(wanted) = &options.places {
        for ((_, rule), places) in places.iter().filter(|((owner, _), _)| owner == wanted) {
            for Place { file, line, text } in places {
                println!("{}:{line}: {rule}: {text}", file.display());
            }
        }
    } else {
        print!("{}", budget.table(&counts(&places)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares the counts of the checkout with the budget.
///
/// # Errors
/// If the budget cannot be read.
pub(super) fn check(root: &Path, tracked: &[Tracked]) -> Result<Vec<Finding>> {
    Ok(Budget::load(root)?.findings(&counts(&places(tracked))))
}

/// Number of places, by crate and rule.
type Counts = BTreeMap<(String, &'static str), usize>;

fn counts(places: &Places) -> Counts {
    places.iter().map(|(key, places)| (key.clone(), places.len())).collect()
}

fn places(tracked: &[Tracked]) -> Places {
    let mut places = Places::new();
    for file in tracked {
        let mut found = Vec::new();
        if file.is_rust() {
            found.extend(rules::openings(file).into_iter().map(|place| (rules::OPENING, place)));
            // A file that is not Rust is a finding of another rule.
            let names = Rust::parse(file).map(|rust| rules::test_names(&rust)).unwrap_or_default();
            found.extend(names.into_iter().map(|place| (rules::TEST_NAME, place)));
        }
        if file.is_rust() || file.path.extension().is_some_and(|extension| extension == "md") {
            found.extend(rules::riddles(file).into_iter().map(|place| (rules::RIDDLE, place)));
        }
        for (rule, place) in found {
            places.entry((owner(&file.path), rule)).or_default().push(place);
        }
    }
    places
}

/// Returns the crate that a file belongs to; `pages` for files outside the crates.
fn owner(path: &Path) -> String {
    let folders: Vec<_> = path.iter().filter_map(|folder| folder.to_str()).collect();
    match folders.as_slice() {
        ["crates", name, _, ..] => (*name).to_owned(),
        [name @ ("xtask" | "fuzz"), _, ..] => (*name).to_owned(),
        _ => "pages".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_belong_to_crates() {
        let file = |path: &str, text: &str| Tracked { path: path.into(), text: text.to_owned() };
        let places = places(&[
            file("crates/nic/src/a.rs", "/// What it does.\nfn f() {}\n"),
            file("xtask/src/b.rs", "#[test]\nfn who_is_it() {}\n"),
            file("docs/c.md", &format!("It goes\n{}.\n", "on")),
            file("docs/d.svg", &format!("It goes {}.\n", "on")),
        ]);
        let keys: Vec<_> = places.keys().map(|(owner, rule)| (owner.as_str(), *rule)).collect();
        assert_eq!(keys, [("nic", rules::OPENING), ("pages", rules::RIDDLE), ("xtask", rules::TEST_NAME)]);
    }
}
