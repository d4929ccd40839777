//! Domains: the parties that cycles are accounted to.

use alloc::string::String;

/// Domain of a [`crate::cpu::Machine`]; [`DomainId::HYPERVISOR`] always exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainId(u16);

impl DomainId {
    /// The hypervisor, for work on behalf of no domain.
    pub const HYPERVISOR: DomainId = DomainId(0);

    pub(crate) const fn new(index: u16) -> DomainId {
        DomainId(index)
    }

    /// Returns the index in the order of addition to the machine.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Kind of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DomainKind {
    /// Hypervisor.
    Hypervisor,
    /// Service domain: PF driver, device models, back ends.
    Dom0,
    /// Hardware-virtualized guest: virtual LAPIC, exits.
    Hvm,
    /// Paravirtualized guest: event channels, hypercalls.
    Pvm,
    /// Operating system without a hypervisor.
    Native,
}

impl DomainKind {
    /// Returns `true` for guests. A native system counts as one, so that sums over guests include it.
    pub const fn is_guest(self) -> bool {
        matches!(self, DomainKind::Hvm | DomainKind::Pvm | DomainKind::Native)
    }
}

/// Domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Kind of the domain.
    pub kind: DomainKind,
    /// Name used in reports.
    pub name: String,
}
