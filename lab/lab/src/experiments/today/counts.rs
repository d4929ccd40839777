//! Operations of each path for 1,000 packets, from the data file.

use super::range::EstimatedRange;
use serde::Deserialize;
use std::sync::LazyLock;

const FILE: &str = include_str!("../../../data/today.toml");

/// Kind of evidence for a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CountKind {
    /// Count of a measurement on a live host.
    Measured,
    /// Count that follows from others or from the path's construction.
    Derived,
    /// Count that is estimated, with a range.
    Estimate,
}

/// Number of operations for 1,000 packets, with its evidence.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OperationCount {
    pub(super) value: f64,
    /// Least value of an estimated count.
    pub(super) least: Option<f64>,
    /// Greatest value of an estimated count.
    pub(super) most: Option<f64>,
    pub(super) kind: CountKind,
    pub(super) source: String,
}

/// Origin of a path's interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum InterruptOrigin {
    /// A thread of the host signals an irqfd.
    Software,
    /// A card sends a message through interrupt remapping.
    Device,
}

/// Operations of a path for 1,000 packets. `None` is an operation that the path lacks.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PathCounts {
    pub(super) name: String,
    pub(super) what: String,
    pub(super) signal: InterruptOrigin,
    /// Exits whose access KVM passes to an eventfd, or handles itself.
    pub(super) exits_kernel: Option<OperationCount>,
    /// Exits whose access a VMM in user space handles.
    pub(super) exits_user: Option<OperationCount>,
    /// Stores to a doorbell of a card, without an exit.
    pub(super) device_doorbells: Option<OperationCount>,
    /// Wake-ups of a sleeping thread that serves the card.
    pub(super) wakes: Option<OperationCount>,
    /// Interrupts that the guest takes.
    pub(super) interrupts: Option<OperationCount>,
    /// Packets that a thread of the host moves.
    pub(super) host_packets: Option<OperationCount>,
    /// System calls of that thread.
    pub(super) system_calls: Option<OperationCount>,
    /// Packets that pass the bridge of the host's kernel.
    pub(super) bridged: Option<OperationCount>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CountsFile {
    path: Vec<PathCounts>,
}

static PATHS: LazyLock<Result<Vec<PathCounts>, String>> = LazyLock::new(|| {
    let file: Result<CountsFile, _> = toml::from_str(FILE);
    file.map(|file| file.path).map_err(|error| format!("data/today.toml: {error}"))
});

/// Returns the operations of all paths, in the order of the file.
pub(super) fn paths() -> Result<&'static [PathCounts], String> {
    PATHS.as_deref().map_err(Clone::clone)
}

impl OperationCount {
    /// Returns the operations for one packet.
    fn each(&self) -> EstimatedRange {
        let Self { value, least, most, .. } = *self;
        EstimatedRange { least: least.unwrap_or(value), value, most: most.unwrap_or(value) }.scaled(1e-3)
    }
}

/// Returns the operations for one packet; none if the path lacks the operation.
pub(super) fn each(count: Option<&OperationCount>) -> EstimatedRange {
    count.map_or(EstimatedRange::ZERO, OperationCount::each)
}
