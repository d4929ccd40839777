//! Who forwards frames between two functions.
//!
//! | module | who |
//! |---|---|
//! | [`served`] | the card behind `softiov serve`, with its policy |
//! | [`stations`] | its guests: two VFs, polled by one thread |
//! | `testpmd`, `telemetry` | DPDK's testpmd as a program that is asked for its counters |
//! | `peers` | what testpmd is told to be each peer, and the null forwarder |

mod peers;
pub mod served;
pub mod stations;
mod telemetry;
mod testpmd;

use crate::machine::huge_pages::HugePages;
use crate::machine::processors::Processors;
use crate::options::Options;
use anyhow::{Context, Result};
use linux_guest::HostDpdk;
use serde::Serialize;
use std::time::Duration;

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

/// What a slice has found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slice {
    /// Frames delivered, both directions added.
    pub frames: u64,
    /// How long it took.
    pub took: Duration,
    /// What the forwarder spent meanwhile.
    pub cycles: Option<u64>,
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

/// How long a contender runs before it is counted.
pub(crate) const WARM_UP: Duration = Duration::from_millis(30);

/// All that were asked for, for frames of one length.
///
/// # Errors
/// One of them does not start, or moves no frame.
pub fn all(
    options: &Options,
    dpdk: Option<&HostDpdk>,
    huge: &HugePages,
    processors: Processors,
    size: usize,
) -> Result<Vec<Box<dyn Contender>>> {
    let served = served::Served::start(options, processors, size)?;
    let mut contenders: Vec<Box<dyn Contender>> = vec![Box::new(served)];
    if let Some(dpdk) = dpdk {
        for recipe in &peers::RECIPES {
            let peer = peers::Peer::start(recipe, dpdk, huge, processors, size);
            contenders.push(Box::new(peer.with_context(|| format!("the peer {}", recipe.name))?));
        }
    }
    Ok(contenders)
}
