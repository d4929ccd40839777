//! What must hold while a machine runs, whatever runs on it. A run in which one of these was broken is no
//! measurement. Left out: what is counted at the end, which `measure` looks at.

use hypervisor::remap::PhysicalVector;
use thiserror::Error;

/// What was broken: a defect of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Broken {
    /// A physical vector came for two domains.
    #[error("two domains share physical vector {0:?}")]
    SharedVector(PhysicalVector),
    /// A masked vector was delivered, or its interrupt was forgotten, or an unmasked one was kept back.
    #[error("vector {0} of a VF did not follow its mask")]
    Mask(u16),
    /// An end of interrupt did not take exactly the interrupt of highest priority out of service.
    #[error("an end of interrupt ended none, or another, or several")]
    EndOfInterrupt,
    /// The instruction of an exit did something else than to write this register of the APIC.
    #[error("the access to APIC register {0:#x} was not what its instruction says")]
    Instruction(u16),
}
