//! Tests of the live host over real sockets, real shared memory and real eventfds.
//!
//! Stock guests under a real VMM, and the command line, have tests of their own.

mod support;

mod access;
mod avf;
mod avf_neighbours;
mod avf_workers;
mod capture;
mod cloud_hypervisor;
mod conduct;
mod confine;
mod control;
mod dma;
mod ending;
mod fairness;
mod filters;
mod flight;
mod hand_over;
mod heads;
mod held_addresses;
mod hostile;
mod interface;
mod interrupts;
mod latency;
mod lifetime;
mod macvtap;
mod mapped;
mod mixed;
mod names;
mod neighbours;
mod operations;
mod orders;
mod pf;
mod pieces;
mod pinned;
mod port;
mod qemu;
mod raw_ring;
mod refusals;
mod resets;
mod resources;
mod round_trips;
mod shared_bridge;
mod stream;
mod tap_identity;
mod teardown;
mod uplink;
mod uplink_life;
mod vhost;
mod wire;
mod xdp;
