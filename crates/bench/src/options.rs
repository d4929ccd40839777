//! Command-line options of the benchmark.

use crate::contender::card::CardVariant;
use crate::contender::{self, ContenderKind};
use crate::variation::{self, Variation};
use anyhow::{Context, Result};
use linux_guest::HostDpdk;
use std::path::PathBuf;
use std::time::Duration;

/// Command-line options that select the benchmarks of a run.
#[derive(Debug, Clone, clap::Parser)]
#[command(bin_name = "cargo xtask bench", version)]
pub struct BenchmarkOptions {
    /// Program that serves the card. Default: the `softiov` beside this program.
    #[arg(long, value_name = "PROGRAM")]
    pub softiov: Option<PathBuf>,
    /// Folder of the report.
    #[arg(long, value_name = "FOLDER", default_value = "target/bench")]
    pub out: PathBuf,
    /// Doorbell modes of SoftIOV's card, which takes part once in each. A virtio card has one mode of its own.
    #[arg(long = "mode", value_enum, value_delimiter = ',', default_values_t = [ContenderKind::Posted, ContenderKind::Mapped])]
    pub modes: Vec<ContenderKind>,
    /// Cards of SoftIOV, each measured in each mode. Only forwarding is measured with all of them; the rest uses the
    /// first.
    #[arg(long = "card", value_enum, value_delimiter = ',',
          default_values_t = [CardVariant::I82576, CardVariant::Avf, CardVariant::AvfFlex, CardVariant::Virtio, CardVariant::VirtioPacked])]
    pub cards: Vec<CardVariant>,
    /// Settings of SoftIOV's port as in the configuration file, separated by `;`: each card is measured once more with them.
    /// May be repeated, such as `--with 'workers = 2; dispatcher = "spread"'`.
    #[arg(long = "with", value_name = "SETTINGS")]
    pub variations: Vec<String>,
    /// Numbers of threads that share a port's VFs, 1 to 8: each card is measured once more with each number above 1.
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_values_t = [1], value_parser = clap::value_parser!(u8).range(1..=8))]
    pub workers: Vec<u8>,
    /// Dispatchers of VFs to several workers, each of which is measured.
    #[arg(long = "dispatcher", value_delimiter = ',', default_value = "balanced", requires = "workers",
          value_parser = clap::builder::PossibleValuesParser::new(["off", "spread", "balanced"]))]
    pub dispatchers: Vec<String>,
    /// The variation that a contender is started with.
    #[arg(skip)]
    pub variation: Variation,
    /// In mapped mode, and of a virtio card, give the port a processor of its own: `wait = "busy"`.
    #[arg(long)]
    pub busy: bool,
    /// Frame lengths in bytes, without frame check sequence.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 512, 1500])]
    pub sizes: Vec<usize>,
    /// Wanted rounds of slices with comparable references; up to three times this number are measured.
    #[arg(long, default_value_t = 15)]
    pub rounds: usize,
    /// Length of a slice, milliseconds, 1,000 at most.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub slice_ms: u64,
    /// Length of a latency measurement at each load, milliseconds; 0 for none.
    #[arg(long, default_value_t = 1000)]
    pub latency_ms: u64,
    /// Number of frames sent after a silence of 20 ms each, at the first frame size; 0 omits them and the idle host.
    #[arg(long, default_value_t = 200)]
    pub silences: usize,
    /// Length of a measurement of each policy of interrupt moderation under each load, milliseconds; 0 for none.
    #[arg(long, default_value_t = 1000)]
    pub moderation_ms: u64,
    /// Leave out rings of 4,096 buffers, and sends of 64 KB that the card segments.
    #[arg(long = "no-works", action = clap::ArgAction::SetFalse)]
    pub works: bool,
    /// Measure the cards alone, beside the lab's model: guests on some ports send messages of 1,500 to 4,000 bytes. The report has
    /// rates, notifications, latency and order. Nothing else is measured.
    #[arg(long)]
    pub compare: bool,
    /// Numbers of ports whose guests exchange messages in a comparison, 2 to 64. An 82576 has 8 at most.
    #[arg(long, value_delimiter = ',', default_values_t = [2, 7], value_parser = clap::value_parser!(u8).range(2..=64))]
    pub ports: Vec<u8>,
    /// Payloads of the messages of a comparison in bytes, 1 to 4,000.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = [1_500, 2_000, 2_500, 3_000, 3_500, 4_000],
          value_parser = clap::value_parser!(u16).range(1..=4_000))]
    pub messages: Vec<u16>,
    /// Virtual time for which the lab's model of a comparison warms up, and then is measured, milliseconds. Default: the
    /// experiments' own times.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..))]
    pub model_ms: Option<u32>,
    /// Also measure each card and each of its variations with guests that sleep until an interrupt for received frames. Virtio
    /// guests have event indexes then.
    #[arg(long)]
    pub events: bool,
    /// Also measure with four and seven VFs in use, at the first size.
    #[arg(long)]
    pub growth: bool,
    /// Also sample the host with `perf` in the last mode at the first size, and draw a flame graph.
    #[arg(long)]
    pub flame: bool,
    /// Measure SoftIOV's card and the raw limits only.
    #[arg(long)]
    pub no_peers: bool,
    /// Measure SoftIOV's cards against this contender only; may be repeated. Slices that follow each other closely are
    /// more often comparable.
    #[arg(long, value_name = "CONTENDER", value_parser = clap::builder::PossibleValuesParser::new(contender::NAMES))]
    pub against: Vec<String>,
}

