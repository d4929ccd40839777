//! Contenders of the benchmark: forwarders of frames between two functions.
//!
//! | module | purpose |
//! |---|---|
//! | [`card`] | families of SoftIOV's card |
//! | [`host`] | process of `softiov serve`, with a policy |
//! | [`served`] | card of SoftIOV with its guests |
//! | [`stations`] | guests that one thread polls and that exchange frames |
//! | `guests` | drivers of the families' functions |
//! | `kind` | kinds of contenders |
//! | [`work`] | frames that guests exchange |
//! | `testpmd`, `telemetry` | process of DPDK's testpmd, and its counters |
//! | `bare` | two threads that only copy and look up |
//! | `peers` | arguments of testpmd for each peer, and the null forwarder |
//! | [`switch`] | Open vSwitch with DPDK |
//! | `bridge` | bridge of the kernel between two taps |

mod bare;
mod bridge;
pub mod card;
pub(crate) mod guests;
pub mod host;
mod kind;
mod peers;
pub mod served;
pub mod stations;
pub mod switch;
mod telemetry;
mod testpmd;
pub mod work;

use crate::machine::huge_pages::HugePages;
use crate::machine::processors::ProcessorAssignment;
use crate::options::BenchmarkOptions;
use anyhow::Result;
use card::CardVariant;
pub use guests::NotificationCounts;
use host::RefusedSettings;
pub use kind::ContenderKind;
use linux_guest::HostDpdk;
use served::SoftiovContender;
use std::time::Duration;
use vhost_client::VhostClientError;
use work::Workload;

/// Measurement of one contender in a time slice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ContenderMeasurement {
    /// Number of frames delivered in the slice, in both directions.
    pub frames: u64,
    /// Duration of the measured time slice.
    pub took: Duration,
    /// Processor cycles that the forwarder took in the slice.
    pub cycles: Option<u64>,
    /// Instructions that the forwarder took in the slice, if the machine has counters.
    pub instructions: Option<u64>,
    /// Notifications between guests and card in the slice, if the contender counts them.
    pub notifications: Option<NotificationCounts>,
    /// Ratio of the best-served sender's frames to the worst-served sender's, if the contender counts frames by sender.
    pub unfairness: Option<f64>,
    /// Share of the limit on pending frames that senders used. Near 1 the forwarder limits the rate; far below 1 the
    /// guests limit it.
    pub under_way: Option<f64>,
}

impl ContenderMeasurement {
    /// Creates a measurement of a contender that counts nothing but frames and cycles.
    #[must_use]
    pub fn new(frames: u64, took: Duration, cycles: Option<u64>) -> Self {
        Self {
            frames,
            took,
            cycles,
            instructions: None,
            notifications: None,
            unfairness: None,
            under_way: None,
        }
    }

    /// Returns the number of events for 1,000 frames.
    #[must_use]
    pub fn per_1000_frames(&self, events: impl Fn(&NotificationCounts) -> u64) -> Option<f64> {
        (self.frames > 0).then_some(events(self.notifications.as_ref()?) as f64 * 1e3 / self.frames as f64)
    }

    /// Returns the forwarder's instructions for a frame.
    #[must_use]
    pub fn instructions_per_frame(&self) -> Option<f64> {
        (self.frames > 0).then_some(self.instructions? as f64 / self.frames as f64)
    }

    /// Returns the forwarding rate in millions of frames a second.
    #[must_use]
    pub fn mpps(&self) -> f64 {
        self.frames as f64 / self.took.as_secs_f64() / 1e6
    }

    /// Returns the forwarder's processor cycles for a frame.
    #[must_use]
    pub fn cycles_per_frame(&self) -> Option<f64> {
        (self.frames > 0).then_some(self.cycles? as f64 / self.frames as f64)
    }
}

/// Forwarder that is ready to run and takes part in the benchmark. It uses no processor time between its slices.
pub trait Contender {
    /// Returns the name of the contender in reports.
    fn name(&self) -> &str;

    /// Returns the settings that differ from the contender's defaults; empty if none does.
    fn variation(&self) -> &str {
        ""
    }

    /// Returns the kind of the contender.
    fn mode(&self) -> ContenderKind;

    /// Runs the contender for a slice of `length` after a warm-up of the caches, measures the slice, and stops the
    /// contender again.
    ///
    /// # Errors
    /// The contender has ended, or moves no frame.
    fn slice(&mut self, length: Duration) -> Result<ContenderMeasurement>;
}

