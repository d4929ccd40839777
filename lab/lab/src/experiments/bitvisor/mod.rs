//! Iida et al., an interrupt-less SR-IOV PF driver for a lightweight hypervisor: bitvisor-throughput,
//! bitvisor-latency, bitvisor-liveness. Calibrated on one stated value: with a busy guest, throughput is 11.2
//! % higher without the PF's interrupts (cost of an external-interrupt exit). All other values are
//! predictions.

mod liveness;
mod traffic;

use crate::experiment::Experiment;

pub(super) const ALL: &[Experiment] = &[traffic::THROUGHPUT, traffic::LATENCY, liveness::LIVENESS];
