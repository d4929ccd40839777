//! The live host over real sockets, real shared memory and real eventfds.
//!
//! Left out: stock guests under a real VMM, which have a test of their own, and the command line.

mod support;

mod cloud_hypervisor;
mod conduct;
mod confine;
mod control;
mod dma;
mod ending;
mod fairness;
mod hostile;
mod interrupts;
mod latency;
mod lifetime;
mod mapped;
mod orders;
mod pf;
mod port;
mod qemu;
mod refusals;
mod resets;
mod resources;
mod teardown;
mod uplink;
mod uplink_life;