impl BenchmarkOptions {
    /// Returns the length of a measured slice of time.
    #[must_use]
    pub fn slice(&self) -> Duration {
        Duration::from_millis(self.slice_ms)
    }

    /// Returns the first of SoftIOV's cards to measure, or the 82576 if the list is empty.
    #[must_use]
    pub fn card(&self) -> CardVariant {
        self.cards.first().copied().unwrap_or(CardVariant::I82576)
    }

    /// Returns these options without a variation, and then with each one.
    #[must_use]
    pub fn varied(&self) -> Vec<Self> {
        let variations = variation::all(&self.variations, &self.workers, &self.dispatchers, self.events);
        variations.into_iter().map(|variation| Self { variation, ..self.clone() }).collect()
    }

    /// Returns the modes in which the first card is measured.
    pub(crate) fn card_modes(&self) -> &[ContenderKind] {
        self.card().modes(&self.modes)
    }

    /// Returns true if the contender called `name`, which is no card of SoftIOV, is to be measured.
    pub(crate) fn measures(&self, name: &str) -> bool {
        self.against.is_empty() || self.against.iter().any(|wanted| wanted == name)
    }

    /// Returns the value of the port's setting `wait` for a doorbell mode.
    pub(crate) fn wait(&self, mode: ContenderKind) -> &'static str {
        match (mode, self.busy) {
            (ContenderKind::Mapped, false) => "mapped",
            (ContenderKind::Mapped | ContenderKind::Kicked, true) => "busy",
            _ => "sleep",
        }
    }

    /// Returns the path of the program that serves the card.
    ///
    /// # Errors
    /// The system does not report this program's path.
    pub(crate) fn program(&self) -> Result<PathBuf> {
        match &self.softiov {
            Some(program) => Ok(program.clone()),
            None => Ok(std::env::current_exe()?.with_file_name("softiov")),
        }
    }

    /// Prepares DPDK for the peers, if peers are to be measured.
    ///
    /// # Errors
    /// Its packages are not available.
    pub(crate) fn dpdk(&self) -> Result<Option<HostDpdk>> {
        if self.no_peers {
            return Ok(None);
        }
        HostDpdk::prepare()
            .map(Some)
            .context("cannot prepare DPDK for the peers; use --no-peers to measure without the peers")
    }
}
