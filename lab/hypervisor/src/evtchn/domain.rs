//! Event-channel ports of one domain: the memory shared with the hypervisor, and the operations of domain and
//! hypervisor.

use super::{EventChannelBinding, EventChannelError, EventSendOutcome};
use alloc::vec;
use alloc::vec::Vec;

/// Event-channel ports of a domain: 64 words of 64 bits.
pub const PORTS: u16 = 4096;
/// Words of pending bits in a domain's shared memory.
const WORDS: usize = 64;

/// Event-channel port of a domain.
#[derive(Debug, Clone, Copy)]
struct EventChannelPort {
    binding: Option<EventChannelBinding>,
    vcpu: u16,
}

/// Event-channel state of one vCPU in the shared memory.
#[derive(Debug, Clone, Copy, Default)]
struct VcpuUpcallState {
    /// Bit mask of words: in each of them the virtual CPU has to look for pending events.
    selector: u64,
    upcall_pending: bool,
    /// The vCPU takes no event upcalls at present, as with a cleared interrupt flag.
    upcall_masked: bool,
}

/// Event-channel ports of one domain.
#[derive(Debug, Clone)]
pub struct DomainEventChannelPorts {
    ports: Vec<EventChannelPort>,
    pending: [u64; WORDS],
    masked: [u64; WORDS],
    vcpus: Vec<VcpuUpcallState>,
    lowest_free: u16,
}

impl DomainEventChannelPorts {
    pub(super) fn new(vcpus: u16) -> Self {
        Self {
            ports: vec![EventChannelPort { binding: None, vcpu: 0 }; PORTS.into()],
            pending: [0; WORDS],
            masked: [0; WORDS],
            vcpus: vec![VcpuUpcallState::default(); vcpus.max(1).into()],
            lowest_free: 1,
        }
    }

    /// Returns the binding of an event-channel port.
    ///
    /// # Errors
    /// [`EventChannelError::Port`] if the port is not in use.
    pub fn binding(&self, port: u16) -> Result<EventChannelBinding, EventChannelError> {
        self.ports.get(usize::from(port)).and_then(|port| port.binding).ok_or(EventChannelError::Port)
    }

    /// Returns `true` if an event is pending at a port.
    #[must_use]
    pub fn is_pending(&self, port: u16) -> bool {
        let (word, bit) = word_and_bit(port);
        self.pending[word] & bit != 0
    }

    /// Masks an event-channel port. Returns `true` if it was masked before.
    pub fn mask(&mut self, port: u16) -> bool {
        let (word, bit) = word_and_bit(port);
        let was = self.masked[word] & bit != 0;
        self.masked[word] |= bit;
        was
    }

    /// Unmasks an event-channel port. A pending event is notified now, possibly a second time, so that no event is
    /// lost.
    pub fn unmask(&mut self, port: u16) -> Option<EventSendOutcome> {
        let (word, bit) = word_and_bit(port);
        self.masked[word] &= !bit;
        self.is_pending(port).then(|| self.notify(port))
    }

    /// Binds a port to the vCPU that the port's events notify. Sends no notification: use
    /// [`super::EventChannels::rebind`] for a port in use.
    ///
    /// # Errors
    /// [`EventChannelError::Port`] or [`EventChannelError::Vcpu`] for an invalid port or vCPU.
    pub fn bind_vcpu(&mut self, port: u16, vcpu: u16) -> Result<(), EventChannelError> {
        self.binding(port)?;
        self.check_vcpu(vcpu)?;
        self.ports[usize::from(port)].vcpu = vcpu;
        Ok(())
    }

    /// Masks or unmasks upcalls of a vCPU, like the interrupt flag. Returns `true` if an upcall is due now.
    pub fn set_upcall_mask(&mut self, vcpu: u16, masked: bool) -> bool {
        if let Some(vcpu) = self.vcpus.get_mut(usize::from(vcpu)) {
            vcpu.upcall_masked = masked;
        }
        self.upcall_due(vcpu)
    }

    /// Returns the number of stranded events, which are pending and unmasked, but which no upcall of the port's vCPU
    /// will find.
    #[must_use]
    pub fn stranded_events(&self) -> usize {
        let is_overlooked = |port: &u16| {
            let (word, bit) = word_and_bit(*port);
            let vcpu = &self.vcpus[usize::from(self.ports[usize::from(*port)].vcpu)];
            let looks = vcpu.selector >> word & 1 == 1 && (vcpu.upcall_pending || vcpu.upcall_masked);
            self.pending[word] & !self.masked[word] & bit != 0 && !looks
        };
        (0..PORTS).filter(is_overlooked).count()
    }

