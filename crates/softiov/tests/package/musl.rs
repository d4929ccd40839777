//! Tests the static program, for the target that `docs/operations.md` names, without optimisation, which takes minutes:
//! it runs where there is only /proc, without a dynamic linker.

use crate::machine::obstacle;
use anyhow::{Context, Result, ensure};
use host::test_support::skipped;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-musl";

#[test]
fn static_program_runs_in_a_root_folder_with_only_proc() -> Result<()> {
    if let Some(obstacle) = obstacle() {
        skipped("the static program", obstacle);
        return Ok(());
    }
    if !has_target() {
        skipped("the static program", "the target is missing: rustup target add x86_64-unknown-linux-musl");
        return Ok(());
    }
    let program = build()?;
    let folder = tempfile::tempdir()?;
    fs::copy(program, folder.path().join("softiov"))?;
    for empty in ["tmp", "proc"] {
        fs::create_dir(folder.path().join(empty))?;
    }
    let script = "mount -t proc proc \"$0/proc\" && exec chroot \"$0\" /softiov demo --json";
    let demo = Command::new("unshare").args(["--mount", "sh", "-c", script]).arg(folder.path()).output()?;
    let (said, error) = (String::from_utf8_lossy(&demo.stdout), String::from_utf8_lossy(&demo.stderr));
    ensure!(demo.status.success() && said.contains("\"flows\""), "{said}{error}");
    Ok(())
}

/// Returns true if the Rust toolchain has a standard library for the static target.
fn has_target() -> bool {
    let asked = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    asked.is_ok_and(|asked| Path::new(String::from_utf8_lossy(&asked.stdout).trim()).is_dir())
}

fn build() -> Result<PathBuf> {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // `cargo xtask test` has begun the same build.
    command.args(["build", "--quiet", "--locked", "--package", "softiov", "--profile", "quick"]);
    command.args(["--target", TARGET]);
    // Beside the program under test, so that both builds share their dependencies.
    let folder = Path::new(env!("CARGO_BIN_EXE_softiov"))
        .ancestors()
        .nth(2)
        .context("the program does not lie in a target folder")?;
    let output = command.arg("--target-dir").arg(folder).current_dir(&checkout).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(folder.join(TARGET).join("quick/softiov"))
}
