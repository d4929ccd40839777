//! Checks the pages that lead through the code: ARCHITECTURE.md lists every crate, and the source files that it and
//! CONTRIBUTING.md name exist. Readers judge the rest.

use super::finding::TidyFinding;
use super::source::TrackedFile;
use crate::metadata::CargoPackage;

/// Pages for readers of the code, whose names of files and crates are checked.
const PAGES: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

pub(super) fn check(members: &[CargoPackage], tracked: &[TrackedFile]) -> Vec<TidyFinding> {
    let mut findings = missing_files(tracked);
    if let Some(map) = tracked.iter().find(|file| file.path.ends_with(PAGES[0])) {
        let missing = members.iter().filter(|member| !shows(&map.text, member.crate_name()));
        findings.extend(missing.map(|member| finding(map, member.crate_name())));
    }
    findings
}

/// Returns the source files that a page names and that do not exist. A page may leave out the first folders.
fn missing_files(tracked: &[TrackedFile]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for page in tracked.iter().filter(|file| PAGES.iter().any(|page| file.path.ends_with(page))) {
        for (line, text) in (1..).zip(page.text.lines()) {
            let missing =
                source_files(text).filter(|name| !tracked.iter().any(|file| file.path.ends_with(name)));
            findings.extend(missing.map(|name| TidyFinding {
                file: page.path.clone(),
                line,
                rule: "architecture",
                what: format!("the file `{name}` does not exist"),
                remedy: "name the file that has this step now",
            }));
        }
    }
    findings
}

/// Returns the names of Rust files that stand in backquotes in a line.
fn source_files(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).filter(|quoted| quoted.ends_with(".rs") && !quoted.contains(' '))
}

fn finding(map: &TrackedFile, name: &str) -> TidyFinding {
    TidyFinding {
        file: map.path.clone(),
        line: 1,
        rule: "architecture",
        what: format!("ARCHITECTURE.md does not list the crate `{name}`"),
        remedy: "add the crate and its purpose, with its name in backquotes or as a folder (`name/`)",
    }
}

/// Returns true if the page names a crate in backquotes or as a folder. A bare word does not count, since some crate
/// names are English words.
fn shows(map: &str, name: &str) -> bool {
    let part = |character: char| character.is_alphanumeric() || character == '-' || character == '_';
    let folder = format!("{name}/");
    let as_folder = map.match_indices(&folder).any(|(at, _)| !map[..at].ends_with(part));
    as_folder || ["", "crates/", "lab/"].iter().any(|group| map.contains(&format!("`{group}{name}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rust_file_names_in_backquotes_must_exist() {
        let line = "`nic/src/card.rs` (`poll`), card.rs, `port/run.rs`, `Cargo.toml`";
        assert!(source_files(line).eq(["nic/src/card.rs", "port/run.rs"]));
    }

    #[test]
    fn page_names_a_crate_in_backquotes_or_by_its_folder() {
        assert!(shows("the `host` crate", "host"));
        assert!(shows("  host/   system calls", "host"));
        assert!(shows("see crates/host/src", "host"));
        assert!(shows("see `crates/host`", "host"));
        assert!(shows("see `lab/sim`", "sim"));
        assert!(!shows("on the host", "host"));
        assert!(!shows("linux-host/", "host"));
    }
}
