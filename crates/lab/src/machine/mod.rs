//! The modelled machine: real cards and real drivers among modelled processors, hypervisor, kernels and
//! clients. [`World::run`] lets time pass; [`World::measure`] says what happened meanwhile.
//!
//! | module | what it is |
//! |---|---|
//! | `wire` | clients and the gigabit line they share |
//! | `port` | a card with its PF driver, fed by its wire |
//! | `vm` | a guest's hardware: its controller and its virtual MSI-X table |
//! | `controller` | a local APIC or event channels, and the timer |
//! | `code` | the guest's instructions that write to its APIC |
//! | `invariant` | what must hold in every run |
//! | `bus` | memory requests and interrupts of a port's functions |
//! | `chipset` | memory, the IOMMU before it, the remapping of interrupts, event channels |
//! | `registers` | a VF's registers and memory, each access charged |
//! | `env` | the platform under a guest's kernel: each access charged, some trapped |
//! | `inside` | senders in the server, over a card or a bridge |
//! | `dom0` | the service domain: device models and its own ticks |
//! | `monitor` | the PF drivers, as the service domain visits them |
//! | `split` | the split driver: the service domain's own drivers, bridges, back end, and the guests' side |
//! | `build`, `world`, `measure` | putting it together, letting it run, reading it |
//!
//! Left out: more than one program a guest.

mod build;
mod bus;
mod chipset;
mod code;
mod controller;
mod dom0;
mod env;
mod inside;
mod invariant;
mod measure;
mod monitor;
mod port;
mod registers;
mod split;
#[cfg(test)]
mod tests;
mod vm;
mod wire;
mod world;

pub use build::{BuildError, Network, Setup};
pub use inside::{Inside, Origin};
pub use invariant::Broken;
pub use measure::{MeasureError, Measured};
pub use wire::Traffic;
pub use world::World;
