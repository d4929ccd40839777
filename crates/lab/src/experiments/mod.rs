//! The experiments there are, and what can be set in all of them. Left out: how they are run and shown.
//!
//! | module | experiments |
//! |---|---|
//! | `interrupts` | what masking and end-of-interrupt cost: fig06, fig07 |
//! | `coalescing` | how often to interrupt: fig08, fig09 |
//! | `inside` | traffic over a card or a bridge, not over a wire: fig10, fig12, fig13 |
//! | `scaling` | ten ports: fig11, fig14, fig15 |
//! | `paravirtual` | the split driver: fig16, fig17 |
//! | `latency` | what coalescing costs a program that answers requests |
//! | `beyond` | the optimisations on a current machine |
//! | `settings` | what `--set` changes, and the constants that a report lists |
//! | `point` | from a point to a machine, and from what happened to metrics |

mod beyond;
mod coalescing;
mod inside;
mod interrupts;
mod latency;
mod paravirtual;
mod point;
mod scaling;
mod settings;
#[cfg(test)]
mod tests;

use crate::catalogue::Catalogue;
use crate::experiment::Experiment;

/// Every experiment, in the order of rows and reports.
pub const ALL: &[Experiment] = &[
    interrupts::FIG06,
    interrupts::FIG07,
    coalescing::FIG08,
    coalescing::FIG09,
    inside::FIG10,
    scaling::FIG11,
    inside::FIG12,
    inside::FIG13,
    scaling::FIG14,
    scaling::FIG15,
    paravirtual::FIG16,
    paravirtual::FIG17,
    beyond::BEYOND,
    latency::LATENCY,
];

/// The experiments, and what can be set in all of them.
#[must_use]
pub fn catalogue() -> Catalogue {
    Catalogue {
        experiments: ALL,
        settings: settings::all(),
        parameters: settings::parameters(),
        residuals: settings::residuals(),
        sensitivity: settings::sensitivity(),
    }
}
