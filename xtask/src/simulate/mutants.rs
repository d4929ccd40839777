//! `cargo xtask simulate --mutants`: seeds the faults of the table in a copy of the sources, and simulates with one of them
//! at a time until a seed fails. The score is the part of the faults that the simulation finds. One program has all faults,
//! since a build takes longer than most searches.

use super::faults::{CHOSEN, FOLDER, faults};
use super::seeds::{build, run_seeds};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Folder of the copy, in which builds of later runs continue.
const COPY: &str = "target/mutants";
/// Seeds that must succeed in the copy without a fault.
const CONTROLS: u64 = 20;
/// Function of the copy that tells whether the environment chooses a fault. It is added to each crate with a fault.
const SWITCH: &str = "
/// Returns true if the environment chooses the seeded fault of this number.
#[allow(warnings, clippy::all)]
pub(crate) fn is_chosen(number: usize) -> bool {
    extern crate std;
    static NUMBER: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    let chosen = || std::env::var(\"SOFTIOV_FAULT\").ok()?.parse().ok();
    *NUMBER.get_or_init(chosen) == Some(number)
}
";

/// Runs seeds with each fault of the table whose name contains `only`, and prints which faults are found.
///
/// # Errors
/// If the sources cannot be copied, the simulation does not build, or a seed fails without a fault: one of the first, or one that
/// fails with a fault.
pub(super) fn run(root: &Path, (first, end): (u64, u64), only: &str) -> Result<ExitCode> {
    let copy = root.join(COPY);
    copy_sources(root, &copy)?;
    let program = build(&copy, &["--release"])?;
    let controls = run_seeds(&program, (first, end.min(first + CONTROLS)), Some(None))?;
    ensure!(controls.faults.is_empty(), "a seed fails without a fault: {}", controls.faults.join(", "));
    let (mut found, mut all) = (0, 0);
    for (number, fault) in faults().filter(|(_, fault)| fault.name.contains(only)) {
        let began = Instant::now();
        let outcome = run_seeds(&program, (first, end), Some(Some(number)));
        let seconds = began.elapsed().as_secs();
        all += 1;
        match outcome.with_context(|| format!("with the fault: {}", fault.name))?.first_fault() {
            Some((seeds, line)) => {
                // A row that changes something although it is not chosen would fail the seed too.
                let control = run_seeds(&program, seeds, Some(None))?;
                let is_caused = control.faults.is_empty();
                ensure!(is_caused, "{line}\nIt fails without the fault too: mend the row {:?}", fault.name);
                found += 1;
                println!("found      {seconds:>4} s  {}: {line}", fault.name);
            }
            None => println!("not found  {seconds:>4} s  {}, in {} seeds", fault.name, end - first),
        }
    }
    println!("{found} of {all} faults found, {} %", 100 * found / all.max(1));
    Ok(if found == all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Copies the files that git tracks, with all faults. A file that is as it was keeps its time, so that a build continues
/// the last one.
fn copy_sources(root: &Path, copy: &Path) -> Result<()> {
    let listing = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output()?;
    let names = String::from_utf8(listing.stdout).context("a file's name is not UTF-8")?;
    for name in names.split_terminator('\0') {
        let (from, to) = (root.join(name), copy.join(name));
        // A file that was removed and not committed is still listed.
        let Ok(bytes) = fs::read(&from) else { continue };
        let bytes = with_faults(name, bytes)?;
        if fs::read(&to).is_ok_and(|old| old == bytes) {
            continue;
        }
        fs::create_dir_all(to.parent().context("a file has a folder")?)?;
        fs::write(&to, bytes).with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}

/// Returns a file of this name in the repository with the faults that belong into it.
fn with_faults(name: &str, bytes: Vec<u8>) -> Result<Vec<u8>> {
    let Some(path) = name.strip_prefix(FOLDER).and_then(|path| path.strip_prefix('/')) else {
        return Ok(bytes);
    };
    let crate_of = |path: &str| path.split('/').next().map(str::to_owned);
    let needs_switch =
        path.ends_with("/src/lib.rs") && faults().any(|(_, fault)| crate_of(fault.file) == crate_of(path));
    let of_file = faults().filter(|(_, fault)| fault.file == path);
    if !needs_switch && of_file.clone().next().is_none() {
        return Ok(bytes);
    }
    let mut text = String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8"))?;
    for (number, fault) in of_file {
        let places = text.matches(fault.old).count();
        ensure!(places == 1, "{name} has {places} places for the fault: {}", fault.name);
        text =
            text.replacen(fault.old, &fault.new.replace(CHOSEN, &format!("crate::is_chosen({number})")), 1);
    }
    if needs_switch {
        text += SWITCH;
    }
    Ok(text.into_bytes())
}
