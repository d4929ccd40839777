//! Traffic between domains of the server: between functions of a card, faster than the card's wire, or over a
//! bridge. The sender is a guest, or the service domain with a function of each card and the guests' driver.
//!
//! The service domain's sender has its own virtual CPU, on a thread without a guest, and is a paravirtualized
//! kernel: its interrupts are events, and its system calls pass through the hypervisor.

use super::setup::{InterDomainSender, InterDomainTraffic, ServerBuildError, ServerSetup};
use super::{ServerCore, ServerMachine};
use crate::machine::memory::DomainMemoryRegion;
use crate::machine::parts::card::FrameRecipient;
use guest::SenderConfig;
use sim::VirtualInstant;

impl ServerMachine {
    /// Returns the service domain as the recipient of frames of function `n` of a port, or `None` if the
    /// service domain does not send.
    pub(super) fn service_function(
        &self,
        setup: &ServerSetup,
        n: u8,
        core: &ServerCore,
    ) -> Option<FrameRecipient> {
        setup.inside.filter(|inside| inside.from == InterDomainSender::ServiceDomain)?;
        let domain = core.processors.domain_of(self.service.first()?.vcpu);
        let guest = self.vms.len() + usize::from(n);
        Some(FrameRecipient { domain, region: DomainMemoryRegion::of(guest), part: 0 })
    }

    /// Starts the sending program of each port's last function, which sends to the port's first guest.
    pub(super) fn start_inside(
        &mut self,
        inside: InterDomainTraffic,
        buffers: u32,
        core: &mut ServerCore,
    ) -> Result<(), ServerBuildError> {
        for port in 0..self.ports.len() {
            let mut on_port = (0..self.vms.len()).filter(|vm| self.vms[*vm].port == port);
            let (first, last) = (on_port.next(), on_port.next_back());
            let (Some(to), Some(from)) = (first, last) else {
                return Err(ServerBuildError::Inside("two functions of each port"));
            };
            let InterDomainTraffic { load, message_bytes, mtu, .. } = inside;
            let to = self.vms[to].mac();
            self.vms[from].start_sending(SenderConfig { to, load, message_bytes, mtu, buffers });
            core.wake(self.vms[from].hardware.vcpu, VirtualInstant::ZERO);
        }
        Ok(())
    }
}
