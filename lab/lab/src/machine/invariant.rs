//! Invariants of interrupt virtualization, checked while a machine runs. A run that violates an invariant has
//! no valid results. `measure` checks counts at the end.

use hypervisor::remap::PhysicalVector;
use thiserror::Error;

/// Invariant that a run violated: a defect of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvariantViolation {
    /// A physical interrupt vector was delivered to two domains.
    #[error("two domains share physical interrupt vector {0:?}")]
    SharedVector(PhysicalVector),
    /// A masked interrupt vector was delivered, an interrupt of a masked vector was lost, or an unmasked
    /// vector was not delivered.
    #[error("interrupt vector {0} of a VF did not follow its mask bit")]
    Mask(u16),
    /// An end of interrupt did not end exactly the in-service interrupt of highest priority.
    #[error("an end of interrupt did not end exactly the interrupt of highest priority")]
    EndOfInterrupt,
    /// The instruction at a VM exit did not write the expected APIC register.
    #[error("VM exit for APIC register {0:#x}, but the instruction that exited does not write the register")]
    Instruction(u16),
}
