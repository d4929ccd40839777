//! Options of `cargo xtask attack`, and the command itself.

use crate::cases::GROUPS;
use crate::report::{AttackReport, HostResults};
use crate::run::{run, select};
use anyhow::{Result, ensure};
use std::path::PathBuf;

/// Options of the attacks.
#[derive(Debug, Clone, clap::Parser)]
#[command(
    bin_name = "cargo xtask attack",
    about = "Attacks a running host with hand-made cases, and checks it after each."
)]
pub struct AttackOptions {
    /// Host to attack: a name for the report, and the path of a `softiov` program. `cargo xtask attack` passes its builds.
    #[arg(long = "host", value_name = "NAME=PROGRAM", value_parser = host, hide = true)]
    pub hosts: Vec<(String, PathBuf)>,
    /// Run only the cases of this group, or the case of this name; may be repeated.
    #[arg(long, value_name = "GROUP|NAME")]
    pub only: Vec<String>,
    /// List the cases with their rules, and run none.
    #[arg(long)]
    pub list: bool,
    /// Print the results as JSON, and progress on standard error.
    #[arg(long)]
    pub json: bool,
}

fn host(text: &str) -> Result<(String, PathBuf), String> {
    let (name, program) = text.split_once('=').ok_or("expected NAME=PROGRAM")?;
    Ok((name.to_owned(), program.into()))
}

/// Runs or lists the selected cases. Returns true if no case failed.
///
/// # Errors
/// No case is selected, or a host does not start.
pub fn attack(options: &AttackOptions) -> Result<bool> {
    let cases = select(GROUPS, &options.only);
    ensure!(!cases.is_empty(), "no group or case is called {:?}: `--list` lists all", options.only);
    if options.list {
        for (group, case) in &cases {
            println!("{:<12} {:<52} {:<7} {}", group.name, case.name, case.family, case.rule);
        }
        println!("{} cases", cases.len());
        return Ok(true);
    }
    let mut report = AttackReport { hosts: Vec::new() };
    for (host, program) in &options.hosts {
        let results = run(program, &cases, |result| {
            let outcome = if result.failure.is_some() { "FAILED" } else { "ok" };
            eprintln!("{host}: {}: {} {outcome}", result.group, result.case);
        })?;
        report.hosts.push(HostResults { host: host.clone(), results });
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{report}");
    }
    Ok(report.failures() == 0)
}
