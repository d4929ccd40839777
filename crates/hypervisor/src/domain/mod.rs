//! Domains: whoever time is accounted to. Left out: what runs in them.

use alloc::string::String;

/// A domain of a [`crate::cpu::Machine`]; [`DomainId::HYPERVISOR`] is always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainId(u16);

impl DomainId {
    /// The hypervisor itself: for work that is on behalf of no domain.
    pub const HYPERVISOR: DomainId = DomainId(0);

    pub(crate) const fn new(index: u16) -> DomainId {
        DomainId(index)
    }

    /// Its place among the machine's domains, in the order they were added.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a domain is to the hypervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DomainKind {
    /// The hypervisor.
    Hypervisor,
    /// The service domain: PF driver, device models, back ends.
    Dom0,
    /// A guest on hardware virtualization: virtual LAPIC, exits.
    Hvm,
    /// A paravirtualized guest: event channels, hypercalls.
    Pvm,
    /// An operating system without a hypervisor.
    Native,
}

impl DomainKind {
    /// Whether it is a guest, for sums over guests; a native system stands in the place of one.
    pub const fn is_guest(self) -> bool {
        matches!(self, DomainKind::Hvm | DomainKind::Pvm | DomainKind::Native)
    }
}

/// A domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// What it is.
    pub kind: DomainKind,
    /// What reports call it.
    pub name: String,
}
