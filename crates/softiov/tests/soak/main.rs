//! Runs a soak campaign: a host under traffic is handed over and killed again and again at random moments, and no guest
//! may lose a connection or a byte. `cargo xtask soak` runs it.
//!
//! Seven guests have a VF each. Of four embedded guests, two exchange a request and an answer every millisecond and
//! measure interruptions; the other two send each other streams whose bytes are compared. Three Linux virtual
//! machines with stock drivers have a connection from each to the next, whose bytes are compared from the beginning
//! to the end.
//!
//! Moments are drawn from a seed, which is printed. Stock igbvf restarts at most every ten seconds, so the campaign
//! waits for Linux guests after every tenth event only. Other load on the machine adds to the interruptions, so they
//! are also measured while no event happens.
//!
//! `tests/cli/survival.rs` and `tests/linux/survival.rs` test each kind of event.

mod campaign;
mod connection;
mod embedded;
mod holding;
mod machines;
mod random;
mod report;
#[path = "../process/served.rs"]
mod served;

use campaign::SoakCampaign;
use clap::Parser;
use connection::GuestConnectionRole;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// Options of the soak campaign.
#[derive(Debug, Clone, Parser)]
#[command(bin_name = "cargo xtask soak")]
struct SoakOptions {
    /// Number of planned hand-overs to a new process.
    #[arg(long, default_value_t = 200)]
    hand_overs: u32,
    /// Number of hosts to kill by SIGKILL.
    #[arg(long, default_value_t = 200)]
    kills: u32,
    /// Seed of the random moments at which hosts are replaced or killed (default: from the clock).
    #[arg(long)]
    seed: Option<u64>,
    /// Print the outcome as JSON, and progress on standard error.
    #[arg(long)]
    json: bool,
    /// The port's way to wait, as in its configuration: `sleep`, `mapped` or `busy`.
    #[arg(long, default_value = "sleep", value_parser = ["sleep", "mapped", "busy"])]
    wait: String,
    /// Leave out the Linux guests, which take minutes and processors.
    #[arg(long)]
    embedded_only: bool,
    #[command(subcommand)]
    inside: Option<GuestConnectionRole>,
}

fn main() -> anyhow::Result<ExitCode> {
    let options = SoakOptions::parse();
    if let Some(inside) = &options.inside {
        return inside.run().map(|()| ExitCode::SUCCESS);
    }
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64);
    let seed = options.seed.unwrap_or_else(clock);
    eprintln!("seed {seed}");
    let outcome = SoakCampaign::begin(&options, seed)?.run()?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&outcome)?);
    } else {
        print!("{outcome}");
    }
    Ok(if outcome.losses.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
