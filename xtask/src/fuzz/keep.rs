//! Keeps some small inputs of a target in the tree, which `cargo xtask test` replays.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::session::{FuzzFolders, kept};

/// Most inputs of a kept corpus, and the longest of them in bytes.
const MOST: usize = 16;
const LONGEST: u64 = 400;

/// Code that the chosen inputs of a target reach together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CoverMeasure {
    /// Edges between pieces of code.
    Edges,
    /// Edges, each with the magnitude of its count: a loop of four passes is another than one of two.
    EdgesAndCounts,
}

/// Chooses inputs among those that earlier runs of a target have found, and writes the target's kept corpus.
pub(super) fn keep(folders: &FuzzFolders<'_>, target: &str) -> Result<()> {
    let corpus = folders.corpus(target)?;
    let small = tempfile::tempdir()?;
    for entry in fs::read_dir(&corpus)? {
        let entry = entry?;
        if entry.metadata()?.len() <= LONGEST {
            fs::copy(entry.path(), small.path().join(entry.file_name()))?;
        }
    }
    let inputs = smallest_cover(folders, target, small.path(), CoverMeasure::EdgesAndCounts)?;
    // Evenly among the lengths: long inputs reach the most, and short ones are easy to read.
    let count = inputs.len();
    let inputs: Vec<_> = match count {
        0..=MOST => inputs,
        _ => (1..=MOST).map(|number| inputs[number * count / MOST - 1].clone()).collect(),
    };
    let path = folders.kept_file(target);
    fs::write(&path, kept::print(&inputs)).with_context(|| format!("cannot write {}", path.display()))?;
    println!("{target}: kept {} of {count} inputs", inputs.len());
    Ok(())
}

/// Returns the fewest inputs of a folder that together reach what all of them reach, the shortest first.
///
/// # Errors
/// The target crashes with an input.
pub(super) fn smallest_cover(
    folders: &FuzzFolders<'_>,
    target: &str,
    inputs: &Path,
    measure: CoverMeasure,
) -> Result<Vec<Vec<u8>>> {
    let chosen = tempfile::tempdir()?;
    let mut command = folders.program(target);
    command.arg("-set_cover_merge=1");
    if measure == CoverMeasure::Edges {
        command.arg("-use_counters=0");
    }
    command.arg(chosen.path()).arg(inputs);
    let output = command.output().with_context(|| format!("cannot run the fuzz target {target}"))?;
    ensure!(
        output.status.success(),
        "the fuzz target {target} crashes with an input of its corpus: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let files = fs::read_dir(chosen.path())?;
    let mut inputs = files.map(|entry| Ok(fs::read(entry?.path())?)).collect::<Result<Vec<_>>>()?;
    inputs.retain(|input| !input.is_empty());
    inputs.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    Ok(inputs)
}
