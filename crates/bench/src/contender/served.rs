//! The card of `softiov serve` as a contender: a host ([`super::host`]) and guests that exchange frames as fast as they
//! arrive ([`super::stations`]).

use super::card::Card;
use super::host::Host;
use super::stations::{Circle, Exchange};
use super::work::Work;
use super::{Contender, Mode, Slice, WARM_UP};
use crate::machine::cycles::Cycles;
use crate::machine::processors::Processors;
use crate::options::Options;
use anyhow::{Context, Result, ensure};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// Served host with its guests.
#[derive(Debug)]
pub struct Served {
    name: String,
    /// Guests of the host, which send frames in a circle.
    circle: Circle,
    host: Host,
    mode: Mode,
}

impl Served {
    /// Starts a host and two guests, and stops the host until its slice.
    ///
    /// # Errors
    /// The host does not start, or its VFs do not.
    pub fn start(
        options: &Options,
        card: Card,
        mode: Mode,
        processors: Processors,
        work: Work,
    ) -> Result<Self> {
        Self::with_guests(options, card, mode, processors, work, 2)
    }

    /// Starts a host and `guests` guests, 2 to 7, and stops the host until its slice.
    ///
    /// # Errors
    /// Those of [`Served::start`].
    pub fn with_guests(
        options: &Options,
        card: Card,
        mode: Mode,
        processors: Processors,
        work: Work,
        guests: usize,
    ) -> Result<Self> {
        let wait = options.wait(mode);
        let host = Host::start(options, card, mode, processors, guests)?;
        let busy = if wait == "busy" { ", busy" } else { "" };
        let vfs = if guests == 2 { String::new() } else { format!(", {guests} VFs") };
        let name = format!("{}{busy}{vfs}", card.name());
        let circle = Circle::attach(guests, |vf| host.socket(vf), card, work);
        let mut circle = circle.with_context(|| host.log())?;
        ensure!(
            circle.rings_in_memory() == (mode == Mode::Mapped),
            "the guests do not ring doorbells as `wait = \"{wait}\"` requires"
        );
        let begun = Instant::now();
        while circle.exchange(WARM_UP).arrived.contains(&0) {
            ensure!(
                begun.elapsed() < PATIENCE,
                "no frame passed the card within the timeout; the host's log:\n{}",
                host.log()
            );
        }
        host.pause()?;
        Ok(Self { name, circle, host, mode })
    }

    /// Runs `work` while the host runs, with this thread on the generator's processor.
    ///
    /// # Errors
    /// The host has ended.
    pub fn running<T>(&mut self, work: impl FnOnce(&mut Circle) -> T) -> Result<T> {
        self.host.running(|| work(&mut self.circle))
    }

    /// Returns the host's process id.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.host.process_id()
    }
}

impl Contender for Served {
    fn name(&self) -> &str {
        &self.name
    }

    fn mode(&self) -> Mode {
        self.mode
    }

    fn slice(&mut self, length: Duration) -> Result<Slice> {
        let mut cycles = Cycles::of(self.process_id());
        self.running(|circle| {
            circle.exchange(WARM_UP);
            let before = cycles.read();
            let Exchange { arrived, took, under_way } = circle.exchange(length);
            let cycles = before.zip(cycles.read()).map(|(before, after)| after - before);
            let most = arrived.iter().max().zip(arrived.iter().min());
            let unfairness = most.map(|(most, least)| *most as f64 / (*least).max(1) as f64);
            Slice { frames: arrived.iter().sum(), took, cycles, unfairness, under_way: Some(under_way) }
        })
    }
}
