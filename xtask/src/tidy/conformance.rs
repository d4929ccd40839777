//! Checks that the table of docs/conformance.md has a row for each check of the Linux tests, and no other. The tests
//! themselves, which boot machines, compare the contents of the rows.

use std::collections::BTreeSet;

use super::finding::TidyFinding;
use super::source::TrackedFile;

const PAGE: &str = "docs/conformance.md";
const CHECKS: &str = "crates/softiov/tests/linux/main.rs";

pub(super) fn check(tracked: &[TrackedFile]) -> Vec<TidyFinding> {
    let text = |path| tracked.iter().find(|file| file.path.ends_with(path)).map_or("", |file| &file.text);
    compare(text(PAGE), text(CHECKS))
}

fn compare(page: &str, source: &str) -> Vec<TidyFinding> {
    let told = named(page, "| `", '`');
    let there = checks(source);
    let finding = |what| TidyFinding {
        file: PAGE.into(),
        line: 1,
        rule: "conformance",
        what,
        remedy: "run the Linux tests with SOFTIOV_RECORD=1",
    };
    let missing =
        there.difference(&told).map(|name| format!("the page has no row for the Linux check {name}"));
    let left_over = told
        .difference(&there)
        .map(|name| format!("the page has a row for {name}, which is not a Linux check"));
    missing.chain(left_over).map(finding).collect()
}

/// Returns the names of the checks (`module::check`) that the first file of the Linux tests lists.
pub(super) fn checks(text: &str) -> BTreeSet<&str> {
    named(text, "(\"", '"')
}

/// Returns the names of Linux checks (`module::check`) that stand between `beginning` and `end` in the lines of a text.
fn named<'a>(text: &'a str, beginning: &str, end: char) -> BTreeSet<&'a str> {
    let name = |line: &'a str| line.trim_start().strip_prefix(beginning)?.split_once(end).map(|pair| pair.0);
    text.lines().filter_map(name).filter(|name| name.contains("::")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conformance_rows_must_have_the_names_of_linux_checks() {
        let checks =
            "const CHECKS: &[(&str, Check)] = &[\n    (\"a::b\", a::b),\n    (\"a::c\", a::c),\n];\n";
        assert_eq!(compare("| `a::b` | x | passes |\n| `a::c` | x | passes |\n", checks), []);
        let found = compare("| `a::b` | x | passes |\n| `a::d` | x | passes |\n", checks);
        let found: Vec<_> = found.into_iter().map(|finding| finding.what).collect();
        assert_eq!(
            found,
            [
                "the page has no row for the Linux check a::c",
                "the page has a row for a::d, which is not a Linux check"
            ]
        );
    }
}
