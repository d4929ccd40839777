//! Event channels: the interrupts of a paravirtualized domain, in Xen's two-level form. Domain and hypervisor share
//! memory: each port's pending and mask bits, and for each vCPU a bit mask of pending words and its upcall flags.
//!
//! - [`domain`]: the shared memory and the guest's operations;
//! - here: bindings between domains, and sending.
//!
//! A port belongs to the vCPU it is bound to: as in Linux, a vCPU skips the ports of others. That is why
//! [`EventChannels::rebind`] has a fixed order. The caller charges hypercalls and upcalls; PIRQ end-of-interrupt
//! and the FIFO form are not supported.

pub mod domain;
#[cfg(test)]
mod tests;

pub use domain::{DomainEventChannelPorts, PORTS};

use crate::domain::DomainId;
use alloc::vec::Vec;

/// Binding of an event-channel port: unbound, or to another port or an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventChannelBinding {
    /// The port is unbound; the named domain may bind to it.
    Unbound(DomainId),
    /// The port is bound to this port of another domain.
    Interdomain(DomainId, u16),
    /// The port is bound to this physical interrupt.
    Pirq(u16),
    /// The port is bound to this virtual interrupt, such as timer or console.
    Virq(u8),
    /// The port sends events from one vCPU of the domain to another.
    Ipi,
}

/// Outcome of sending an event to an event-channel port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventSendOutcome {
    /// The port's event was pending already; both events are delivered as one.
    Coalesced,
    /// The event is pending at a masked port.
    Masked,
    /// The event is pending; the vCPU has an upcall pending or checks again before it leaves its current upcall.
    UpcallPending,
    /// The event is pending, and this vCPU must take an upcall: wake it if blocked, interrupt it if running.
    Upcall(u16),
}

/// Error of an event-channel operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EventChannelError {
    /// The domain has no event channels in this machine.
    #[error("the domain has no event channels")]
    Domain,
    /// The port number is invalid or the port is free.
    #[error("the event-channel port is not in use")]
    Port,
    /// The domain does not have this vCPU.
    #[error("the virtual CPU of the event channel does not exist")]
    Vcpu,
    /// The remote port does not wait for this domain to bind to it.
    #[error("the remote event-channel port is not reserved for this domain")]
    NotWaiting,
    /// The port is not bound to another port or to an IPI, so it cannot send.
    #[error("the event-channel port is not bound to another port or to an IPI")]
    NoOtherEnd,
    /// All event-channel ports of the domain are in use.
    #[error("the domain has no free event-channel port")]
    Full,
}

/// Event channels of a machine.
#[derive(Debug, Clone, Default)]
pub struct EventChannels {
    domains: Vec<Option<DomainEventChannelPorts>>,
}

impl EventChannels {
    /// Creates the machine's event channels without domains.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a domain with event channels for `vcpus` vCPUs (at least one). Port 0 is never used.
    pub fn add_domain(&mut self, domain: DomainId, vcpus: u16) {
        let at = domain.index();
        if self.domains.len() <= at {
            self.domains.resize_with(at + 1, || None);
        }
        self.domains[at] = Some(DomainEventChannelPorts::new(vcpus));
    }

    /// Returns a domain's event-channel ports, which the domain shares with the hypervisor.
    ///
    /// # Errors
    /// [`EventChannelError::Domain`] if it has no event channels.
    pub fn domain(&mut self, domain: DomainId) -> Result<&mut DomainEventChannelPorts, EventChannelError> {
        self.domains.get_mut(domain.index()).and_then(Option::as_mut).ok_or(EventChannelError::Domain)
    }

    /// Returns the number of stranded events of all domains.
    #[must_use]
    pub fn stranded_events(&self) -> usize {
        self.domains.iter().flatten().map(DomainEventChannelPorts::stranded_events).sum()
    }

    /// Allocates an event-channel port that `remote` may bind to. The port notifies vCPU 0 until it is bound elsewhere.
    ///
    /// # Errors
    /// [`EventChannelError::Domain`], [`EventChannelError::Full`].
    pub fn alloc_unbound(&mut self, domain: DomainId, remote: DomainId) -> Result<u16, EventChannelError> {
        self.domain(remote)?;
        self.domain(domain)?.allocate(EventChannelBinding::Unbound(remote))
    }

