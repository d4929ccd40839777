//! A hardware thread as the machine keeps it: up to which cycle it is accounted for, and who runs. Left out: the
//! rules, which are the machine's.

use super::VcpuId;
use super::step::{ALONE, Stretch, Then};

#[derive(Debug)]
pub(super) struct Thread {
    /// The cycle up to which every cycle is accounted for. Ahead of the clock: busy until then.
    pub(super) position: u64,
    /// Cycles that anybody ran here.
    pub(super) worked: u64,
    /// Whose step runs, or ran last and has not been retired.
    pub(super) current: Option<Current>,
    /// Whose state the thread holds. An idle thread keeps it: going idle and back is no switch.
    pub(super) holds: Option<VcpuId>,
    /// The cycle in which the world is going to visit. A visit at another time was asked for before a step was cut.
    pub(super) expects: Option<u64>,
    /// Thousandths of a cycle left over from stretched work.
    pub(super) remainder: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Current {
    pub(super) vcpu: VcpuId,
    pub(super) then: Then,
    /// Cycles the step took, without what was stolen.
    pub(super) took: u64,
}

/// A step that was cut: what is left of it, which its domain has paid for, and what comes then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    pub(super) cycles: u64,
    pub(super) then: Then,
}

impl Thread {
    pub(super) fn new() -> Thread {
        Thread { position: 0, worked: 0, current: None, holds: None, expects: None, remainder: 0 }
    }

    /// Whether it has nothing to do, as far as anybody has said.
    pub(super) fn is_idle(&self) -> bool {
        self.current.is_none() && self.expects.is_none()
    }

    /// Whether the next step follows without a pause.
    pub(super) fn goes_on(&self) -> bool {
        matches!(self.current, Some(Current { then: Then::Continue, .. }))
    }

    /// How work is stretched from here on.
    pub(super) fn stretch(&self, contended: Option<u64>) -> Stretch {
        Stretch { permille: contended.unwrap_or(ALONE), remainder: self.remainder }
    }
}
