//! All experiments, one folder per paper, and the settings common to all. [`crate::runner`] runs them.
//!
//! | module | experiments |
//! |---|---|
//! | `hpca2010` | Dong et al., SR-IOV: fig06 to fig17 |
//! | `hpca2007` | Willmann et al., CDNA: cdna-throughput, cdna-scaling, cdna-hostile |
//! | `bitvisor` | Iida et al., a PF driver without interrupts: bitvisor-throughput, -latency, -liveness |
//! | `atc2006` | Menon et al., a smart virtual NIC and its channel: smart-vnic-tx, -rx, -scaling |
//! | `netback` | Zhang et al., multi-core netback: netback-multicore, -latency, -thresholds, netfront-lro |
//! | `systor2009` | Dong et al., quality of direct I/O: reset-ladder, intx-emulation, memory-types, driver-holes |
//! | `beyond` | the optimisations on a current machine, and under other loads |
//! | `today` | today's paths to a guest, and the translation of DMA: today, translate |
//! | `settings` | the settings of `--set`, and the constants listed in a report |
//! | `topology` | the files of the papers' machines, and settings that change their values |
//! | `parts` | parts of machine files: kernels' limits, ports of a one-processor machine, the disk |
//! | `nothing` | the reason of a row that is 0, where 0 is the result |
//! | `stated` | values stated by papers, for figures and comparisons |
//! | `point` | the machine of a point, and metrics from its results |

mod atc2006;
mod beyond;
mod bitvisor;
#[cfg(test)]
mod effects_tests;
pub(crate) mod features;
#[cfg(test)]
mod guide_example;
mod hpca2007;
mod hpca2010;
mod netback;
mod nothing;
pub(crate) mod parts;
mod point;
#[cfg(test)]
mod seeds_tests;
pub(crate) mod settings;
mod stated;
mod systor2009;
#[cfg(test)]
mod tests;
mod today;
pub(crate) mod topology;

pub use nothing::why_nothing;

use crate::catalogue::ExperimentCatalogue;
use crate::experiment::Experiment;
use std::sync::LazyLock;

/// All experiments, in the order of rows and reports.
pub static ALL: LazyLock<Vec<Experiment>> = LazyLock::new(|| {
    [
        hpca2010::ALL,
        beyond::ALL,
        hpca2007::ALL,
        bitvisor::ALL,
        atc2006::ALL,
        netback::ALL,
        systor2009::ALL,
        today::ALL,
    ]
    .concat()
});

/// Returns the catalogue of all experiments and common settings.
#[must_use]
pub fn catalogue() -> ExperimentCatalogue {
    ExperimentCatalogue {
        experiments: &ALL,
        settings: settings::all(),
        stated: stated::all(),
        relations: stated::relations(),
        parameters: [settings::parameters(), today::constants()].concat(),
        residuals: settings::residuals(),
        sensitivity: settings::sensitivity(),
    }
}
