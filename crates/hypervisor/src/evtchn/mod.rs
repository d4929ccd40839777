//! Event channels: the interrupts of a paravirtual domain (Xen's two-level form). A port's pending bit, its
//! mask, a selector word per vCPU that says which words of pending bits to look at, and the vCPU's upcall
//! flags are memory shared by domain and hypervisor.
//!
//! - [`domain`]: that shared memory, and the guest's side of it;
//! - here: ports bound to each other across domains, and sending.
//!
//! A port belongs to the vCPU that it is bound to: like Linux, a vCPU skips the ports of others that it finds.
//! That is why [`Channels::rebind`] has a fixed order. Left out: what hypercalls and upcalls cost, PIRQ's
//! end-of-interrupt, the FIFO form.

pub mod domain;
#[cfg(test)]
mod tests;

pub use domain::{DomainPorts, PORTS};

use crate::domain::DomainId;
use alloc::vec::Vec;

/// What a port is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// Waits for a domain to bind to it.
    Unbound(DomainId),
    /// The other end is a port of a domain.
    Interdomain(DomainId, u16),
    /// A physical interrupt.
    Pirq(u16),
    /// A virtual interrupt: timer, console and the like.
    Virq(u8),
    /// From a vCPU of the domain to another.
    Ipi,
}

/// What sending an event did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notified {
    /// It was pending already: two became one.
    Coalesced,
    /// It pends behind the port's mask.
    Masked,
    /// It pends; the vCPU has an upcall pending already, or will look before it leaves the one it is in.
    Joined,
    /// It pends and the vCPU must be made to take an upcall: woken if blocked, kicked if running.
    Upcall(u16),
}

/// Why a call was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The domain has no event channels.
    #[error("domain has no event channels")]
    Domain,
    /// No such port, or it is free.
    #[error("port is not in use")]
    Port,
    /// No such vCPU.
    #[error("no such vCPU")]
    Vcpu,
    /// The other end does not wait for this domain.
    #[error("port does not wait for this domain")]
    NotWaiting,
    /// The port cannot be sent on.
    #[error("port has no other end")]
    NoOtherEnd,
    /// Every port is in use.
    #[error("no free port")]
    Full,
}

/// The event channels of a machine.
#[derive(Debug, Clone, Default)]
pub struct Channels {
    domains: Vec<Option<DomainPorts>>,
}

impl Channels {
    /// A machine without domains.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a domain event channels for so many vCPUs (at least one), none bound. Port 0 is never used.
    pub fn add_domain(&mut self, domain: DomainId, vcpus: u16) {
        let at = domain.index();
        if self.domains.len() <= at {
            self.domains.resize_with(at + 1, || None);
        }
        self.domains[at] = Some(DomainPorts::new(vcpus));
    }

    /// A domain's shared memory.
    ///
    /// # Errors
    /// [`Error::Domain`].
    pub fn domain(&mut self, domain: DomainId) -> Result<&mut DomainPorts, Error> {
        self.domains.get_mut(domain.index()).and_then(Option::as_mut).ok_or(Error::Domain)
    }

    /// Events of all domains that nobody will take.
    #[must_use]
    pub fn overlooked(&self) -> usize {
        self.domains.iter().flatten().map(DomainPorts::overlooked).sum()
    }

    /// A new port that waits for `remote` to bind to it. Notifies vCPU 0 until bound elsewhere.
    ///
    /// # Errors
    /// [`Error::Domain`], [`Error::Full`].
    pub fn alloc_unbound(&mut self, domain: DomainId, remote: DomainId) -> Result<u16, Error> {
        self.domain(remote)?;
        self.domain(domain)?.allocate(Binding::Unbound(remote))
    }

    /// A new port bound to a port that waits for this domain. Both are then each other's other end.
    ///
    /// # Errors
    /// [`Error::Domain`], [`Error::Port`], [`Error::NotWaiting`], [`Error::Full`].
    pub fn bind_interdomain(&mut self, domain: DomainId, remote: DomainId, port: u16) -> Result<u16, Error> {
        if self.domain(remote)?.binding(port)? != Binding::Unbound(domain) {
            return Err(Error::NotWaiting);
        }
        let own = self.domain(domain)?.allocate(Binding::Interdomain(remote, port))?;
        self.domain(remote)?.set_binding(port, Binding::Interdomain(domain, own));
        Ok(own)
    }

    /// A new port for an interrupt: [`Binding::Pirq`], [`Binding::Virq`] or [`Binding::Ipi`].
    ///
    /// # Errors
    /// [`Error::Domain`], [`Error::Vcpu`], [`Error::Full`]; [`Error::NotWaiting`] for the other bindings.
    pub fn bind(&mut self, domain: DomainId, to: Binding, vcpu: u16) -> Result<u16, Error> {
        if matches!(to, Binding::Unbound(_) | Binding::Interdomain(..)) {
            return Err(Error::NotWaiting);
        }
        let domain = self.domain(domain)?;
        domain.check_vcpu(vcpu)?;
        let port = domain.allocate(to)?;
        domain.bind_vcpu(port, vcpu)?;
        Ok(port)
    }

    /// Frees a port. The other end waits for this domain again.
    ///
    /// # Errors
    /// [`Error::Domain`], [`Error::Port`].
    pub fn close(&mut self, domain: DomainId, port: u16) -> Result<(), Error> {
        let binding = self.domain(domain)?.binding(port)?;
        if let Binding::Interdomain(remote, other) = binding {
            self.domain(remote)?.set_binding(other, Binding::Unbound(domain));
        }
        self.domain(domain)?.free(port);
        Ok(())
    }

    /// A domain sends on its port: the event is pending at the other end, or at the vCPU of an IPI's port.
    ///
    /// # Errors
    /// [`Error::Domain`], [`Error::Port`], [`Error::NoOtherEnd`].
    pub fn send(&mut self, domain: DomainId, port: u16) -> Result<Notified, Error> {
        match self.domain(domain)?.binding(port)? {
            Binding::Interdomain(remote, other) => Ok(self.domain(remote)?.set_pending(other)),
            Binding::Ipi => Ok(self.domain(domain)?.set_pending(port)),
            Binding::Unbound(_) | Binding::Pirq(_) | Binding::Virq(_) => Err(Error::NoOtherEnd),
        }
    }

    /// The hypervisor raises the interrupt that a port is bound to.
    ///
    /// # Errors
    /// [`Error::Domain`], [`Error::Port`].
    pub fn raise(&mut self, domain: DomainId, port: u16) -> Result<Notified, Error> {
        let domain = self.domain(domain)?;
        domain.binding(port)?;
        Ok(domain.set_pending(port))
    }

    /// Moves a port to another vCPU without losing an event: mask, rebind, unmask, which looks again whether
    /// one is pending. What the unmask notified, if the port was not masked before.
    ///
    /// # Errors
    /// [`Error::Domain`], [`Error::Port`], [`Error::Vcpu`].
    pub fn rebind(&mut self, domain: DomainId, port: u16, vcpu: u16) -> Result<Option<Notified>, Error> {
        let domain = self.domain(domain)?;
        domain.binding(port)?;
        domain.check_vcpu(vcpu)?;
        let was_masked = domain.mask(port);
        domain.bind_vcpu(port, vcpu)?;
        Ok(if was_masked { None } else { domain.unmask(port) })
    }
}
