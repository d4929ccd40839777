//! Willmann et al., *Concurrent Direct Network Access for Virtual Machine Monitors*, HPCA 2007: cdna-throughput,
//! cdna-scaling, cdna-hostile. Calibrated on two stated values: 1,602 Mb/s that Xen transmits over two ports (the price
//! of a packet in the back end), and the hypervisor's 10.2 % of the processor while CDNA transmits (the price of
//! checking a descriptor). Everything else is predicted.

mod hostile;
mod network;

use crate::experiment::Experiment;

pub(super) const ALL: &[Experiment] = &[network::THROUGHPUT, network::SCALING, hostile::HOSTILE];
