//! `cargo xtask bench`: builds the host and the benchmark (`crates/bench`) for release, and runs the benchmark.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::metadata;

/// Arguments of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// Arguments of the benchmark program, passed on unchanged.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds the host and the benchmark, and runs the benchmark in this terminal.
pub(crate) fn run(options: &BenchArgs) -> Result<ExitCode> {
    let root = metadata::workspace_root()?;
    let mut build = metadata::cargo();
    build.args(["build", "--quiet", "--release", "--package", "softiov", "--package", "bench"]);
    if !build.current_dir(&root).status()?.success() {
        return Ok(ExitCode::FAILURE);
    }
    let target = metadata::target_folder()?;
    // Replaces this process: a signal that ends `cargo xtask bench` ends the benchmark, and with it the started hosts.
    let mut measure = Command::new(target.join("release/bench"));
    let error = measure.args(&options.arguments).current_dir(&root).exec();
    Err(error).context("cannot run the benchmark")
}
