//! Willmann et al., *Concurrent Direct Network Access for Virtual Machine Monitors*, HPCA 2007:
//! cdna-throughput, cdna-scaling, cdna-hostile. Calibrated on two stated values: 1,602 Mb/s transmitted by
//! Xen over two ports (cost of a packet in the back end), and the hypervisor's 10.2 % of the processor while
//! CDNA transmits (cost of checking a descriptor). All other values are predictions.

mod hostile;
mod network;

use crate::experiment::Experiment;

pub(super) const ALL: &[Experiment] = &[network::THROUGHPUT, network::SCALING, hostile::HOSTILE];
