//! Formats tables of text in aligned columns.

use std::fmt;

/// Table of a heading and rows, each column as wide as its widest cell.
#[derive(Debug)]
pub(super) struct TextTable {
    rows: Vec<Vec<String>>,
    /// Index of the first column of numbers; that column and later ones are aligned right.
    numbers: usize,
}

impl TextTable {
    pub(super) fn new(heading: Vec<String>, numbers: usize) -> Self {
        Self { rows: vec![heading], numbers }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    fn width(&self, column: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<_> = (0..columns).map(|column| self.width(column)).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                line += &if column < self.numbers {
                    format!("{cell:<width$}  ")
                } else {
                    format!("{cell:>width$}  ")
                };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::TextTable;

    #[test]
    fn table_has_names_left_aligned_and_numbers_right_aligned() {
        let mut table = TextTable::new(vec!["policy".into(), "mbps".into()], 1);
        table.row(vec!["20k".into(), "957.1".into()]);
        assert_eq!(table.to_string(), "policy   mbps\n20k     957.1\n");
    }
}
