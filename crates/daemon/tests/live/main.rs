//! The live host over real sockets, real shared memory and real eventfds.
//!
//! Left out: stock guests under a real VMM, which have a test of their own, and the command line.

mod support;

mod cloud_hypervisor;
mod qemu;
