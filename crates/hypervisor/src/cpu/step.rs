//! A step: one virtual CPU's turn on a thread, and the sink for what it costs. Left out: how long that keeps the
//! thread, which the machine works out at the end.

use sim::{Frequency, Instant};

use super::{ThreadId, VcpuId};
use crate::account::{Category, Charge, Charges};
use crate::domain::DomainId;

/// What a virtual CPU does after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It has more to do.
    Continue,
    /// It sleeps until it is woken.
    Block,
}

/// A step in execution. Give it back with [`super::Machine::finish`].
#[derive(Debug)]
#[must_use]
pub struct Step {
    pub(super) thread: ThreadId,
    pub(super) vcpu: VcpuId,
    pub(super) domain: DomainId,
    pub(super) charges: Charges,
    pub(super) stretch: Stretch,
    /// The cycle it began in.
    start: u64,
    clock: Frequency,
}

impl Step {
    pub(super) fn new(
        (thread, vcpu, domain): (ThreadId, VcpuId, DomainId),
        start: u64,
        stretch: Stretch,
        clock: Frequency,
    ) -> Step {
        Step { thread, vcpu, domain, charges: Charges::default(), stretch, start, clock }
    }

    /// Where it runs.
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// Who runs.
    pub fn vcpu(&self) -> VcpuId {
        self.vcpu
    }

    /// Whose virtual CPU it is, and who pays.
    pub fn domain(&self) -> DomainId {
        self.domain
    }

    /// What was charged so far: work, before contention.
    pub fn charges(&self) -> &Charges {
        &self.charges
    }

    /// When it began.
    pub fn began(&self) -> Instant {
        self.clock.start_of(self.start)
    }

    /// How far it has come: its beginning, and what was charged since, with contention.
    pub fn now(&self) -> Instant {
        let mut stretch = self.stretch;
        self.clock.start_of(self.start.saturating_add(stretch.apply(self.charges.total())))
    }

    /// Whether the core is shared: a sibling thread was busy when it began.
    pub fn is_contended(&self) -> bool {
        self.stretch.permille > ALONE
    }
}

impl Charge for Step {
    #[inline]
    fn charge(&mut self, category: Category, cycles: u64) {
        self.charges.charge(category, cycles);
    }
}

/// The factor of a thread that has its core to itself.
pub(super) const ALONE: u64 = 1_000;

/// Work to time, in thousandths, with the remainder kept: the parts of a step take exactly as long as the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) permille: u64,
    /// Below a thousand.
    pub(super) remainder: u64,
}

impl Stretch {
    /// Cycles that `work` takes.
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
