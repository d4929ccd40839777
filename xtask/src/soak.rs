//! `cargo xtask soak`: builds the campaign of upgrades and crashes (`crates/softiov/tests/soak`) for release, and runs
//! it.

use std::process::ExitCode;

use anyhow::Result;

use crate::metadata;

/// Name of the test that runs the soak campaign. Only this command runs it, since it takes half an hour.
pub(crate) const CAMPAIGN: &str = "soak";

/// Arguments of `cargo xtask soak`.
#[derive(Debug, clap::Args)]
pub(crate) struct SoakArgs {
    /// Arguments of the soak campaign's program, passed on unchanged.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds the soak campaign, and runs it in this terminal.
pub(crate) fn run(options: &SoakArgs) -> Result<ExitCode> {
    let mut command = metadata::cargo();
    command.args(["test", "--quiet", "--release", "--package", "softiov", "--test", CAMPAIGN, "--"]);
    let status = command.args(&options.arguments).current_dir(metadata::workspace_root()?).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
