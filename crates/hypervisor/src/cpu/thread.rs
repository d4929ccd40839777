//! A hardware thread as the machine keeps it: up to which cycle it is accounted for, and who runs. Left out: the
//! rules, which are the machine's.

use super::VcpuId;
use super::step::{ALONE, Stretch, Then};

#[derive(Debug)]
pub(super) struct Thread {
    /// The cycle up to which every cycle is accounted for. Ahead of the clock: busy until then.
    pub(super) position: u64,
    /// Whose step runs, or ran last and has not been retired.
    pub(super) current: Option<Current>,
    /// Whose state the thread holds. An idle thread keeps it: going idle and back is no switch.
    pub(super) holds: Option<VcpuId>,
    /// Whether the world is going to visit.
    pub(super) expects_visit: bool,
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

impl Thread {
    pub(super) fn new() -> Thread {
        Thread { position: 0, current: None, holds: None, expects_visit: false, remainder: 0 }
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