/// Contenders of a benchmark run, which are measured in turn.
pub type Contenders = Vec<Box<dyn Contender>>;

/// Names of the contenders other than SoftIOV's cards.
pub(crate) const NAMES: [&str; 8] = {
    let [a, b, c, d, e, f] = peers::NAMES;
    [bare::NAME, a, b, c, d, e, f, bridge::NAME]
};

/// Time for which a contender runs before it is measured.
pub(crate) const WARM_UP: Duration = Duration::from_millis(30);

/// Returns those cards of the options whose guests can attach, and the reasons why others cannot: a host may not offer
/// the rings of a virtio card.
///
/// # Errors
/// A host does not start, or a guest does not attach for another reason.
pub fn available_cards(
    options: &BenchmarkOptions,
    processors: ProcessorAssignment,
) -> Result<(Vec<CardVariant>, Vec<String>)> {
    let (mut available, mut skipped) = (Vec::new(), Vec::new());
    for &card in &options.cards {
        if card == CardVariant::VirtioPacked {
            let host = host::HostProcess::start(options, card, ContenderKind::Kicked, processors, 2)?;
            let attached = card.attach(&host.socket(0), Workload::Frames(64), false);
            let refusal = attached.err().filter(|error| {
                matches!(error.downcast_ref::<VhostClientError>(), Some(VhostClientError::NotOffered(_)))
            });
            if let Some(error) = refusal {
                skipped.push(format!("{}: {:#}", card.name(), error.root_cause()));
                continue;
            }
        }
        available.push(card);
    }
    Ok((available, skipped))
}

/// Starts each card of the options with each variation, in each of its modes, with guests on `guests` ports. Also returns the
/// reasons why hosts refuse others.
///
/// # Errors
/// A host does not start for another reason, or moves no frame.
pub fn cards(
    options: &BenchmarkOptions,
    processors: ProcessorAssignment,
    work: Workload,
    guests: usize,
) -> Result<(Contenders, Vec<String>)> {
    let (mut contenders, mut skipped): (Contenders, _) = (Vec::new(), Vec::new());
    for options in &options.varied() {
        for &card in &options.cards {
            for &mode in card.modes(&options.modes) {
                let started = SoftiovContender::with_guests(options, card, mode, processors, work, guests);
                match started {
                    Ok(served) => contenders.push(Box::new(served)),
                    Err(error) => skipped.push(refusal(options, card, mode, error)?),
                }
            }
        }
    }
    Ok((contenders, skipped))
}

/// Returns the name of a card and the reason why its host refuses its settings.
///
/// # Errors
/// The error has another cause.
fn refusal(
    options: &BenchmarkOptions,
    card: CardVariant,
    mode: ContenderKind,
    error: anyhow::Error,
) -> Result<String> {
    let reason = error.downcast::<RefusedSettings>()?;
    Ok(format!("{} ({mode}): {reason}", served::name(options, card, mode)))
}

/// Starts all contenders that the options select and that support the workload. Also returns the reasons why others are
/// missing.
///
/// # Errors
/// A contender does not start, or moves no frame.
pub fn all(
    options: &BenchmarkOptions,
    dpdk: Option<&HostDpdk>,
    huge: &HugePages,
    processors: ProcessorAssignment,
    work: Workload,
) -> Result<(Contenders, Vec<String>)> {
    let (mut contenders, mut skipped) = cards(options, processors, work, 2)?;
    if options.measures(bare::NAME) {
        contenders.push(Box::new(bare::BarePathContender::new(processors, work)));
    }
    // Without DPDK no peers are wanted.
    let Some(dpdk) = dpdk else { return Ok((contenders, skipped)) };
    for recipe in peers::RECIPES.iter().filter(|recipe| recipe.does(work) && options.measures(recipe.name)) {
        match peers::PeerContender::start(recipe, dpdk, huge, processors, work) {
            Ok(peer) => contenders.push(Box::new(peer)),
            Err(error) if recipe.takes_root() => skipped.push(format!("{}: {error:#}", recipe.name)),
            Err(error) => return Err(error.context(format!("cannot start the peer {}", recipe.name))),
        }
    }
    if let Workload::Frames(size) = work
        && options.measures(bridge::NAME)
    {
        match bridge::LinuxBridge::start(processors, size) {
            Ok(bridge) => contenders.push(Box::new(bridge)),
            Err(error) => skipped.push(format!("{}: {error:#}", bridge::NAME)),
        }
    }
    Ok((contenders, skipped))
}
