//! Step of a virtual CPU: its program's work on a thread until it may be switched, and the sink for the
//! cycles that the work charges. The machine computes the step's duration at its end.

use sim::{Frequency, VirtualInstant};

use super::{HardwareThreadId, VcpuId};
use crate::account::{ChargedCycles, CycleCategory, CycleSink};
use crate::domain::DomainId;

/// State of a virtual CPU after a step of its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VcpuStepOutcome {
    /// The virtual CPU is ready: its program has more to do.
    Continue,
    /// The virtual CPU is blocked until it is woken.
    Block,
}

/// Step of a virtual CPU's program that is being executed. Return it with [`super::HostMachine::finish`].
#[derive(Debug)]
#[must_use]
pub struct VcpuStep {
    pub(super) thread: HardwareThreadId,
    pub(super) vcpu: VcpuId,
    pub(super) domain: DomainId,
    pub(super) charges: ChargedCycles,
    pub(super) stretch: WorkToTimeConversion,
    /// Clock cycle in which the step began.
    start: u64,
    clock: Frequency,
}

impl VcpuStep {
    pub(super) fn new(
        (thread, vcpu, domain): (HardwareThreadId, VcpuId, DomainId),
        start: u64,
        stretch: WorkToTimeConversion,
        clock: Frequency,
    ) -> VcpuStep {
        VcpuStep { thread, vcpu, domain, charges: ChargedCycles::default(), stretch, start, clock }
    }

    /// Returns the processor thread that executes the step.
    pub fn thread(&self) -> HardwareThreadId {
        self.thread
    }

    /// Returns the virtual CPU that executes the step.
    pub fn vcpu(&self) -> VcpuId {
        self.vcpu
    }

    /// Returns the domain of the virtual CPU, to which the step's cycles are charged.
    pub fn domain(&self) -> DomainId {
        self.domain
    }

    /// Returns the cycles charged to the step so far, before contention.
    pub fn charges(&self) -> &ChargedCycles {
        &self.charges
    }

    /// Returns the time at which the step began.
    pub fn began(&self) -> VirtualInstant {
        self.clock.start_of(self.start)
    }

    /// Returns the current time within the step: its beginning plus the charged work with contention.
    pub fn now(&self) -> VirtualInstant {
        let mut stretch = self.stretch;
        self.clock.start_of(self.start.saturating_add(stretch.apply(self.charges.total())))
    }

    /// Returns `true` if a sibling thread was busy when the step began.
    pub fn is_contended(&self) -> bool {
        self.stretch.permille > ALONE
    }
}

impl CycleSink for VcpuStep {
    #[inline]
    fn charge(&mut self, category: CycleCategory, cycles: u64) {
        self.charges.charge(category, cycles);
    }
}

/// Contention factor of a thread whose sibling threads are idle, in thousandths.
pub(super) const ALONE: u64 = 1_000;

/// Conversion of cycles of work to cycles of time by a contention factor in thousandths. The remainder is
/// kept, so that the parts of a step take as long as the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WorkToTimeConversion {
    pub(super) permille: u64,
    /// Remainder of the conversion of work to time, in thousandths of a cycle, below 1,000.
    pub(super) remainder: u64,
}

impl WorkToTimeConversion {
    /// Returns the cycles that `work` cycles take while a sibling thread is busy.
    #[inline]
    pub(super) fn apply(&mut self, work: u64) -> u64 {
        if self.permille == ALONE {
            return work;
        }
        let product = work.saturating_mul(self.permille).saturating_add(self.remainder);
        self.remainder = product % 1_000;
        product / 1_000
    }
}
