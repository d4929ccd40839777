//! One domain's ports as memory shared with the hypervisor, and what each side does to it. Left out: other
//! domains.

use super::{Binding, Error, Notified};
use alloc::vec;
use alloc::vec::Vec;

/// Ports of a domain: 64 words of 64 bits.
pub const PORTS: u16 = 4096;
/// Words of pending bits.
const WORDS: usize = 64;

/// A port.
#[derive(Debug, Clone, Copy)]
struct Port {
    binding: Option<Binding>,
    vcpu: u16,
}

/// What a vCPU shares with the hypervisor.
#[derive(Debug, Clone, Copy, Default)]
struct Vcpu {
    /// Words of pending bits to look at.
    selector: u64,
    upcall_pending: bool,
    /// As an interrupt flag that is clear: no upcall now.
    upcall_masked: bool,
}

/// The ports of a domain.
#[derive(Debug, Clone)]
pub struct DomainPorts {
    ports: Vec<Port>,
    pending: [u64; WORDS],
    masked: [u64; WORDS],
    vcpus: Vec<Vcpu>,
    lowest_free: u16,
}

impl DomainPorts {
    pub(super) fn new(vcpus: u16) -> Self {
        Self {
            ports: vec![Port { binding: None, vcpu: 0 }; PORTS.into()],
            pending: [0; WORDS],
            masked: [0; WORDS],
            vcpus: vec![Vcpu::default(); vcpus.max(1).into()],
            lowest_free: 1,
        }
    }

    /// What a port is bound to.
    ///
    /// # Errors
    /// [`Error::Port`].
    pub fn binding(&self, port: u16) -> Result<Binding, Error> {
        self.ports.get(usize::from(port)).and_then(|port| port.binding).ok_or(Error::Port)
    }

    /// Whether an event is pending at a port.
    #[must_use]
    pub fn is_pending(&self, port: u16) -> bool {
        let (word, bit) = place(port);
        self.pending[word] & bit != 0
    }

    /// Masks a port: whether it was masked.
    pub fn mask(&mut self, port: u16) -> bool {
        let (word, bit) = place(port);
        let was = self.masked[word] & bit != 0;
        self.masked[word] |= bit;
        was
    }

    /// Unmasks a port: if an event is pending there it is notified now, once more if need be, so that none is
    /// lost.
    pub fn unmask(&mut self, port: u16) -> Option<Notified> {
        let (word, bit) = place(port);
        self.masked[word] &= !bit;
        self.is_pending(port).then(|| self.notify(port))
    }

    /// Says which vCPU a port notifies. Notifies nobody: use [`super::Channels::rebind`] for a port in use.
    ///
    /// # Errors
    /// [`Error::Port`], [`Error::Vcpu`].
    pub fn bind_vcpu(&mut self, port: u16, vcpu: u16) -> Result<(), Error> {
        self.binding(port)?;
        self.check_vcpu(vcpu)?;
        self.ports[usize::from(port)].vcpu = vcpu;
        Ok(())
    }

    /// Allows or forbids upcalls to a vCPU, as the interrupt flag does: whether one is to be taken now.
    pub fn set_upcall_mask(&mut self, vcpu: u16, masked: bool) -> bool {
        if let Some(vcpu) = self.vcpus.get_mut(usize::from(vcpu)) {
            vcpu.upcall_masked = masked;
        }
        self.upcall_due(vcpu)
    }

    /// Ports with an event that nobody will take: not masked, and their vCPU does not look at their word, or has no
    /// upcall pending and is in none.
    #[must_use]
    pub fn overlooked(&self) -> usize {
        let is_overlooked = |port: &u16| {
            let (word, bit) = place(*port);
            let vcpu = &self.vcpus[usize::from(self.ports[usize::from(*port)].vcpu)];
            let looks = vcpu.selector >> word & 1 == 1 && (vcpu.upcall_pending || vcpu.upcall_masked);
            self.pending[word] & !self.masked[word] & bit != 0 && !looks
        };
        (0..PORTS).filter(is_overlooked).count()
    }

    /// Whether the vCPU is to take an upcall when it runs next.
    #[must_use]
    pub fn upcall_due(&self, vcpu: u16) -> bool {
        self.vcpus.get(usize::from(vcpu)).is_some_and(|vcpu| vcpu.upcall_pending && !vcpu.upcall_masked)
    }

    /// The guest enters its upcall: forbids others and takes the pending flag down. False if none was due.
    /// Then take ports by [`DomainPorts::next`] until None, and leave.
    pub fn enter_upcall(&mut self, vcpu: u16) -> bool {
        let due = self.upcall_due(vcpu);
        if let Some(vcpu) = self.vcpus.get_mut(usize::from(vcpu)).filter(|_| due) {
            vcpu.upcall_pending = false;
            vcpu.upcall_masked = true;
        }
        due
    }

    /// The next event for this vCPU, taken: lowest selected word, lowest port. Ports that are masked or
    /// another vCPU's are passed over and stay pending.
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

    /// The guest leaves its upcall: whether another is due at once, for events that came meanwhile.
    pub fn leave_upcall(&mut self, vcpu: u16) -> bool {
        self.set_upcall_mask(vcpu, false)
    }

    pub(super) fn check_vcpu(&self, vcpu: u16) -> Result<(), Error> {
        (usize::from(vcpu) < self.vcpus.len()).then_some(()).ok_or(Error::Vcpu)
    }

    pub(super) fn allocate(&mut self, binding: Binding) -> Result<u16, Error> {
        let first = usize::from(self.lowest_free);
        let free = self.ports.get(first..).and_then(|ports| ports.iter().position(|p| p.binding.is_none()));
        let port = first + free.ok_or(Error::Full)?;
        self.ports[port] = Port { binding: Some(binding), vcpu: 0 };
        self.lowest_free = port as u16 + 1;
        Ok(port as u16)
    }

    pub(super) fn set_binding(&mut self, port: u16, binding: Binding) {
        self.ports[usize::from(port)].binding = Some(binding);
    }

    /// Frees a port with all that pended there.
    pub(super) fn free(&mut self, port: u16) {
        let (word, bit) = place(port);
        self.pending[word] &= !bit;
        self.masked[word] &= !bit;
        self.ports[usize::from(port)].binding = None;
        self.lowest_free = self.lowest_free.min(port);
    }

    pub(super) fn set_pending(&mut self, port: u16) -> Notified {
        let (word, bit) = place(port);
        if self.pending[word] & bit != 0 {
            return Notified::Coalesced;
        }
        self.pending[word] |= bit;
        if self.masked[word] & bit != 0 { Notified::Masked } else { self.notify(port) }
    }

    /// Marks the port's word at its vCPU and asks for an upcall.
    fn notify(&mut self, port: u16) -> Notified {
        let at = self.ports[usize::from(port % PORTS)].vcpu;
        let vcpu = &mut self.vcpus[usize::from(at)];
        vcpu.selector |= 1 << place(port).0;
        let asked = core::mem::replace(&mut vcpu.upcall_pending, true);
        if asked || vcpu.upcall_masked { Notified::Joined } else { Notified::Upcall(at) }
    }

    /// Takes the lowest event of a word that is this vCPU's.
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

/// The word and the bit of a port. Beyond the last port it starts anew: a guest's nonsense hits its own bits.
fn place(port: u16) -> (usize, u64) {
    (usize::from(port % PORTS) / 64, 1 << (port % 64))
}
