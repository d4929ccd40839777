//! State of a hardware thread: its current step, and the cycle up to which its cycles are accounted for.

use alloc::vec::Vec;

use super::VcpuId;
use super::step::{ALONE, VcpuStepOutcome, WorkToTimeConversion};

#[derive(Debug)]
pub(super) struct HardwareThread {
    /// Clock cycle up to which all cycles of the thread are accounted for; the thread is busy until then if it is in
    /// the future.
    pub(super) position: u64,
    /// Cycles of work that the thread has run since the machine's start.
    pub(super) worked: u64,
    /// Virtual CPU's step that runs on the thread now, or that ran last and was not removed yet.
    pub(super) current: Option<CurrentVcpuStep>,
    /// Virtual CPU whose state is in the thread's caches. An idle thread keeps this value: going idle and back is no
    /// switch.
    pub(super) loaded: Option<VcpuId>,
    /// Virtual CPUs that have run on the thread, the last one at the end.
    recent: Vec<VcpuId>,
    /// Clock cycle of the thread's outstanding visit. Visits for other times were requested before a preemption and are
    /// ignored.
    pub(super) visit_cycle: Option<u64>,
    /// Thousandths of a cycle that remain from the thread's conversion of work to time.
    pub(super) remainder: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CurrentVcpuStep {
    pub(super) vcpu: VcpuId,
    pub(super) then: VcpuStepOutcome,
    /// Cycles for which the step occupies its thread, without cycles that the hypervisor took.
    pub(super) took: u64,
}

/// Remainder of a preempted step: cycles already charged to its domain, and the state of the virtual CPU after the
/// step.
#[derive(Clone, Copy, Debug)]
pub(super) struct PreemptedVcpuStep {
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
            recent: Vec::new(),
            visit_cycle: None,
            remainder: 0,
        }
    }

    /// Makes a virtual CPU the last one that has run on the thread. Returns how many others have run since it did, each
    /// counted once, or `None` if it has not run there.
    pub(super) fn run_again(&mut self, vcpu: VcpuId) -> Option<usize> {
        let at = self.recent.iter().rposition(|recent| *recent == vcpu);
        let since = at.map(|at| self.recent.len() - 1 - at);
        if let Some(at) = at {
            self.recent.remove(at);
        }
        self.recent.push(vcpu);
        since
    }

    /// Returns `true` if no step runs on the thread and no visit is outstanding.
    pub(super) fn is_idle(&self) -> bool {
        self.current.is_none() && self.visit_cycle.is_none()
    }

    /// Returns `true` if another step of the virtual CPU follows the current one immediately.
    pub(super) fn is_continuing(&self) -> bool {
        matches!(self.current, Some(CurrentVcpuStep { then: VcpuStepOutcome::Continue, .. }))
    }

    /// Returns the thread's conversion of work to time with the contention factor `contended` (thousandths), or without
    /// contention.
    pub(super) fn stretch(&self, contended: Option<u64>) -> WorkToTimeConversion {
        WorkToTimeConversion { permille: contended.unwrap_or(ALONE), remainder: self.remainder }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_again_counts_each_other_vcpu_since_once() {
        let [a, b, c] = [0, 1, 2].map(VcpuId);
        let mut thread = HardwareThread::new();
        assert_eq!([a, b, c].map(|vcpu| thread.run_again(vcpu)), [None; 3]);
        assert_eq!([b, b, c, b, a].map(|vcpu| thread.run_again(vcpu)), [1, 0, 1, 1, 2].map(Some));
    }
}
