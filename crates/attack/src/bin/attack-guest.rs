//! Program that attacks a device of the virtual machine in which it runs.
#![forbid(unsafe_code)]

use attack::in_guest::options::{GuestAttackOptions, attack};
use clap::Parser;
use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    let passed = attack(&GuestAttackOptions::parse())?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
