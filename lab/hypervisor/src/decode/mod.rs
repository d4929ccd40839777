//! Handles a guest's access to its APIC page. The hypervisor trusts the exit qualification, or fetches and emulates the
//! guest's instruction, which needs a walk of the guest's page tables.
//!
//! - [`mod@apic_access`]: the exit, the three policies, and the outcome;
//! - [`memory`], [`paging`]: a guest's memory and page tables as the hypervisor reads them;
//! - [`fetch`]: fetching and decoding the instruction at RIP;
//! - [`execute`], [`alu`], [`cpu`]: the instruction's effect on registers, memory and APIC.
//!
//! `iced-x86` decodes instructions. 64-bit code only; accesses across a page boundary, breakpoints and
//! atomicity against other CPUs are not supported. The caller charges the cost.

pub mod alu;
pub mod apic_access;
pub mod cpu;
pub mod execute;
pub mod fetch;
pub mod memory;
pub mod paging;
#[cfg(test)]
mod tests;

pub use apic_access::{
    AccessibleGuestState, ApicAccessExit, ApicAccessKind, ApicExitHandlingPath, ApicExitOutcome,
    ApicInstructionEffect, EoiPolicy, apic_access,
};
pub use cpu::VcpuRegisters;
pub use memory::{FlatGuestMemory, GuestMemory};
pub use paging::{PageFault, PageTableBuilder};

/// Processor exception that an emulated instruction raises in the guest. RIP and registers are as before the
/// instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GuestException {
    /// Exception: the guest's page tables forbid the access.
    #[error(transparent)]
    Page(#[from] PageFault),
    /// Exception: general protection, because the linear address is not canonical.
    #[error("the instruction's memory address is not canonical")]
    GeneralProtection,
    /// Exception: undefined opcode, because the instruction is illegal or not emulated.
    #[error("the emulator does not support the instruction")]
    Undefined,
}

/// Work of emulating an instruction, for which the caller charges cycles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EmulationWork {
    /// Page-table entries loaded from guest memory during the emulation.
    pub table_loads: u32,
    /// Bytes of code fetched from guest memory.
    pub fetched: u32,
    /// Instructions decoded in the emulation, 0 or 1.
    pub decoded: u32,
    /// Operands that the instruction read from or wrote to memory or the APIC.
    pub accesses: u32,
}
