//! Results of the benchmark: rows, shown as a table, as JSON, and as charts.

mod charts;
pub mod comparison;
mod drawing;
pub mod rows;
mod table;
pub mod workers;

use anyhow::{Context, Result};
use rows::BenchmarkReport;
use std::fs;
use std::path::Path;

impl BenchmarkReport {
    /// Writes `summary.json` and the charts into a folder.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        write("summary.json", &serde_json::to_string_pretty(self)?)?;
        for (name, svg) in charts::charts(self) {
            write(&format!("{name}.svg"), &svg)?;
        }
        Ok(())
    }
}