    /// Returns `true` if the vCPU takes an event upcall when it runs next.
    #[must_use]
    pub fn upcall_due(&self, vcpu: u16) -> bool {
        self.vcpus.get(usize::from(vcpu)).is_some_and(|vcpu| vcpu.upcall_pending && !vcpu.upcall_masked)
    }

    /// Enters an event upcall: masks further upcalls and clears the pending flag. Returns `false` if none was due. The
    /// guest then takes ports with [`DomainEventChannelPorts::next`] until `None`, and leaves.
    pub fn enter_upcall(&mut self, vcpu: u16) -> bool {
        let due = self.upcall_due(vcpu);
        if let Some(vcpu) = self.vcpus.get_mut(usize::from(vcpu)).filter(|_| due) {
            vcpu.upcall_pending = false;
            vcpu.upcall_masked = true;
        }
        due
    }

    /// Takes the next event of this vCPU: lowest selected word, lowest port. Events of masked ports and of other vCPUs
    /// are skipped and stay pending.
    pub fn next(&mut self, vcpu: u16) -> Option<u16> {
        loop {
            let selector = self.vcpus.get(usize::from(vcpu))?.selector;
            if selector == 0 {
                return None;
            }
            let word = selector.trailing_zeros() as usize;
            if let Some(port) = self.take(word, vcpu) {
                return Some(port);
            }
            self.vcpus[usize::from(vcpu)].selector &= !(1 << word);
        }
    }

    /// Leaves the vCPU's event upcall. Returns `true` if another upcall is due at once for events that arrived
    /// meanwhile.
    pub fn leave_upcall(&mut self, vcpu: u16) -> bool {
        self.set_upcall_mask(vcpu, false)
    }

    pub(super) fn check_vcpu(&self, vcpu: u16) -> Result<(), EventChannelError> {
        (usize::from(vcpu) < self.vcpus.len()).then_some(()).ok_or(EventChannelError::Vcpu)
    }

    pub(super) fn allocate(&mut self, binding: EventChannelBinding) -> Result<u16, EventChannelError> {
        let first = usize::from(self.lowest_free);
        let free = self.ports.get(first..).and_then(|ports| ports.iter().position(|p| p.binding.is_none()));
        let port = first + free.ok_or(EventChannelError::Full)?;
        self.ports[port] = EventChannelPort { binding: Some(binding), vcpu: 0 };
        self.lowest_free = port as u16 + 1;
        Ok(port as u16)
    }

    pub(super) fn set_binding(&mut self, port: u16, binding: EventChannelBinding) {
        self.ports[usize::from(port)].binding = Some(binding);
    }

    /// Frees an event-channel port and clears its pending event.
    pub(super) fn free(&mut self, port: u16) {
        let (word, bit) = word_and_bit(port);
        self.pending[word] &= !bit;
        self.masked[word] &= !bit;
        self.ports[usize::from(port)].binding = None;
        self.lowest_free = self.lowest_free.min(port);
    }

    pub(super) fn set_pending(&mut self, port: u16) -> EventSendOutcome {
        let (word, bit) = word_and_bit(port);
        if self.pending[word] & bit != 0 {
            return EventSendOutcome::Coalesced;
        }
        self.pending[word] |= bit;
        if self.masked[word] & bit != 0 { EventSendOutcome::Masked } else { self.notify(port) }
    }

    /// Selects the port's word at the vCPU that the port notifies, and requests an upcall of that vCPU.
    fn notify(&mut self, port: u16) -> EventSendOutcome {
        let at = self.ports[usize::from(port % PORTS)].vcpu;
        let vcpu = &mut self.vcpus[usize::from(at)];
        vcpu.selector |= 1 << word_and_bit(port).0;
        let asked = core::mem::replace(&mut vcpu.upcall_pending, true);
        if asked || vcpu.upcall_masked {
            EventSendOutcome::UpcallPending
        } else {
            EventSendOutcome::Upcall(at)
        }
    }

    /// Takes the lowest-numbered pending event of this vCPU from a word of pending bits.
    fn take(&mut self, word: usize, vcpu: u16) -> Option<u16> {
        let mut ready = self.pending[word] & !self.masked[word];
        while ready != 0 {
            let port = word * 64 + ready.trailing_zeros() as usize;
            if self.ports[port].vcpu == vcpu {
                self.pending[word] &= !(1 << (port % 64));
                return Some(port as u16);
            }
            ready &= ready - 1;
        }
        None
    }
}

/// Returns the index of the word and the bit of an event-channel port. Numbers beyond the last port wrap, so that an
/// invalid number affects only the domain's own bits.
fn word_and_bit(port: u16) -> (usize, u64) {
    (usize::from(port % PORTS) / 64, 1 << (port % 64))
}
