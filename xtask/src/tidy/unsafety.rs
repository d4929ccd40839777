//! Checks that the word `unsafe` appears in `crates/host` only. A lint of clippy requires a comment on each
//! block there. The exception is the attribute `unsafe(no_mangle)` in `proofs`: it names a function for the checker, runs
//! nothing, and no program of the product has it.

use std::path::Path;

use proc_macro2::Delimiter;

use super::finding::TidyFinding;
use super::source::{RustSource, group, ident, inside, line};

const HOME: &str = "crates/host";
/// Folder whose functions may have names that the compiler does not change.
const PROOFS: &str = "proofs";

pub(super) fn check(rust: &RustSource) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    if rust.path.starts_with(Path::new(HOME)) {
        return findings;
    }
    let named = rust.path.starts_with(PROOFS);
    rust.each(|tokens| {
        let attribute = group(tokens.get(1), Delimiter::Parenthesis).map(inside);
        let names = attribute.is_some_and(|words| words.len() == 1 && words[0].to_string() == "no_mangle");
        if named && names {
            return;
        }
        if ident(tokens.first()).is_some_and(|ident| ident == "unsafe") {
            let remedy = "move the code into crates/host behind a safe interface";
            findings.push(rust.finding(
                line(&tokens[0]),
                "unsafe",
                "unsafe code outside crates/host",
                remedy,
            ));
        }
    });
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str =
        "#![forbid(unsafe_code)]\n// unsafe\nconst A: &str = \"unsafe\";\nm! { unsafe { f() } }\n";

    #[test]
    fn unsafe_code_outside_the_host_crate_is_found() {
        let mut rust = RustSource::sample(SOURCE);
        let lines: Vec<_> = check(&rust).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [4], "neither comments, texts nor lint names count");
        rust.path = "crates/host/src/lib.rs".into();
        assert!(check(&rust).is_empty());
        rust.path = "crates/hostile/src/lib.rs".into();
        assert_eq!(check(&rust).len(), 1);
    }

    #[test]
    fn only_proofs_may_name_functions_for_a_linker() {
        let mut rust = RustSource::sample("#[unsafe(no_mangle)]\nfn f() {}\nfn g() { unsafe { f() } }\n");
        assert_eq!(check(&rust).len(), 2);
        rust.path = "proofs/src/lib.rs".into();
        let lines: Vec<_> = check(&rust).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [3]);
    }
}
