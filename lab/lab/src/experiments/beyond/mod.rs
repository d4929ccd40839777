//! Experiments beyond the papers: their systems on other machines and under other loads.

mod doorbells;
mod isolation;
mod latency;
mod optimisations;
mod replication;
mod rivals;

use crate::experiment::Experiment;

pub(super) const ALL: &[Experiment] = &[
    optimisations::BEYOND,
    latency::LATENCY,
    rivals::RIVALS,
    rivals::STEP_OF_RATE,
    replication::REPLICATION,
    isolation::ISOLATION,
    doorbells::DOORBELLS,
    doorbells::QUEUE_PAIRS,
];
