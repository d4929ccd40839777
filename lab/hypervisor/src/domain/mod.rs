//! Domains of a modelled machine: the parties that cycles are charged to.

use alloc::string::String;

/// Index of a domain of a [`crate::cpu::HostMachine`]; [`DomainId::HYPERVISOR`] always exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainId(u16);

impl DomainId {
    /// Domain to which the hypervisor's work for no particular domain is charged.
    pub const HYPERVISOR: DomainId = DomainId(0);

    /// Creates the identity of the domain with this index, for models without a machine.
    pub const fn new(index: u16) -> DomainId {
        DomainId(index)
    }

    /// Returns the domain's index in the order of addition to the machine.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Kind of a domain: hypervisor, service domain, guest, or a native system without a hypervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DomainKind {
    /// Kind of a domain: the hypervisor itself.
    Hypervisor,
    /// Kind of a domain: the service domain, with PF driver, device models and back ends.
    Dom0,
    /// Kind of a domain: a hardware-virtualized guest with a virtual local APIC and VM exits.
    Hvm,
    /// Kind of a domain: a paravirtualized guest with event channels and hypercalls.
    Pvm,
    /// Kind of a domain: an operating system without a hypervisor.
    Native,
}

impl DomainKind {
    /// Returns `true` for guests. A native system counts as a guest, so that sums over guests include it.
    pub const fn is_guest(self) -> bool {
        matches!(self, DomainKind::Hvm | DomainKind::Pvm | DomainKind::Native)
    }
}

/// Domain of a modelled machine: its kind and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Kind of the modelled domain.
    pub kind: DomainKind,
    /// Name of the modelled domain in reports.
    pub name: String,
}
