//! Menon et al., *Optimizing Network Virtualization in Xen*, USENIX ATC 2006: smart-vnic-tx, smart-vnic-rx,
//! smart-vnic-scaling. The machine is that of Willmann et al. with four ports and another processor.
//! Calibrated on two stated values: 2,508 Mb/s received natively by Linux (cost of TCP per segment) and 750
//! Mb/s transmitted by a guest at `base` (cost of a packet in the back end). The stated 3,760 Mb/s
//! transmitted natively fill four wires and fit nothing. All other values are predictions.

mod network;

use crate::experiment::Experiment;

pub(super) const ALL: &[Experiment] = &[network::TRANSMIT, network::RECEIVE, network::SCALING];
