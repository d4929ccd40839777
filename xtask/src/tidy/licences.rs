//! Checks by the SPDX expressions of the manifests that the project's licences permit distribution of all dependencies.

use super::finding::TidyFinding;
use crate::metadata::CargoPackage;

/// Licences, and licences with an exception, that require a notice at most.
const ALLOWED: [&str; 14] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

pub(super) fn check(packages: &[CargoPackage]) -> Vec<TidyFinding> {
    packages.iter().filter_map(finding).collect()
}

fn finding(package: &CargoPackage) -> Option<TidyFinding> {
    let licence = package.licence.as_deref();
    if licence.is_some_and(is_permissive) {
        return None;
    }
    let (name, version) = (&package.name, &package.version);
    Some(TidyFinding {
        file: "Cargo.lock".into(),
        line: 1,
        rule: "licence",
        what: format!(
            "dependency {name} {version} has the licence {}",
            licence.unwrap_or("no stated licence")
        ),
        remedy: "remove the dependency, or add a permissive licence to the list in xtask/src/tidy/licences.rs",
    })
}

/// Returns true if allowed licences satisfy an SPDX expression. An unreadable expression is not permissive.
fn is_permissive(expression: &str) -> bool {
    // Before SPDX expressions a slash meant a choice.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    choice(&mut rest) == Some(true) && rest.is_empty()
}

/// Parses `all OR all OR ...`, the alternatives of a licence expression. Returns true if one alternative is permissive.
fn choice(words: &mut &[&str]) -> Option<bool> {
    let mut permissive = all(words)?;
    while accept(words, "OR") {
        permissive |= all(words)?;
    }
    Some(permissive)
}

/// Parses `one AND one AND ...`, the parts of a licence expression. Returns true if all parts are permissive.
fn all(words: &mut &[&str]) -> Option<bool> {
    let mut permissive = one(words)?;
    while accept(words, "AND") {
        permissive &= one(words)?;
    }
    Some(permissive)
}

/// Parses a licence, a licence `WITH` an exception, or an expression in parentheses. Returns true if the licence or
/// expression is permissive.
fn one(words: &mut &[&str]) -> Option<bool> {
    if accept(words, "(") {
        let permissive = choice(words)?;
        return accept(words, ")").then_some(permissive);
    }
    let licence = take(words)?;
    if accept(words, "WITH") {
        let whole = format!("{licence} WITH {}", take(words)?);
        return Some(ALLOWED.contains(&whole.as_str()));
    }
    Some(ALLOWED.contains(&licence))
}

fn accept(words: &mut &[&str], wanted: &str) -> bool {
    let accepted = words.first() == Some(&wanted);
    if accepted {
        *words = &words[1..];
    }
    accepted
}

fn take<'a>(words: &mut &[&'a str]) -> Option<&'a str> {
    let (first, rest) = words.split_first()?;
    *words = rest;
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licence_needs_a_permissive_choice_in_every_part() {
        for yes in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR GPL-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR X",
        ] {
            assert!(is_permissive(yes), "{yes}");
        }
        for no in [
            "",
            "GPL-3.0",
            "MIT AND GPL-2.0",
            "MIT OR",
            "(MIT",
            "MIT)",
            "GPL-2.0 WITH LLVM-exception",
            "MIT MIT",
        ] {
            assert!(!is_permissive(no), "{no}");
        }
    }
}
