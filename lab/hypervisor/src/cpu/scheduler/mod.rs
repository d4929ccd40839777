//! The scheduler interface and its implementations. Times are in cycles of the machine's clock. Caps and gang
//! scheduling are not supported.
//!
//! | scheduler | precedence |
//! |---|---|
//! | [`RoundRobinScheduler`] | the longest waiting virtual CPU; steps are not preempted |
//! | [`CreditScheduler`] | virtual CPUs with credits; one that wakes with credits or in the real-time class preempts |

mod credit;
mod round_robin;
#[cfg(test)]
mod tests;

pub use credit::{CreditScheduler, CreditSchedulerClocks, VcpuPriority};
pub use round_robin::RoundRobinScheduler;

use core::fmt::Debug;

use super::{HardwareThreadId, VcpuId};

/// Weight, priority and affinity of a virtual CPU for the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulingParameters {
    /// Weight of the virtual CPU relative to other virtual CPUs that wait for the same threads.
    pub weight: u16,
    /// The virtual CPU precedes all others when its device wakes it.
    pub real_time: bool,
    /// Bit mask of the threads on which the virtual CPU may run, in addition to its first thread.
    pub affinity: u64,
}

impl Default for SchedulingParameters {
    /// Returns Xen's default weight for a virtual CPU pinned to one thread.
    fn default() -> SchedulingParameters {
        SchedulingParameters { weight: 256, real_time: false, affinity: 0 }
    }
}

/// Cause of a virtual CPU's wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeCause {
    /// An interrupt or event for the virtual CPU is pending.
    Interrupt,
    /// A device model has answered the access for which the virtual CPU stood still. A virtual CPU of the real-time class
    /// has no precedence then.
    AccessDone,
}

/// Scheduler of virtual CPUs on all processor threads. A running virtual CPU is in no queue.
pub trait Scheduler: Debug {
    /// Adds a processor thread to the scheduler.
    fn add_thread(&mut self);

    /// Adds a virtual CPU, whose first thread is `thread`.
    fn add_vcpu(&mut self, thread: HardwareThreadId, vcpu: VcpuId, share: SchedulingParameters);

    /// Chooses the thread on which a woken virtual CPU waits, `home` by default.
    fn choose_thread(
        &self,
        home: HardwareThreadId,
        vcpu: VcpuId,
        is_idle: impl Fn(HardwareThreadId) -> bool,
    ) -> HardwareThreadId {
        let _ = (vcpu, is_idle);
        home
    }

    /// Queues `vcpu`, which was blocked and is now ready.
    fn woken(&mut self, thread: HardwareThreadId, vcpu: VcpuId, cause: WakeCause);

    /// Queues `vcpu`, which ran for `cycles` and is still ready. If `preempted`, its step was interrupted and waits for
    /// the next turn.
    fn continues(&mut self, thread: HardwareThreadId, vcpu: VcpuId, cycles: u64, preempted: bool);

    /// Records that `vcpu` ran for `cycles` and blocked.
    fn blocked(&mut self, thread: HardwareThreadId, vcpu: VcpuId, cycles: u64);

    /// Takes the virtual CPU that a thread runs from `now` on, possibly a virtual CPU that waited on another thread.
    fn pick(&mut self, thread: HardwareThreadId, now: u64) -> Option<VcpuId>;

    /// Returns `true` if a virtual CPU waits for the thread.
    fn has_ready(&self, thread: HardwareThreadId) -> bool;

    /// Returns `true` if the running virtual CPU must be preempted now, in the middle of its step.
    fn preempts(&self, thread: HardwareThreadId, running: VcpuId) -> bool {
        let _ = (thread, running);
        false
    }

    /// Returns `true` if an idle thread could take a waiting virtual CPU from another thread.
    fn could_steal(&self, thread: HardwareThreadId) -> bool {
        let _ = thread;
        false
    }

    /// Returns the time of the scheduler's next deadline, or `None` if it measures no time.
    fn due(&self) -> Option<u64> {
        None
    }

    /// Advances the scheduler's clocks to `now`; `running` returns the virtual CPU that runs on a thread.
    fn advance(&mut self, now: u64, running: impl Fn(HardwareThreadId) -> Option<VcpuId>) {
        let _ = (now, running);
    }
}

/// Scheduler of virtual CPUs that a machine uses: round robin or Xen's credit scheduler.
#[derive(Debug)]
pub enum SelectedScheduler {
    /// Round-robin scheduler of virtual CPUs.
    RoundRobin(RoundRobinScheduler),
    /// Xen's credit scheduler of virtual CPUs.
    Credit(CreditScheduler),
}

/// Calls the same method of the selected scheduler, round robin or credit.
macro_rules! dispatch {
    ($policy:expr, $scheduler:ident => $does:expr) => {
        match $policy {
            SelectedScheduler::RoundRobin($scheduler) => $does,
            SelectedScheduler::Credit($scheduler) => $does,
        }
    };
}

impl Scheduler for SelectedScheduler {
    fn add_thread(&mut self) {
        dispatch!(self, scheduler => scheduler.add_thread());
    }

    fn add_vcpu(&mut self, thread: HardwareThreadId, vcpu: VcpuId, share: SchedulingParameters) {
        dispatch!(self, scheduler => scheduler.add_vcpu(thread, vcpu, share));
    }

    fn choose_thread(
        &self,
        home: HardwareThreadId,
        vcpu: VcpuId,
        is_idle: impl Fn(HardwareThreadId) -> bool,
    ) -> HardwareThreadId {
        dispatch!(self, scheduler => scheduler.choose_thread(home, vcpu, is_idle))
    }

    fn woken(&mut self, thread: HardwareThreadId, vcpu: VcpuId, cause: WakeCause) {
        dispatch!(self, scheduler => scheduler.woken(thread, vcpu, cause));
    }

    fn continues(&mut self, thread: HardwareThreadId, vcpu: VcpuId, cycles: u64, preempted: bool) {
        dispatch!(self, scheduler => scheduler.continues(thread, vcpu, cycles, preempted));
    }

    fn blocked(&mut self, thread: HardwareThreadId, vcpu: VcpuId, cycles: u64) {
        dispatch!(self, scheduler => scheduler.blocked(thread, vcpu, cycles));
    }

    fn pick(&mut self, thread: HardwareThreadId, now: u64) -> Option<VcpuId> {
        dispatch!(self, scheduler => scheduler.pick(thread, now))
    }

    fn has_ready(&self, thread: HardwareThreadId) -> bool {
        dispatch!(self, scheduler => scheduler.has_ready(thread))
    }

    fn preempts(&self, thread: HardwareThreadId, running: VcpuId) -> bool {
        dispatch!(self, scheduler => scheduler.preempts(thread, running))
    }

    fn could_steal(&self, thread: HardwareThreadId) -> bool {
        dispatch!(self, scheduler => scheduler.could_steal(thread))
    }

    fn due(&self) -> Option<u64> {
        dispatch!(self, scheduler => scheduler.due())
    }

    fn advance(&mut self, now: u64, running: impl Fn(HardwareThreadId) -> Option<VcpuId>) {
        dispatch!(self, scheduler => scheduler.advance(now, running));
    }
}
