//! Compares generated pages with the tables of the code that they come from.

use super::finding::TidyFinding;
use super::source::TrackedFile;
use crate::{avf_registers, registers};

pub(super) fn check(tracked: &[TrackedFile]) -> Vec<TidyFinding> {
    let pages = [(registers::PATH, registers::page()), (avf_registers::PATH, avf_registers::page())];
    let kept = |path: &str| {
        tracked.iter().find(|file| file.path.ends_with(path)).map_or("", |file| file.text.as_str())
    };
    pages.iter().filter_map(|(path, page)| compare(path, kept(path), page)).collect()
}

fn compare(path: &str, kept: &str, wanted: &str) -> Option<TidyFinding> {
    if kept == wanted {
        return None;
    }
    let same = kept.lines().zip(wanted.lines()).take_while(|(kept, wanted)| kept == wanted).count();
    Some(TidyFinding {
        file: path.into(),
        line: same + 1,
        rule: "printed",
        what: "the page differs from the register table".to_owned(),
        remedy: "generate the page: cargo xtask registers",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_differing_line_of_a_generated_page_is_named() {
        assert_eq!(compare("p", "a\nb\n", "a\nb\n"), None);
        assert_eq!(compare("p", "a\nb\n", "a\nc\n").map(|finding| finding.line), Some(2));
        assert_eq!(compare("p", "", "a\n").map(|finding| finding.line), Some(1));
    }
}
