//! Finds type names that stand for different things in several crates. Test files are not read: a fixture is known
//! only within its file.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::TokenTree;

use super::place::{BudgetedFinding, owner};
use crate::tidy::source::{RustSource, ident, is_punct, line};

/// Maximum number of crates that may define types of the same name.
const MOST: usize = 2;

/// Rows of type names that mean the same in every crate, each with its reason.
const SHARED: &str = include_str!("shared-names.txt");

/// Returns the definitions of each type name that more crates define than permitted.
pub(super) fn check(sources: &[RustSource]) -> Vec<BudgetedFinding> {
    let mut places: BTreeMap<String, Vec<BudgetedFinding>> = BTreeMap::new();
    for rust in sources.iter().filter(|rust| !is_test(rust)) {
        for (name, line) in defined(rust) {
            let place = BudgetedFinding { file: rust.path.clone(), line, text: String::new() };
            places.entry(name).or_default().push(place);
        }
    }
    let shared: BTreeSet<_> =
        SHARED.lines().filter_map(|row| row.split_once("  ")).map(|row| row.0).collect();
    let unclear = places.into_iter().filter(|(name, _)| !shared.contains(name.as_str()));
    unclear.flat_map(|(name, places)| too_common(&name, places)).collect()
}

/// Returns the definitions of a type name with a message, if more crates have one than permitted.
fn too_common(name: &str, places: Vec<BudgetedFinding>) -> Vec<BudgetedFinding> {
    let crates: BTreeSet<_> = places.iter().map(|place| owner(&place.file)).collect();
    if crates.len() <= MOST {
        return Vec::new();
    }
    let crates = crates.into_iter().collect::<Vec<_>>().join(", ");
    let text = format!(
        "`{name}` is a type in {crates}: give it a name that says its purpose, or add a row to shared-names.txt"
    );
    places.into_iter().map(|place| BudgetedFinding { text: text.clone(), ..place }).collect()
}

/// Returns true if the file is below `tests` or `benches`, or is a module `tests`.
fn is_test(rust: &RustSource) -> bool {
    rust.path.iter().any(|part| ["tests", "benches", "tests.rs"].iter().any(|name| part == *name))
}

/// Returns name and line of each type and trait that a file defines. An alias counts outside of `impl` and
/// `trait` only.
fn defined(rust: &RustSource) -> Vec<(String, usize)> {
    let mut names = Vec::new();
    let mut add = |tokens: &[TokenTree], keywords: &[&str]| {
        let keyword =
            ident(tokens.first()).is_some_and(|word| keywords.iter().any(|keyword| word == keyword));
        if let (true, Some(name)) = (keyword, ident(tokens.get(1))) {
            names.push((name.to_string(), line(&tokens[0])));
        }
    };
    rust.each(|tokens| add(tokens, &["struct", "enum", "union", "trait"]));
    for start in 0..rust.tokens.len() {
        // `r#type` and a macro's `$type` are no aliases.
        let macro_variable = start > 0 && is_punct(rust.tokens.get(start - 1), '$');
        if !macro_variable {
            add(&rust.tokens[start..], &["type"]);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::source::TrackedFile;

    fn file(path: &str, text: &str) -> RustSource {
        RustSource::parse(&TrackedFile { path: path.into(), text: text.to_owned() }).unwrap()
    }

    #[test]
    fn type_name_that_three_crates_define_is_found() {
        let places = check(&[
            file("crates/a/src/lib.rs", "struct Kind;\ntrait Two {}\n"),
            file(
                "crates/b/src/lib.rs",
                "mod deep { pub enum Kind { A } }\nimpl Two for u8 { type Kind = u8; }\n",
            ),
            file("crates/c/src/lib.rs", "\ntype Kind = u8;\n"),
            file("crates/c/src/more.rs", "trait Two {}\n"),
            file("crates/d/tests/two.rs", "struct Two;\n"),
        ]);
        let found: Vec<_> = places.iter().map(|place| (place.file.to_str().unwrap(), place.line)).collect();
        assert_eq!(
            found,
            [("crates/a/src/lib.rs", 1), ("crates/b/src/lib.rs", 1), ("crates/c/src/lib.rs", 2)]
        );
    }
}
