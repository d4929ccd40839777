//! `cargo xtask fuzz --coverage`: runs the corpora with the compiler's own coverage, and prints which functions and regions
//! of the product they reach.

mod regions;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::build;
use super::session::FuzzFolders;
use crate::nightly::{self, PLATFORM, nightly};
use regions::ReachedCode;

/// Flags of the compiler: counters for each region of the source.
const FLAGS: &str = "-Cinstrument-coverage --cfg=fuzzing";
const REMEDY: &str = "rustup component add llvm-tools --toolchain nightly";

/// Runs each target with all inputs of its corpus, and prints what each and all together reach.
///
/// # Errors
/// If the targets do not build, an input is a fault, or LLVM's tools are not installed.
pub(super) fn report(root: &Path, targets: &[String], as_json: bool) -> Result<()> {
    let tools = tools()?;
    let folder = root.join("target/fuzz-coverage");
    let programs = build::build_with(root, targets, FLAGS, &folder)?;
    let folders = FuzzFolders { root, programs: &programs };
    let (mut reached, mut by_target) = (ReachedCode::default(), Vec::new());
    for target in targets {
        let profile = profile(&folders, target, &tools, &folder)?;
        let mut command = Command::new(tools.join("llvm-cov"));
        command
            .args(["export", "-skip-expansions", "-instr-profile"])
            .arg(&profile)
            .arg(programs.join(target));
        let json = output(&mut command)?;
        let mut own = ReachedCode::default();
        own.add(root, &json).with_context(|| format!("the coverage of {target}"))?;
        by_target.push(own.sum(root, target));
        reached.merge(own);
        eprintln!("{target}: its corpus was run");
    }
    let crates = reached.crates(root);
    let print = if as_json { regions::json } else { regions::table };
    print!("{}", print(&crates, &by_target));
    Ok(())
}

/// Returns the folder of LLVM's tools for the nightly compiler.
fn tools() -> Result<PathBuf> {
    let remedy = "rustup toolchain install nightly --profile minimal";
    nightly::require("rustc", &[], "the compiler's coverage is read by LLVM's tools of nightly", remedy)?;
    let sysroot = output(nightly("rustc").args(["--print", "sysroot"]))?;
    let folder = Path::new(sysroot.trim()).join("lib/rustlib").join(PLATFORM).join("bin");
    ensure!(
        folder.join("llvm-cov").exists(),
        "{} has no llvm-cov; install it with `{REMEDY}`",
        folder.display()
    );
    Ok(folder)
}

/// Runs a target with each input of its corpus. Returns the file with the counts of all regions.
fn profile(folders: &FuzzFolders<'_>, target: &str, tools: &Path, folder: &Path) -> Result<PathBuf> {
    let (raw, merged) = (folder.join(format!("{target}.profraw")), folder.join(format!("{target}.profdata")));
    let corpus = folders.corpus(target)?;
    let mut run = folders.program(target);
    run.env("LLVM_PROFILE_FILE", &raw).args(["-runs=0", "-rss_limit_mb=0"]).arg(corpus);
    output(&mut run)?;
    output(
        Command::new(tools.join("llvm-profdata")).args(["merge", "-sparse"]).arg(&raw).arg("-o").arg(&merged),
    )?;
    Ok(merged)
}

/// Runs a command, and returns what it prints.
fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed, {}:\n{errors}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("the output of {command:?} is no text"))
}
