//! The vfio-user server and client as conversations: what the one says, what the other answers. The modules are
//! named after the part of the protocol whose rules they hold; `qemu` and `cloud_hypervisor` are whole sessions.

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
