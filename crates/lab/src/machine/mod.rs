//! Modelled machines: real cards and real drivers among modelled processors, hypervisor, kernels and clients.
//! [`World::run`] lets time pass; [`World::measure`] says what happened meanwhile.
//!
//! | module | what it is |
//! |---|---|
//! | `topology` | sockets, cores, threads, wires, as data |
//! | `engine` | processors and events; who acts in time |
//! | `books` | equations that must hold in every run |
//! | `memory`, `vectors` | where domains' memory lies; a guest's interrupt vectors |
//! | `chipset` | memory, the IOMMU before it, the remapping of interrupts, event channels |
//! | `controller` | a local APIC or event channels, and the timer |
//! | `code` | the guest's instructions that write to its APIC |
//! | `invariant` | rules of interrupt virtualization |
//! | `parts` | what systems are made of |
//! | `single` | one processor under Xen 2: the servers of Willmann et al. and of Menon et al. |
//! | `assigned` | the machine of Dong et al. (SYSTOR 2009): a device for the guest itself, or through the service domain |
//! | `thin` | a thin hypervisor under one guest, with a PF driver that takes no interrupt |
//! | `queues` | a current server whose guest has several processors, and a VF with a queue pair for each |
//! | `server` | the server of Dong et al., with VFs or a split driver |
//!
//! Left out: more than one program a guest.

pub mod assigned;
mod books;
mod chipset;
mod code;
mod controller;
mod engine;
mod invariant;
mod memory;
mod parts;
pub mod queues;
mod server;
pub mod single;
#[cfg(test)]
mod tests;
pub mod thin;
pub mod topology;
mod vectors;

pub use books::Unbalanced;
pub use engine::{Actor, Core, Defect, Engine};
pub use invariant::Broken;
pub use parts::card::Limits;
pub use parts::quality;
pub use parts::wire::Traffic;
pub use server::setup::{BuildError, Inside, Netback, Network, Origin, Scheduling, Setup};
pub use server::{Measured, Server, World};
pub use topology::Topology;
