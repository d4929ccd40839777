//! `cargo xtask attack`: builds the host for release and with overflow checks, and runs the attacks (`crates/attack`) on
//! both.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::metadata;

/// Arguments of `cargo xtask attack`.
#[derive(Debug, clap::Args)]
pub(crate) struct AttackArgs {
    /// Arguments of the attacks' program, passed on unchanged.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Names of the attacked builds in the report, each with its arguments of cargo and its folder in the target folder.
const BUILDS: [(&str, &[&str], &str); 2] =
    [("release", &["--release"], "release"), ("overflow-checked", &[], "debug")];

/// Builds the hosts and the attacks, and runs the attacks in this terminal.
pub(crate) fn run(options: &AttackArgs) -> Result<ExitCode> {
    let root = metadata::workspace_root()?;
    let target = metadata::target_folder()?;
    let builds: &[_] = if options.needs_hosts() { &BUILDS } else { &[] };
    let hosts = builds.iter().map(|(_, arguments, _)| [arguments, &["--package", "softiov"][..]].concat());
    for arguments in hosts.chain([vec!["--package", "attack"]]) {
        let mut build = metadata::cargo();
        build.args(["build", "--quiet"]).args(arguments);
        if !build.current_dir(&root).status()?.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    let mut attack = Command::new(target.join("debug/attack"));
    for (name, _, folder) in builds {
        attack.arg("--host").arg(format!("{name}={}", target.join(folder).join("softiov").display()));
    }
    let status = attack.args(&options.arguments).current_dir(&root).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl AttackArgs {
    /// Returns true if the arguments run cases, and do not only print a list or the help.
    fn needs_hosts(&self) -> bool {
        !self.arguments.iter().any(|argument| ["--list", "--help", "-h"].contains(&argument.as_str()))
    }
}
