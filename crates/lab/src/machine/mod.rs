//! The modelled machine: real cards and real drivers among modelled processors, hypervisor, kernels and
//! clients. [`World::run`] lets time pass; [`World::measure`] says what happened meanwhile.
//!
//! | module | what it is |
//! |---|---|
//! | `wire` | clients and the gigabit line they share |
//! | `port` | a card with its PF driver, fed by its wire |
//! | `vm` | a guest's hardware: memory, virtual APIC, virtual MSI-X table |
//! | `bus` | memory requests and interrupts of a port's functions |
//! | `chipset` | memory, and the IOMMU before it |
//! | `env` | the platform under a guest's kernel: each access charged, some trapped |
//! | `dom0` | the service domain: device models and its own ticks |
//! | `build`, `world`, `measure` | putting it together, letting it run, reading it |
//!
//! Left out: receivers other than one program a guest; sending guests.

mod build;
mod bus;
mod chipset;
mod dom0;
mod env;
mod measure;
mod port;
#[cfg(test)]
mod tests;
mod vm;
mod wire;
mod world;

pub use build::{BuildError, Setup};
pub use measure::{MeasureError, Measured};
pub use wire::Traffic;
pub use world::World;
