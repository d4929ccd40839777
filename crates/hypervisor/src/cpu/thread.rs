//! State of a hardware thread: its accounted position and its current step. The rules are the machine's.

use super::VcpuId;
use super::step::{ALONE, VcpuStepOutcome, WorkTimeConversion};

#[derive(Debug)]
pub(super) struct HardwareThread {
    /// Cycle up to which all cycles are accounted for; the thread is busy until then if it is ahead of the
    /// clock.
    pub(super) position: u64,
    /// Cycles of work run on this thread since the machine's start.
    pub(super) worked: u64,
    /// Step that runs on the thread, or ran last and has not been retired.
    pub(super) current: Option<CurrentStep>,
    /// Virtual CPU whose state the thread holds. An idle thread keeps it: going idle and back is no switch.
    pub(super) loaded: Option<VcpuId>,
    /// Cycle of the thread's outstanding visit. Visits at other times were requested before a preemption and are
    /// ignored.
    pub(super) visit_cycle: Option<u64>,
    /// Thousandths of a cycle left over from stretched work.
    pub(super) remainder: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CurrentStep {
    pub(super) vcpu: VcpuId,
    pub(super) then: VcpuStepOutcome,
    /// Cycles that the step occupies its thread, without cycles stolen for the hypervisor.
    pub(super) took: u64,
}

/// Remainder of a preempted step: cycles already charged to its domain, and the virtual CPU's state after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PreemptedStep {
    pub(super) cycles: u64,
    pub(super) then: VcpuStepOutcome,
}

impl HardwareThread {
    pub(super) fn new() -> HardwareThread {
        HardwareThread {
            position: 0,
            worked: 0,
            current: None,
            loaded: None,
            visit_cycle: None,
            remainder: 0,
        }
    }

    /// Returns `true` if no step runs and no visit is outstanding.
    pub(super) fn is_idle(&self) -> bool {
        self.current.is_none() && self.visit_cycle.is_none()
    }

    /// Returns `true` if another step follows the current one immediately.
    pub(super) fn is_continuing(&self) -> bool {
        matches!(self.current, Some(CurrentStep { then: VcpuStepOutcome::Continue, .. }))
    }

    /// Returns the thread's conversion of work to time with the contention factor `contended` (thousandths), or without
    /// contention.
    pub(super) fn stretch(&self, contended: Option<u64>) -> WorkTimeConversion {
        WorkTimeConversion { permille: contended.unwrap_or(ALONE), remainder: self.remainder }
    }
}
