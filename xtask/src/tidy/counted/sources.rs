//! Rule with a budget for registers without a source. A row of a generated page of registers must name the definition
//! that confirms it.

use super::place::BudgetedFinding;
use crate::tidy::source::TrackedFile;
use crate::{avf_registers, registers};

/// Title of the column of sources, the last one of a table of registers.
const COLUMN: &str = "source";

/// Finds the rows with an empty cell in the column of sources.
pub(super) fn check(file: &TrackedFile) -> Vec<BudgetedFinding> {
    if ![registers::PATH, avf_registers::PATH].iter().any(|page| file.path.ends_with(page)) {
        return Vec::new();
    }
    let mut places = Vec::new();
    let mut has_sources = false;
    for (at, line) in file.text.lines().enumerate() {
        let Some(cells) = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) else {
            has_sources = false;
            continue;
        };
        let mut cells = cells.split('|').map(str::trim);
        let (name, last) = (cells.next().unwrap_or_default(), cells.next_back().unwrap_or_default());
        has_sources |= last == COLUMN;
        if has_sources && last.is_empty() {
            let text = format!("register {name} has no source");
            places.push(BudgetedFinding { file: file.path.clone(), line: at + 1, text });
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn register_row_without_a_source_is_found() {
        let table = "| register | notes | source |\n|---|---|---|\n| A | x | igb E1000_A |\n| B | x | |\n";
        let text = format!("{table}\n| access | writing |\n|---|---|\n| RO | |\n");
        let file = |path: &str| TrackedFile { path: path.into(), text: text.clone() };
        let places = check(&file(registers::PATH));
        assert_eq!(places.len(), 1);
        assert_eq!((places[0].line, places[0].text.as_str()), (4, "register B has no source"));
        assert!(check(&file("docs/other.md")).is_empty());
    }
}
