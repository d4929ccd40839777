//! Dong et al., *Towards High-Quality I/O Virtualization*, SYSTOR 2009: rt-audio, reset-ladder, intx-emulation,
//! memory-types, driver-holes. Rules, not prices: nothing is calibrated but how long the player works. Graphics are not
//! claimed: of a graphics card there is the one register that tells where its memory is.

mod audio;
mod holes;
mod intx;
mod memory_types;
mod reset;

use crate::experiment::{Experiment, Outcome};
use crate::named::Metrics;

pub(super) const ALL: &[Experiment] =
    &[audio::AUDIO, reset::RESET, intx::INTX, memory_types::TYPES, holes::HOLES];

/// What a rule makes of a point: no time passes that anybody would measure.
fn outcome(metrics: Metrics) -> Outcome {
    Outcome { metrics, trace: 0, simulated_ps: 0, events: 0 }
}
