//! Wakes virtual CPUs, preempts and resumes their steps, and advances the scheduler's clocks.

use alloc::vec::Vec;

use sim::VirtualInstant;

use super::machine::{EXECUTING, HostMachine, ScheduledThreadVisit, Vcpu, VcpuState};
use super::scheduler::{Scheduler, WakeCause};
use super::step::{VcpuStep, VcpuStepOutcome};
use super::thread::{CurrentVcpuStep, PreemptedVcpuStep};
use super::{HardwareThreadId, VcpuId};

impl<S: Scheduler> HostMachine<S> {
    /// Makes `vcpu` ready, or keeps it from blocking after its step. Returns a request to visit the virtual CPU's
    /// thread, unless such a request is outstanding.
    #[must_use]
    pub fn wake(&mut self, vcpu: VcpuId, now: VirtualInstant) -> Option<ScheduledThreadVisit> {
        self.wake_by(vcpu, WakeCause::Interrupt, now)
    }

    /// Makes `vcpu` ready as [`HostMachine::wake`] does, for a cause that the scheduler takes into account.
    #[must_use]
    pub fn wake_by(
        &mut self,
        vcpu: VcpuId,
        cause: WakeCause,
        now: VirtualInstant,
    ) -> Option<ScheduledThreadVisit> {
        let Vcpu { home, state, unfinished, .. } = &mut self.vcpus[vcpu.index()];
        match state {
            VcpuState::Ready => {
                unfinished.iter_mut().for_each(|unfinished| unfinished.then = VcpuStepOutcome::Continue);
                return None;
            }
            VcpuState::Running(woken) => {
                *woken = true;
                return None;
            }
            VcpuState::Blocked => *state = VcpuState::Ready,
        }
        let thread =
            self.scheduler.choose_thread(*home, vcpu, |thread| self.threads[thread.index()].is_idle());
        *home = thread;
        self.scheduler.woken(thread, vcpu, cause);
        let found = &mut self.threads[thread.index()];
        if matches!(found.current, Some(CurrentVcpuStep { took: EXECUTING, .. })) {
            return None;
        }
        if found.visit_cycle.is_some() {
            return self.preempt(thread, now);
        }
        let at = self.config.clock.start_of(found.position).max(now);
        found.visit_cycle = Some(self.config.clock.cycle_at(at));
        Some(ScheduledThreadVisit { thread, at })
    }

    /// Returns the time of the next [`HostMachine::run_scheduler`] call. Returns `None` if the scheduler measures
    /// no time.
    #[inline]
    pub fn due(&self) -> Option<VirtualInstant> {
        self.scheduler.due().map(|cycle| self.config.clock.start_of(cycle))
    }

    /// Advances the scheduler's clocks to `now`. Returns requests to visit the threads that now have to run another
    /// virtual CPU.
    #[must_use]
    pub fn run_scheduler(&mut self, now: VirtualInstant) -> Vec<ScheduledThreadVisit> {
        let cycle = self.config.clock.cycle_at(now);
        let (threads, scheduler) = (&self.threads, &mut self.scheduler);
        scheduler.advance(cycle, |thread| {
            let found = &threads[thread.index()];
            found
                .current
                .filter(|current| current.took == EXECUTING || found.position > cycle)
                .map(|it| it.vcpu)
        });
        let all = (0..self.threads.len() as u16).map(HardwareThreadId);
        all.filter_map(|thread| self.reschedule(thread, now)).collect()
    }

    /// Has a thread run another virtual CPU: preempts the current step if the scheduler demands it, or wakes an idle
    /// thread to take a waiting virtual CPU. Returns the request to visit the thread.
    fn reschedule(&mut self, thread: HardwareThreadId, now: VirtualInstant) -> Option<ScheduledThreadVisit> {
        if !self.threads[thread.index()].is_idle() {
            return self.preempt(thread, now);
        }
        if !self.scheduler.could_steal(thread) {
            return None;
        }
        let found = &mut self.threads[thread.index()];
        let at = self.config.clock.start_of(found.position).max(now);
        found.visit_cycle = Some(self.config.clock.cycle_at(at));
        Some(ScheduledThreadVisit { thread, at })
    }

    /// Preempts the virtual CPU's step on a thread if the scheduler demands it. Returns the request for the thread's
    /// visit, at which the next virtual CPU runs.
    pub(super) fn preempt(
        &mut self,
        thread: HardwareThreadId,
        now: VirtualInstant,
    ) -> Option<ScheduledThreadVisit> {
        let cycle = self.config.clock.cycle_at(now);
        let found = &mut self.threads[thread.index()];
        let CurrentVcpuStep { vcpu, then, took } =
            found.current.filter(|current| current.took != EXECUTING)?;
        let left = found.position.checked_sub(cycle).filter(|left| *left > 0)?.min(took);
        if !self.scheduler.preempts(thread, vcpu) {
            return None;
        }
        found.position -= left;
        found.current = None;
        self.requeue(thread, vcpu, PreemptedVcpuStep { cycles: left, then }, took - left);
        let visit = self.visit_when_free(thread);
        Some(ScheduledThreadVisit { at: visit.at.max(now), ..visit })
    }

    /// Resumes the remainder of a virtual CPU's preempted step; `step` has the cycles of the switch.
    pub(super) fn resume(&mut self, step: VcpuStep, unfinished: PreemptedVcpuStep) -> ScheduledThreadVisit {
        self.take(step, unfinished.then, unfinished.cycles)
    }
}
