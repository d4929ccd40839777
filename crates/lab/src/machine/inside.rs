//! Traffic inside the server: over a card from one of its functions to another, faster than its wire, or over a bridge. A guest sends, or
//! the service domain, which then has a function of each card too, with the same driver as guests have.
//!
//! The service domain's sender has a virtual CPU of its own, on a thread that has no guest, and is a paravirtualized
//! kernel: its interrupts are events, its system calls go through the hypervisor.

use super::build::{BuildError, Network, Setup};
use super::chipset::Region;
use super::port::Recipient;
use super::world::World;
use guest::{Load, Sending, Spec};
use hypervisor::domain::DomainKind;
use sim::Instant;

/// Who sends what inside the server.
#[derive(Debug, Clone, Copy)]
pub struct Inside {
    /// Who, on every port.
    pub from: Origin,
    /// Datagrams or a stream.
    pub load: Load,
    /// Bytes of each of its system calls.
    pub message_bytes: u32,
    /// Bytes of the longest IP packet.
    pub mtu: u16,
    /// Interval of transmit interrupts. As with igbvf, the policy is receive's.
    pub transmit_interval_us: u32,
}

/// Who sends to the first guest of each port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The service domain.
    ServiceDomain,
    /// The last guest of the port.
    Guest,
}

impl Setup {
    /// What a port's function runs in: a guest as asked for, or the service domain.
    pub(super) fn system_of(&self, guest: bool) -> (DomainKind, Spec) {
        if guest { (self.kind, self.spec) } else { (DomainKind::Pvm, Spec::xenlinux_2_6_18(self.spec.load)) }
    }

    /// How many functions the service domain has for itself. It is interrupted through one of them only.
    pub(super) fn service_functions(&self) -> Result<usize, BuildError> {
        let sends = self.inside.is_some_and(|inside| inside.from == Origin::ServiceDomain);
        match (sends, self.ports) {
            (false, _) => Ok(0),
            (true, 1) if self.network == Network::Direct => Ok(1),
            (true, _) => Err(BuildError::Inside("one port, and VFs, if the service domain sends")),
        }
    }
}

impl World {
    /// The service domain as owner of a port's function `n`, if it sends.
    pub(super) fn service_function(&self, setup: &Setup, n: u8) -> Option<Recipient> {
        setup.inside.filter(|inside| inside.from == Origin::ServiceDomain)?;
        let domain = self.machine.domain_of(self.service.first()?.vcpu);
        let guest = self.vms.len() + usize::from(n);
        Some(Recipient { domain, region: Region::of(guest), part: 0 })
    }

    /// Every sender begins.
    pub(super) fn start_inside(&mut self, inside: Inside, buffers: u32) -> Result<(), BuildError> {
        for port in 0..self.ports.len() {
            let mut on_port = (0..self.vms.len()).filter(|vm| self.vms[*vm].port == port);
            let (first, last) = (on_port.next(), on_port.next_back());
            let (Some(to), Some(from)) = (first, last) else {
                return Err(BuildError::Inside("two functions of each port"));
            };
            let Inside { load, message_bytes, mtu, .. } = inside;
            let to = self.vms[to].mac();
            self.vms[from].start_sending(Sending { to, load, message_bytes, mtu, buffers });
            let visit = self.machine.wake(self.vms[from].hardware.vcpu, Instant::ZERO);
            self.expect(visit);
        }
        Ok(())
    }
}
