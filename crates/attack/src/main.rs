//! Program of `cargo xtask attack`, which builds it and the attacked hosts.
#![forbid(unsafe_code)]

use attack::options::{AttackOptions, attack};
use clap::Parser;
use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    let passed = attack(&AttackOptions::parse())?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
