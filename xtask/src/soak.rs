//! `cargo xtask soak`: builds the campaign of upgrades and crashes (`crates/softiov/tests/soak`) for release, and runs
//! it.

use std::process::ExitCode;

use anyhow::Result;

use crate::metadata;

/// Name of the test that runs the soak campaign. Only this command runs it, since it takes half an hour.
pub(crate) const CAMPAIGN: &str = "soak";

/// Arguments of the campaign.
#[derive(Debug, clap::Args)]
pub(crate) struct SoakArgs {
    /// Passed on as they are.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs it; what it prints is printed.
pub(crate) fn run(options: &SoakArgs) -> Result<ExitCode> {
    let mut command = metadata::cargo();
    command.args(["test", "--quiet", "--release", "--package", "softiov", "--test", CAMPAIGN, "--"]);
    let status = command.args(&options.arguments).current_dir(metadata::workspace_root()?).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
