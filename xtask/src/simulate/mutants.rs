//! `cargo xtask simulate --mutants`: seeds a fault in a copy of the sources, and simulates until a seed fails; for each fault of
//! the table. The score is the part of the faults that the simulation finds.

use super::faults::{FAULTS, FOLDER, SeededFault};
use super::seeds::{SimulationReport, build, run_seeds};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Folder of the copy, in which builds of later runs continue.
const COPY: &str = "target/mutants";

/// Runs seeds with each fault of the table whose name contains `only`, and prints which faults are found.
///
/// # Errors
/// If the sources cannot be copied, or the simulation does not build without a fault.
pub(super) fn run(root: &Path, (first, end): (u64, u64), only: &str) -> Result<ExitCode> {
    let copy = root.join(COPY);
    copy_sources(root, &copy)?;
    let (mut found, mut missed) = (0, Vec::new());
    for fault in FAULTS.iter().filter(|fault| fault.name.contains(only)) {
        let path = copy.join(FOLDER).join(fault.file);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        fs::write(&path, text.replacen(fault.old, fault.new, 1))?;
        let outcome = simulate(&copy, first, end);
        fs::write(&path, text)?;
        match outcome.with_context(|| format!("with the fault: {}", fault.name))?.faults.first() {
            Some(seed) => {
                found += 1;
                println!("found      {}: {seed}", fault.name);
            }
            None => {
                missed.push(fault);
                println!("not found  {}, in {} seeds", fault.name, end - first);
            }
        }
    }
    print_score(found, &missed);
    Ok(if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_score(found: usize, missed: &[&SeededFault]) {
    let all = found + missed.len();
    println!("{found} of {all} faults found, {} %", 100 * found / all.max(1));
}

/// Builds the simulation in the copy, and runs seeds until one fails.
fn simulate(copy: &Path, first: u64, end: u64) -> Result<SimulationReport> {
    // Without optimization of the package that changes, a fault builds in half a minute.
    let program = build(copy, &["--config", "profile.dev.package.daemon.opt-level=0"])?;
    run_seeds(&program, (first, end), true)
}

/// Copies the files that git tracks. A file that is as it was keeps its time, so that a build continues the last one.
fn copy_sources(root: &Path, copy: &Path) -> Result<()> {
    let listing = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output()?;
    let names = String::from_utf8(listing.stdout).context("a file's name is not UTF-8")?;
    for name in names.split_terminator('\0') {
        let (from, to) = (root.join(name), copy.join(name));
        // A file that was removed and not committed is still listed.
        let Ok(bytes) = fs::read(&from) else { continue };
        if fs::read(&to).is_ok_and(|old| old == bytes) {
            continue;
        }
        fs::create_dir_all(to.parent().context("a file has a folder")?)?;
        fs::write(&to, bytes).with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}
