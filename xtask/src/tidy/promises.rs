//! Checks that each test that docs/security.md names for a promise exists.

use super::finding::TidyFinding;
use super::source::TrackedFile;

const PAGE: &str = "docs/security.md";

/// Heading of the column with the tests of a promise.
const HEADING: &str = "| promise | test |";

pub(super) fn check(tracked: &[TrackedFile]) -> Vec<TidyFinding> {
    let page = tracked.iter().find(|file| file.path.ends_with(PAGE)).map_or("", |file| &file.text);
    let rust: Vec<&str> =
        tracked.iter().filter(|file| file.is_rust()).map(|file| file.text.as_str()).collect();
    compare(page, &rust)
}

fn compare(page: &str, sources: &[&str]) -> Vec<TidyFinding> {
    let exists = |test: &str| {
        let opening = format!("fn {}(", test.rsplit("::").next().unwrap_or(test));
        sources.iter().any(|source| source.contains(&opening))
    };
    let mut findings = Vec::new();
    let mut in_table = false;
    for (line, text) in (1..).zip(page.lines()) {
        in_table = text == HEADING || in_table && text.starts_with('|');
        let row = in_table && text != HEADING && !text.starts_with("|---");
        // The tests are between backquotes in the last cell: the second of each two pieces.
        let cell = text.trim_end_matches('|').rsplit_once('|').map_or("", |cells| cells.1);
        let tests: Vec<&str> = cell.split('`').skip(1).step_by(2).filter(|_| row).collect();
        let finding = |what| TidyFinding {
            file: PAGE.into(),
            line,
            rule: "promises",
            what,
            remedy: "name a test of the promise, as it stands in the sources",
        };
        if row && tests.is_empty() {
            findings.push(finding("no test is named for this promise".to_owned()));
        }
        let missing = tests.iter().filter(|test| !exists(test));
        findings.extend(missing.map(|test| finding(format!("there is no test `{test}`"))));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_must_name_tests_that_exist() {
        let page = "| a | b |\n|---|---|\n| `c` | d |\n\n| promise | test |\n|---|---|\n| one | `holds`, `m::holds` |\n\
                    | two | `gone` |\n| three | later |\n\n| e | `f` |\n";
        let found = compare(page, &["#[test]\nfn holds() {}\n"]);
        let found: Vec<_> = found.into_iter().map(|finding| (finding.line, finding.what)).collect();
        assert_eq!(
            found,
            [(8, "there is no test `gone`".to_owned()), (9, "no test is named for this promise".to_owned())]
        );
    }
}
