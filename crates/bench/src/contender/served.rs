//! Contender: the card of `softiov serve`, with a host process ([`super::host`]) and guests that exchange frames at the
//! highest rate ([`super::stations`]).

use super::card::CardVariant;
use super::host::HostProcess;
use super::stations::{FrameExchangeResult, VfTrafficCircle};
use super::work::Workload;
use super::{Contender, ContenderKind, ContenderMeasurement, WARM_UP};
use crate::machine::cycles::{CycleCounter, InstructionCounter};
use crate::machine::processors::ProcessorAssignment;
use crate::options::BenchmarkOptions;
use anyhow::{Context, Result, ensure};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// Process that serves a card (`softiov serve`), with the guests attached to its VFs.
#[derive(Debug)]
pub struct SoftiovContender {
    name: String,
    variation: String,
    /// Guests of the host, which send frames in a circle.
    circle: VfTrafficCircle,
    host: HostProcess,
    mode: ContenderKind,
}

/// Returns the name of a card in reports, with the variation that the options have.
pub(crate) fn name(options: &BenchmarkOptions, card: CardVariant, mode: ContenderKind) -> String {
    let busy = if options.wait(mode) == "busy" { ", busy" } else { "" };
    let varied =
        if options.variation.is_default() { String::new() } else { format!(", {}", options.variation) };
    format!("{}{busy}{varied}", card.name())
}

impl SoftiovContender {
    /// Starts a host and two guests, and stops the host until its slice.
    ///
    /// # Errors
    /// The host does not start, or its VFs do not.
    pub fn start(
        options: &BenchmarkOptions,
        card: CardVariant,
        mode: ContenderKind,
        processors: ProcessorAssignment,
        work: Workload,
    ) -> Result<Self> {
        Self::with_guests(options, card, mode, processors, work, 2)
    }

    /// Starts a host and `guests` guests, at least 2, and stops the host until its slice.
    ///
    /// # Errors
    /// Returns the errors of [`SoftiovContender::start`]; [`RefusedSettings`](super::host::RefusedSettings) if the card cannot
    /// have this number of VFs or the settings of the options' variation.
    pub fn with_guests(
        options: &BenchmarkOptions,
        card: CardVariant,
        mode: ContenderKind,
        processors: ProcessorAssignment,
        work: Workload,
        guests: usize,
    ) -> Result<Self> {
        let wait = options.wait(mode);
        let host = HostProcess::start(options, card, mode, processors, guests)?;
        let circle =
            VfTrafficCircle::attach(guests, |vf| host.socket(vf), (card, options.variation.events), work);
        let mut circle = circle.with_context(|| host.log())?;
        ensure!(circle.is_in_mode(mode), "the guests do not notify the card as `wait = \"{wait}\"` requires");
        let begun = Instant::now();
        while circle.exchange(WARM_UP).arrived.contains(&0) {
            ensure!(
                begun.elapsed() < PATIENCE,
                "no frame passed the card within the timeout; the host's log:\n{}",
                host.log()
            );
        }
        host.pause()?;
        let (name, variation) = (name(options, card, mode), options.variation.to_string());
        Ok(Self { name, variation, circle, host, mode })
    }

    /// Adds the number of VFs in use to the name, unless there are two.
    #[must_use]
    pub fn named_by_guests(mut self, guests: usize) -> Self {
        if guests != 2 {
            self.name += &format!(", {guests} VFs");
        }
        self
    }

    /// Continues the stopped host while `work` runs with the guests, on the generator's processor.
    ///
    /// # Errors
    /// The host has ended.
    pub fn running<T>(&mut self, work: impl FnOnce(&mut VfTrafficCircle) -> T) -> Result<T> {
        self.host.running(|| work(&mut self.circle))
    }

    /// Returns the host's process id.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.host.process_id()
    }
}

impl Contender for SoftiovContender {
    fn name(&self) -> &str {
        &self.name
    }

    fn variation(&self) -> &str {
        &self.variation
    }

    fn mode(&self) -> ContenderKind {
        self.mode
    }

    fn slice(&mut self, length: Duration) -> Result<ContenderMeasurement> {
        let mut cycles = CycleCounter::of(self.process_id());
        let mut instructions = InstructionCounter::of(self.process_id());
        self.running(|circle| {
            circle.exchange(WARM_UP);
            circle.notifications();
            let before = (cycles.read(), instructions.read());
            let FrameExchangeResult { arrived, took, under_way } = circle.exchange(length);
            let since = |(before, after): (u64, u64)| after - before;
            let cycles = before.0.zip(cycles.read()).map(since);
            let instructions = before.1.zip(instructions.read()).map(since);
            let most = arrived.iter().max().zip(arrived.iter().min());
            let unfairness = most.map(|(most, least)| *most as f64 / (*least).max(1) as f64);
            ContenderMeasurement {
                frames: arrived.iter().sum(),
                took,
                cycles,
                instructions,
                notifications: Some(circle.notifications()),
                unfairness,
                under_way: Some(under_way),
            }
        })
    }
}
