//! Menon et al., *Optimizing Network Virtualization in Xen*, USENIX ATC 2006: smart-vnic-tx, smart-vnic-rx,
//! smart-vnic-scaling. The machine is that of Willmann et al. with four ports and another processor. Calibrated on three
//! stated values: 2,508 Mb/s that Linux receives natively (the price of TCP for a segment), 750 Mb/s that a guest
//! transmits at `base` (the price of a packet in the back end), and 3,760 Mb/s that Linux transmits natively, which are
//! four full wires and fit nothing. Everything else is predicted.

mod network;

use crate::experiment::Experiment;

pub(super) const ALL: &[Experiment] = &[network::TRANSMIT, network::RECEIVE, network::SCALING];
