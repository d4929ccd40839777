//! The experiments there are, a folder for each paper, and what can be set in all of them. Left out: how they are run
//! and shown.
//!
//! | module | experiments |
//! |---|---|
//! | `hpca2010` | Dong et al., SR-IOV: fig06 to fig17 |
//! | `hpca2007` | Willmann et al., CDNA: cdna-throughput, cdna-scaling, cdna-hostile |
//! | `bitvisor` | Iida et al., a PF driver without interrupts: bitvisor-throughput, -latency, -liveness |
//! | `systor2009` | Dong et al., quality of direct I/O: reset-ladder, intx-emulation, memory-types, driver-holes |
//! | `beyond` | the optimisations on a current machine, and for a program that answers requests |
//! | `settings` | what `--set` changes, and the constants that a report lists |
//! | `point` | from a point to a machine, and from what happened to metrics |

mod beyond;
mod bitvisor;
mod hpca2007;
mod hpca2010;
mod point;
mod settings;
mod systor2009;
#[cfg(test)]
mod tests;

use crate::catalogue::Catalogue;
use crate::experiment::Experiment;
use std::sync::LazyLock;

/// Every experiment, in the order of rows and reports.
pub static ALL: LazyLock<Vec<Experiment>> =
    LazyLock::new(|| [hpca2010::ALL, beyond::ALL, hpca2007::ALL, bitvisor::ALL, systor2009::ALL].concat());

/// The experiments, and what can be set in all of them.
#[must_use]
pub fn catalogue() -> Catalogue {
    Catalogue {
        experiments: &ALL,
        settings: settings::all(),
        parameters: settings::parameters(),
        residuals: settings::residuals(),
        sensitivity: settings::sensitivity(),
    }
}
