//! Requires an opening comment (`//!`) in each Rust file. Other rules judge its words.

use super::finding::TidyFinding;
use super::source::RustSource;

pub(super) fn check(rust: &RustSource) -> Vec<TidyFinding> {
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
        assert!(check(&RustSource::sample("//! A sample.\n")).is_empty());
        assert_eq!(check(&RustSource::sample("use std::io;\n//! Late.\n")).len(), 1);
        assert_eq!(check(&RustSource::sample("//!\n//! An empty first line.\n")).len(), 1);
    }
}
