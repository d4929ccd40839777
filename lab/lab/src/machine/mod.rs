//! Modelled machines: real cards and real drivers with modelled processors, hypervisors, kernels and clients.
//! [`ServerSimulation::run`] advances time; [`ServerSimulation::measure`] returns the results of an interval.
//!
//! | module | contents |
//! |---|---|
//! | `topology` | sockets, cores, threads and wires as data |
//! | `engine` | processors and events, and the actors that use them |
//! | `breakdown` | cycles by domain, category and port |
//! | `books` | conservation equations of every run |
//! | `memory`, `vectors` | layout of domains' memory; a guest's interrupt vectors |
//! | `chipset` | memory, IOMMU, interrupt remapping, event channels |
//! | `controller` | local APIC or event channels, and the timer |
//! | `code` | guest instructions that write to the APIC |
//! | `invariant` | invariants of interrupt virtualization |
//! | `parts` | parts of systems |
//! | `single` | one processor under Xen 2: the servers of Willmann et al. and Menon et al. |
//! | `assigned` | the machine of Dong et al. (SYSTOR 2009): a device assigned to the guest, or shared |
//! | `thin` | a lightweight hypervisor under one guest, with an interrupt-less PF driver |
//! | `queues` | a current server: a guest with several processors, and a VF queue pair for each |
//! | `server` | the server of Dong et al. (HPCA 2010), with VFs or a split driver |
//!
//! Each guest runs one program.

pub mod assigned;
mod books;
mod breakdown;
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

pub use books::CountMismatch;
pub use breakdown::{BreakdownCell, CycleBreakdown};
pub use engine::{Actor, ModelDefect, Simulation, SimulationCore};
pub use invariant::InvariantViolation;
pub use parts::card::TrafficLimits;
pub use parts::disk::DiskProperties;
pub use parts::quality;
pub use parts::traffic::ClientTraffic;
pub use server::setup::{
    InterDomainSender, InterDomainTraffic, NetbackOptions, NetworkAccessMode, ServerBuildError, ServerSetup,
    VcpuScheduling,
};
pub use server::{ServerMachine, ServerResults, ServerSimulation};
pub use topology::ServerTopology;
