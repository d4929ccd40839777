//! Dong et al., *High Performance Network Virtualization with SR-IOV*, HPCA 2010: figures 6 to 17.
//!
//! | module | experiments |
//! |---|---|
//! | `interrupts` | cost of masking and end of interrupt: fig06, fig07 |
//! | `coalescing` | interrupt coalescing: fig08, fig09 |
//! | `rates` | the last steps of fig11 at several interrupt rates: fig11-rates |
//! | `inside` | traffic over a card or a bridge instead of a wire: fig10, fig12, fig13 |
//! | `scaling` | ten ports: fig11, fig14, fig15 |
//! | `paravirtual` | the split driver: fig16, fig17 |

pub(super) mod coalescing;
mod inside;
mod interrupts;
mod paravirtual;
mod rates;
pub(super) mod scaling;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unmoved_tests;

use crate::experiment::Experiment;

pub(super) const ALL: &[Experiment] = &[
    interrupts::FIG06,
    interrupts::FIG07,
    coalescing::FIG08,
    coalescing::FIG09,
    inside::FIG10,
    scaling::FIG11,
    rates::FIG11_RATES,
    inside::FIG12,
    inside::FIG13,
    scaling::FIG14,
    scaling::FIG15,
    paravirtual::FIG16,
    paravirtual::FIG17,
];
