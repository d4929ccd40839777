//! Every file opens by saying what it is and what it leaves out. Whether it says it well is for readers.

use super::Finding;
use super::source::Rust;

pub(super) fn check(rust: &Rust) -> Vec<Finding> {
    if rust.text.starts_with("//! ") {
        return Vec::new();
    }
    let remedy = "begin with a `//!` line that says what the file is and what it leaves out";
    vec![rust.finding(1, "opening", "the file does not open with `//! `", remedy)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_opens_with_what_it_is() {
        assert!(check(&Rust::sample("//! A sample.\n")).is_empty());
        assert_eq!(check(&Rust::sample("use std::io;\n//! Late.\n")).len(), 1);
        assert_eq!(check(&Rust::sample("//!\n//! An empty first line.\n")).len(), 1);
    }
}
