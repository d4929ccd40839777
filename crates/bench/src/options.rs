//! What is to be measured, as the command line says it.

use crate::contender::Mode;
use crate::contender::card::Card;
use anyhow::{Context, Result};
use linux_guest::HostDpdk;
use std::path::PathBuf;
use std::time::Duration;

/// What is to be measured.
#[derive(Debug, Clone, clap::Parser)]
#[command(bin_name = "cargo xtask bench", version)]
pub struct Options {
    /// The program that serves the card; default: the `softiov` beside this program.
    #[arg(long, value_name = "PROGRAM")]
    pub softiov: Option<PathBuf>,
    /// Where the report goes.
    #[arg(long, value_name = "FOLDER", default_value = "target/bench")]
    pub out: PathBuf,
    /// How doorbells reach the card: it takes part once for each.
    #[arg(long = "mode", value_enum, value_delimiter = ',', default_values_t = [Mode::Posted, Mode::Mapped])]
    pub modes: Vec<Mode>,
    /// What the served card is: it takes part once for each, in each mode. All that is not forwarding alone is measured with the
    /// first.
    #[arg(long = "card", value_enum, value_delimiter = ',',
          default_values_t = [Card::I82576, Card::Avf, Card::AvfFlex])]
    pub cards: Vec<Card>,
    /// In mapped mode the port takes a processor for itself: `wait = "busy"` instead of `"mapped"`.
    #[arg(long)]
    pub busy: bool,
    /// Frame lengths in bytes, without frame check sequence.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 512, 1500])]
    pub sizes: Vec<usize>,
    /// Rounds of slices that are wanted with references that agree; up to three times as many are measured.
    #[arg(long, default_value_t = 15)]
    pub rounds: usize,
    /// Milliseconds of a slice, 1,000 at most.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub slice_ms: u64,
    /// Milliseconds that latency is measured for at each load; 0: not at all.
    #[arg(long, default_value_t = 1000)]
    pub latency_ms: u64,
    /// Frames after a silence of 20 ms each, at the first size; 0: neither these nor what an idle host takes.
    #[arg(long, default_value_t = 200)]
    pub silences: usize,
    /// Milliseconds that each policy of interrupt moderation is measured for under each load; 0: not at all.
    #[arg(long, default_value_t = 1000)]
    pub moderation_ms: u64,
    /// Leave out rings of 4,096 buffers, and sends of 64 KB that the card cuts.
    #[arg(long = "no-works", action = clap::ArgAction::SetFalse)]
    pub works: bool,
    /// Also measure with four and seven VFs in use, at the first size.
    #[arg(long)]
    pub growth: bool,
    /// Also sample the host with `perf` in the last mode at the first size, and draw a flame graph.
    #[arg(long)]
    pub flame: bool,
    /// Only the served card and the raw limits.
    #[arg(long)]
    pub no_peers: bool,
}

impl Options {
    /// How long a slice is.
    #[must_use]
    pub fn slice(&self) -> Duration {
        Duration::from_millis(self.slice_ms)
    }

    /// The first card, or the one of most users.
    #[must_use]
    pub fn card(&self) -> Card {
        self.cards.first().copied().unwrap_or(Card::I82576)
    }

    /// What the port is told of waiting, in a mode.
    pub(crate) fn wait(&self, mode: Mode) -> &'static str {
        match (mode, self.busy) {
            (Mode::Mapped, false) => "mapped",
            (Mode::Mapped, true) => "busy",
            _ => "sleep",
        }
    }

    /// The program that serves the card.
    ///
    /// # Errors
    /// The system does not say where this program is.
    pub(crate) fn program(&self) -> Result<PathBuf> {
        match &self.softiov {
            Some(program) => Ok(program.clone()),
            None => Ok(std::env::current_exe()?.with_file_name("softiov")),
        }
    }

    /// DPDK, if there are to be peers.
    ///
    /// # Errors
    /// Its packages cannot be had.
    pub(crate) fn dpdk(&self) -> Result<Option<HostDpdk>> {
        if self.no_peers {
            return Ok(None);
        }
        HostDpdk::prepare().map(Some).context("the peers cannot be had; --no-peers does without them")
    }
}
