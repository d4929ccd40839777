//! Tests the drivers against the card, in one process: the behaviour of a VF for its guest, from the probe to
//! hostile neighbours. Each module covers one subject.

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
