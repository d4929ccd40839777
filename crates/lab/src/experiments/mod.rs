//! The experiments there are, a folder for each paper, and what can be set in all of them. Left out: how they are run
//! and shown.
//!
//! | module | experiments |
//! |---|---|
//! | `hpca2010` | Dong et al., SR-IOV: fig06 to fig17 |
//! | `hpca2007` | Willmann et al., CDNA: cdna-throughput, cdna-scaling, cdna-hostile |
//! | `bitvisor` | Iida et al., a PF driver without interrupts: bitvisor-throughput, -latency, -liveness |
//! | `atc2006` | Menon et al., a smart virtual NIC and its channel: smart-vnic-tx, -rx, -scaling |
//! | `netback` | Zhang et al., multi-core netback: netback-multicore, -latency, -thresholds, netfront-lro |
//! | `systor2009` | Dong et al., quality of direct I/O: reset-ladder, intx-emulation, memory-types, driver-holes |
//! | `beyond` | the optimisations on a current machine, and for a program that answers requests |
//! | `settings` | what `--set` changes, and the constants that a report lists |
//! | `nothing` | why a row is 0, where that is the answer |
//! | `stated` | what papers state of points, for figures |
//! | `point` | from a point to a machine, and from what happened to metrics |

mod atc2006;
mod beyond;
mod bitvisor;
#[cfg(test)]
mod effects_tests;
mod hpca2007;
mod hpca2010;
mod netback;
mod nothing;
mod point;
mod settings;
mod stated;
mod systor2009;
#[cfg(test)]
mod tests;

pub use nothing::why_nothing;

use crate::catalogue::Catalogue;
use crate::experiment::Experiment;
use std::sync::LazyLock;

/// Every experiment, in the order of rows and reports.
pub static ALL: LazyLock<Vec<Experiment>> = LazyLock::new(|| {
    [hpca2010::ALL, beyond::ALL, hpca2007::ALL, bitvisor::ALL, atc2006::ALL, netback::ALL, systor2009::ALL]
        .concat()
});

/// The experiments, and what can be set in all of them.
#[must_use]
pub fn catalogue() -> Catalogue {
    Catalogue {
        experiments: &ALL,
        settings: settings::all(),
        stated: stated::all(),
        parameters: settings::parameters(),
        residuals: settings::residuals(),
        sensitivity: settings::sensitivity(),
    }
}
