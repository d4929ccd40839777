//! Tests conversations of vfio-user server and client. Each module covers one part of the protocol; `qemu` and
//! `cloud_hypervisor` are whole sessions.

mod client;
mod cloud_hypervisor;
mod dma;
mod framing;
mod information;
mod interrupts;
mod later;
mod peer;
mod properties;
mod qemu;
mod regions;
mod script;
mod steady_state;
mod version;
