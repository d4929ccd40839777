//! What a hypervisor does when a guest touches its APIC's page: it can trust the exit's own words, or read and
//! carry out the guest's instruction, for which it must walk the guest's page tables first.
//!
//! - [`mod@apic_access`]: the exit, the three policies, and what was done;
//! - [`memory`], [`paging`]: a guest's memory and page tables as the hypervisor reads them;
//! - [`fetch`]: from RIP to an instruction;
//! - [`execute`], [`alu`], [`cpu`]: the instruction's effect on registers, memory and APIC.
//!
//! Instructions are decoded by `iced-x86` and carried out here. Left out: code that is not 64-bit, accesses
//! across a page boundary, breakpoints, atomicity against other CPUs, and what all this costs.

pub mod alu;
pub mod apic_access;
pub mod cpu;
pub mod execute;
pub mod fetch;
pub mod memory;
pub mod paging;
#[cfg(test)]
mod tests;

pub use apic_access::{Access, ApicAccess, Effect, Guest, Handled, How, Policy, apic_access};
pub use cpu::Cpu;
pub use memory::{FlatMemory, GuestMemory};
pub use paging::{GuestTables, PageFault};

/// What is injected into the guest instead of an effect. RIP and registers are as before the instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Trap {
    /// Its page tables do not allow the access.
    #[error(transparent)]
    Page(#[from] PageFault),
    /// The address is not canonical.
    #[error("address is not canonical")]
    GeneralProtection,
    /// The instruction is illegal, or not among those that are emulated.
    #[error("instruction is not emulated")]
    Undefined,
}

/// What was done to get at the instruction and its operands: what the caller charges for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Page-table entries loaded from the guest's memory.
    pub table_loads: u32,
    /// Bytes of code fetched.
    pub fetched: u32,
    /// Instructions decoded, 0 or 1.
    pub decoded: u32,
    /// Operands read from or written to memory or APIC.
    pub accesses: u32,
}
