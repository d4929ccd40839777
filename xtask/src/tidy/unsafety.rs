//! Checks that the word `unsafe` appears in `crates/host` only. A lint of clippy requires a comment on each
//! block there.

use std::path::Path;

use super::finding::TidyFinding;
use super::source::{RustSource, ident, line};

const HOME: &str = "crates/host";

pub(super) fn check(rust: &RustSource) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    if rust.path.starts_with(Path::new(HOME)) {
        return findings;
    }
    rust.each(|tokens| {
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
}
