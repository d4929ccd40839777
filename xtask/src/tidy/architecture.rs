//! The map of the project shows every crate. Whether it tells the truth about them is for readers.

use super::finding::Finding;
use super::source::Tracked;
use crate::metadata::Package;

pub(super) fn check(members: &[Package], tracked: &[Tracked]) -> Vec<Finding> {
    let Some(map) = tracked.iter().find(|file| file.path.ends_with("ARCHITECTURE.md")) else {
        return Vec::new();
    };
    let missing = members.iter().filter(|member| !shows(&map.text, &member.name));
    missing.map(|member| finding(map, &member.name)).collect()
}

fn finding(map: &Tracked, name: &str) -> Finding {
    Finding {
        file: map.path.clone(),
        line: 1,
        rule: "architecture",
        what: format!("ARCHITECTURE.md does not list the crate `{name}`"),
        remedy: "add the crate and its purpose, with its name in backquotes or as a folder (`name/`)",
    }
}

/// Some names are words of the language, so a bare word does not count.
fn shows(map: &str, name: &str) -> bool {
    let part = |character: char| character.is_alphanumeric() || character == '-' || character == '_';
    let folder = format!("{name}/");
    let as_folder = map.match_indices(&folder).any(|(at, _)| !map[..at].ends_with(part));
    as_folder || map.contains(&format!("`{name}`")) || map.contains(&format!("`crates/{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_shown_by_its_name_in_backquotes_or_its_folder() {
        assert!(shows("the `host` crate", "host"));
        assert!(shows("  host/   system calls", "host"));
        assert!(shows("see crates/host/src", "host"));
        assert!(shows("see `crates/host`", "host"));
        assert!(!shows("on the host", "host"));
        assert!(!shows("linux-host/", "host"));
    }
}
