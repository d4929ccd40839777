//! Operations of each path for 1,000 segments that its guest receives, from the data file.

use super::range::EstimatedRange;
use crate::catalogue::ModelConstant;
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

/// Number of operations for 1,000 received segments, with its evidence.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OperationCount {
    pub(super) value: f64,
    /// Least value of a count that is measured or estimated.
    pub(super) least: Option<f64>,
    /// Greatest value of a count that is measured or estimated.
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

/// Operations of a path for 1,000 received segments. `None` is an operation that the path lacks.
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
    /// Segments that a thread of the host moves, with a copy of the payload.
    pub(super) host_packets: Option<OperationCount>,
    /// System calls of that thread.
    pub(super) system_calls: Option<OperationCount>,
    /// Segments that pass the bridge of the host's kernel.
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

impl CountKind {
    /// Returns the name of this kind of evidence in reports.
    const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Derived => "derived",
            Self::Estimate => "estimate",
        }
    }
}

impl PathCounts {
    /// Returns the path's operations with their names, in the order of the fields.
    pub(super) fn operations(&self) -> impl Iterator<Item = (&'static str, &OperationCount)> {
        [
            ("exits_kernel", &self.exits_kernel),
            ("exits_user", &self.exits_user),
            ("device_doorbells", &self.device_doorbells),
            ("wakes", &self.wakes),
            ("interrupts", &self.interrupts),
            ("host_packets", &self.host_packets),
            ("system_calls", &self.system_calls),
            ("bridged", &self.bridged),
        ]
        .into_iter()
        .filter_map(|(name, count)| Some((name, count.as_ref()?)))
    }
}

/// Returns the operations of all paths with kind and source, for lists of the model's constants.
pub(in crate::experiments) fn constants() -> Vec<ModelConstant> {
    // A file that is not valid is reported when a point is run.
    let paths = paths().unwrap_or_default();
    let listed = |path: &'static PathCounts| {
        path.operations().map(|(name, count)| ModelConstant {
            table: format!("today {}", path.name),
            name: name.to_owned(),
            value: count.value,
            unit: "per 1,000 segments".to_owned(),
            kind: count.kind.name().to_owned(),
            source: match count.least.zip(count.most) {
                Some((least, most)) => format!("{least} to {most}; {}", count.source),
                None => count.source.clone(),
            },
        })
    };
    paths.iter().flat_map(listed).collect()
}

impl OperationCount {
    /// Returns the operations for one segment.
    fn each(&self) -> EstimatedRange {
        let Self { value, least, most, .. } = *self;
        EstimatedRange { least: least.unwrap_or(value), value, most: most.unwrap_or(value) }.scaled(1e-3)
    }
}

/// Returns the operations for one segment; none if the path lacks the operation.
pub(super) fn each(count: Option<&OperationCount>) -> EstimatedRange {
    count.map_or(EstimatedRange::ZERO, OperationCount::each)
}