    /// Allocates an event-channel port and binds it to an unbound remote port. The two ports are then connected.
    ///
    /// # Errors
    /// [`EventChannelError::Domain`], [`EventChannelError::Port`], [`EventChannelError::NotWaiting`],
    /// [`EventChannelError::Full`].
    pub fn bind_interdomain(
        &mut self,
        domain: DomainId,
        remote: DomainId,
        port: u16,
    ) -> Result<u16, EventChannelError> {
        if self.domain(remote)?.binding(port)? != EventChannelBinding::Unbound(domain) {
            return Err(EventChannelError::NotWaiting);
        }
        let own = self.domain(domain)?.allocate(EventChannelBinding::Interdomain(remote, port))?;
        self.domain(remote)?.set_binding(port, EventChannelBinding::Interdomain(domain, own));
        Ok(own)
    }

    /// Allocates an event-channel port and binds it to an interrupt: [`EventChannelBinding::Pirq`],
    /// [`EventChannelBinding::Virq`] or [`EventChannelBinding::Ipi`].
    ///
    /// # Errors
    /// [`EventChannelError::Domain`], [`EventChannelError::Vcpu`], [`EventChannelError::Full`];
    /// [`EventChannelError::NotWaiting`] for the other bindings.
    pub fn bind(
        &mut self,
        domain: DomainId,
        to: EventChannelBinding,
        vcpu: u16,
    ) -> Result<u16, EventChannelError> {
        if matches!(to, EventChannelBinding::Unbound(_) | EventChannelBinding::Interdomain(..)) {
            return Err(EventChannelError::NotWaiting);
        }
        let domain = self.domain(domain)?;
        domain.check_vcpu(vcpu)?;
        let port = domain.allocate(to)?;
        domain.bind_vcpu(port, vcpu)?;
        Ok(port)
    }

    /// Closes an event-channel port of a domain. A connected remote port becomes unbound for this domain again.
    ///
    /// # Errors
    /// [`EventChannelError::Domain`], [`EventChannelError::Port`].
    pub fn close(&mut self, domain: DomainId, port: u16) -> Result<(), EventChannelError> {
        let binding = self.domain(domain)?.binding(port)?;
        if let EventChannelBinding::Interdomain(remote, other) = binding {
            self.domain(remote)?.set_binding(other, EventChannelBinding::Unbound(domain));
        }
        self.domain(domain)?.free(port);
        Ok(())
    }

    /// Sends an event on a domain's port: to the connected port, or to the vCPU of an IPI port.
    ///
    /// # Errors
    /// [`EventChannelError::Domain`], [`EventChannelError::Port`], [`EventChannelError::NoOtherEnd`].
    pub fn send(&mut self, domain: DomainId, port: u16) -> Result<EventSendOutcome, EventChannelError> {
        match self.domain(domain)?.binding(port)? {
            EventChannelBinding::Interdomain(remote, other) => Ok(self.domain(remote)?.set_pending(other)),
            EventChannelBinding::Ipi => Ok(self.domain(domain)?.set_pending(port)),
            EventChannelBinding::Unbound(_) | EventChannelBinding::Pirq(_) | EventChannelBinding::Virq(_) => {
                Err(EventChannelError::NoOtherEnd)
            }
        }
    }

    /// Raises the interrupt that an event-channel port is bound to, on behalf of the hypervisor.
    ///
    /// # Errors
    /// [`EventChannelError::Domain`], [`EventChannelError::Port`].
    pub fn raise(&mut self, domain: DomainId, port: u16) -> Result<EventSendOutcome, EventChannelError> {
        let domain = self.domain(domain)?;
        domain.binding(port)?;
        Ok(domain.set_pending(port))
    }

    /// Moves an event-channel port to another vCPU without losing an event: masks the port, binds it to the vCPU, and
    /// unmasks it, which checks for a pending event. Returns the outcome of the unmask, if the port was not masked
    /// before.
    ///
    /// # Errors
    /// [`EventChannelError::Domain`], [`EventChannelError::Port`], [`EventChannelError::Vcpu`].
    pub fn rebind(
        &mut self,
        domain: DomainId,
        port: u16,
        vcpu: u16,
    ) -> Result<Option<EventSendOutcome>, EventChannelError> {
        let domain = self.domain(domain)?;
        domain.binding(port)?;
        domain.check_vcpu(vcpu)?;
        let was_masked = domain.mask(port);
        domain.bind_vcpu(port, vcpu)?;
        Ok(if was_masked { None } else { domain.unmask(port) })
    }
}
