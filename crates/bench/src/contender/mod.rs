//! Who forwards frames between two functions.
//!
//! | module | who |
//! |---|---|
//! | [`card`] | what the served card is |
//! | [`host`] | `softiov serve` with its policy, a process |
//! | [`served`] | the card behind it |
//! | [`stations`] | its guests: VFs, polled by one thread |
//! | [`work`] | what guests exchange |
//! | `testpmd`, `telemetry` | DPDK's testpmd as a program that is asked for its counters |
//! | `bare` | two threads that copy and look up, and do nothing else |
//! | `peers` | what testpmd is told to be each peer, and the null forwarder |
//! | [`switch`] | Open vSwitch with DPDK |
//! | `bridge` | a bridge of the kernel's between two taps |

mod bare;
mod bridge;
pub mod card;
pub mod host;
mod peers;
pub mod served;
pub mod stations;
pub mod switch;
mod telemetry;
mod testpmd;
pub mod work;

use crate::machine::huge_pages::HugePages;
use crate::machine::processors::Processors;
use crate::options::Options;
use anyhow::Result;
use linux_guest::HostDpdk;
use serde::Serialize;
use std::fmt;
use std::time::Duration;
use work::Work;

/// What a number is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The served card, doorbells in memory that it shares with its guests.
    Mapped,
    /// The served card, each doorbell a message.
    Posted,
    /// What users would pick instead.
    #[value(skip)]
    Peer,
    /// A limit of the machine.
    #[value(skip)]
    Raw,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mapped => "mapped",
            Self::Posted => "posted",
            Self::Peer => "peer",
            Self::Raw => "raw",
        })
    }
}

/// What a slice has found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slice {
    /// Frames delivered, both directions added.
    pub frames: u64,
    /// How long it took.
    pub took: Duration,
    /// What the forwarder spent meanwhile.
    pub cycles: Option<u64>,
    /// Frames of the sender that was served best over those of the one that was served worst, where that is counted.
    pub unfairness: Option<f64>,
    /// The share of the limit on frames under way that senders used: near 1 the forwarder bounds the rate, else the guests do.
    pub under_way: Option<f64>,
}

impl Slice {
    /// Millions of frames a second.
    #[must_use]
    pub fn mpps(&self) -> f64 {
        self.frames as f64 / self.took.as_secs_f64() / 1e6
    }

    /// Cycles of the forwarder for a frame.
    #[must_use]
    pub fn cycles_per_frame(&self) -> Option<f64> {
        (self.frames > 0).then_some(self.cycles? as f64 / self.frames as f64)
    }
}

/// One that forwards, ready to go on. It takes no processor between its slices.
pub trait Contender {
    /// What it is called.
    fn name(&self) -> &str;

    /// What kind of number it gives.
    fn mode(&self) -> Mode;

    /// Goes on for a while, counts after a moment in which caches warm up, and stands still again.
    ///
    /// # Errors
    /// It is gone, or moves nothing.
    fn slice(&mut self, length: Duration) -> Result<Slice>;
}

/// Those who take turns.
pub type Contenders = Vec<Box<dyn Contender>>;

/// How long a contender runs before it is counted.
pub(crate) const WARM_UP: Duration = Duration::from_millis(30);

/// All that were asked for and can do this work, and why some of them cannot take part here.
///
/// # Errors
/// One of them does not start, or moves no frame.
pub fn all(
    options: &Options,
    dpdk: Option<&HostDpdk>,
    huge: &HugePages,
    processors: Processors,
    work: Work,
) -> Result<(Contenders, Vec<String>)> {
    let mut contenders: Contenders = Vec::new();
    for &card in &options.cards {
        for &mode in &options.modes {
            contenders.push(Box::new(served::Served::start(options, card, mode, processors, work)?));
        }
    }
    contenders.push(Box::new(bare::Bare::new(processors, work)));
    let mut skipped = Vec::new();
    // Without DPDK there are to be no peers.
    let Some(dpdk) = dpdk else { return Ok((contenders, skipped)) };
    for recipe in peers::RECIPES.iter().filter(|recipe| recipe.does(work)) {
        match peers::Peer::start(recipe, dpdk, huge, processors, work) {
            Ok(peer) => contenders.push(Box::new(peer)),
            Err(error) if recipe.takes_root() => skipped.push(format!("{}: {error:#}", recipe.name)),
            Err(error) => return Err(error.context(format!("the peer {}", recipe.name))),
        }
    }
    if let Work::Frames(size) = work {
        match bridge::Bridge::start(processors, size) {
            Ok(bridge) => contenders.push(Box::new(bridge)),
            Err(error) => skipped.push(format!("{}: {error:#}", bridge::NAME)),
        }
    }
    Ok((contenders, skipped))
}
