//! What the papers do not have: their systems on other machines, and under other loads.

mod latency;
mod optimisations;

use crate::experiment::Experiment;

pub(super) const ALL: &[Experiment] = &[optimisations::BEYOND, latency::LATENCY];
