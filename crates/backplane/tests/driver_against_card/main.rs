//! The drivers against the card, in one process: what a guest sees of a VF, from the probe to hostile
//! neighbours. Each module is one subject.

mod conduct;
mod frames;
mod handshake;
mod hostile;
mod interrupts;
mod link;
mod offload;
mod policy;
mod port;
mod rates;
mod requests;
mod resets;
mod scaling;
mod support;
mod vlan;
