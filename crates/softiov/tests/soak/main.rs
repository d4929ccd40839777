//! A campaign: a host under traffic is handed over and killed again and again at random moments, and nobody may lose
//! anything by it. `cargo xtask soak` runs it.
//!
//! Four embedded guests, a VF each. Two of them exchange a request and an answer every millisecond, and tell how long
//! there was none; the other two send each other streams whose bytes are compared.
//! Moments are drawn from a seed, which is printed. What is measured on a machine that does other things besides is
//! its load as much as the host.
//!
//! Left out: how a single end goes (`tests/cli/survival.rs`), and Linux guests (`tests/linux`).

mod campaign;
mod embedded;
mod random;
mod report;
mod served;

use campaign::Campaign;
use clap::Parser;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// What the campaign consists of.
#[derive(Debug, Clone, Parser)]
#[command(bin_name = "cargo xtask soak")]
struct Options {
    /// Planned hand-overs to a new process.
    #[arg(long, default_value_t = 200)]
    hand_overs: u32,
    /// Hosts killed by SIGKILL.
    #[arg(long, default_value_t = 200)]
    kills: u32,
    /// From which the moments are drawn; the clock gives one if none is named.
    #[arg(long)]
    seed: Option<u64>,
    /// Print the outcome as JSON, and what is under way on standard error.
    #[arg(long)]
    json: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64);
    let seed = options.seed.unwrap_or_else(clock);
    eprintln!("seed {seed}");
    let outcome = Campaign::begin(&options, seed)?.run();
    if options.json {
        println!("{}", serde_json::to_string_pretty(&outcome)?);
    } else {
        print!("{outcome}");
    }
    Ok(if outcome.losses.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
