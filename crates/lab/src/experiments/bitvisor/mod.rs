//! Iida et al., an SR-IOV PF driver without interrupts for a thin hypervisor: bitvisor-throughput, bitvisor-latency,
//! bitvisor-liveness. Calibrated on one stated value: with a busy guest, throughput without the PF's interrupts is 11.2 %
//! above that with them (the price of an external interrupt's exit). Everything else is predicted.

mod liveness;
mod traffic;

use crate::experiment::Experiment;

pub(super) const ALL: &[Experiment] = &[traffic::THROUGHPUT, traffic::LATENCY, liveness::LIVENESS];
