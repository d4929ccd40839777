//! A campaign: a host under traffic is handed over and killed again and again at random moments, and nobody may lose
//! anything by it. `cargo xtask soak` runs it.
//!
//! Seven guests, a VF each. Four embedded ones: two of them exchange a request and an answer every millisecond, and tell
//! how long there was none; the other two send each other streams whose bytes are compared. Three Linux virtual machines
//! with stock drivers: a connection from each to the next, whose bytes are compared, lasts from the beginning to the end.
//!
//! Moments are drawn from a seed, which is printed. Stock igbvf starts anew at most every ten seconds, so Linux guests are
//! waited for after every tenth event only. What is measured on a machine that does other things besides is its load as
//! much as the host: so it is measured as well while nothing is done.
//!
//! Left out: how a single end goes (`tests/cli/survival.rs`, `tests/linux/survival.rs`).

mod campaign;
mod connection;
mod embedded;
mod holding;
mod machines;
mod random;
mod report;
#[path = "../process/served.rs"]
mod served;

use campaign::Campaign;
use clap::Parser;
use connection::Inside;
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
    /// How the port waits, as its configuration says it: `sleep`, `mapped` or `busy`.
    #[arg(long, default_value = "sleep", value_parser = ["sleep", "mapped", "busy"])]
    wait: String,
    /// Leave the Linux guests out, which take minutes and processors.
    #[arg(long)]
    embedded_only: bool,
    #[command(subcommand)]
    inside: Option<Inside>,
}

fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    if let Some(inside) = &options.inside {
        return inside.run().map(|()| ExitCode::SUCCESS);
    }
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64);
    let seed = options.seed.unwrap_or_else(clock);
    eprintln!("seed {seed}");
    let outcome = Campaign::begin(&options, seed)?.run()?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&outcome)?);
    } else {
        print!("{outcome}");
    }
    Ok(if outcome.losses.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
