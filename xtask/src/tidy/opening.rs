//! Requires an opening comment in each file. Other rules judge its words.

use super::finding::Finding;
use super::source::Rust;

pub(super) fn check(rust: &Rust) -> Vec<Finding> {
    if rust.text.starts_with("//! ") {
        return Vec::new();
    }
    let remedy = "begin the file with a `//!` line that names the file's purpose";
    vec![rust.finding(1, "opening", "the file does not open with `//! `", remedy)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_file_must_open_with_a_module_comment() {
        assert!(check(&Rust::sample("//! A sample.\n")).is_empty());
        assert_eq!(check(&Rust::sample("use std::io;\n//! Late.\n")).len(), 1);
        assert_eq!(check(&Rust::sample("//!\n//! An empty first line.\n")).len(), 1);
    }
}
