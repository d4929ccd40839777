//! Time, and steps that are cut for somebody who goes first. Left out: who goes first, which is the scheduler's.

use alloc::vec::Vec;

use sim::Instant;

use super::ThreadId;
use super::machine::{Machine, OPEN, Visit};
use super::scheduler::Scheduler;
use super::step::Step;
use super::thread::{Current, Rest};

impl<S: Scheduler> Machine<S> {
    /// When [`Machine::time`] is to be called next; never, if the scheduler measures no time.
    #[inline]
    pub fn due(&self) -> Option<Instant> {
        self.scheduler.due().map(|cycle| self.config.clock.start_of(cycle))
    }

    /// It is `now`: the scheduler's clocks go on. Which threads are to be visited for it.
    #[must_use]
    pub fn time(&mut self, now: Instant) -> Vec<Visit> {
        let cycle = self.config.clock.cycle_at(now);
        let (threads, scheduler) = (&self.threads, &mut self.scheduler);
        scheduler.time(cycle, |thread| {
            let found = &threads[thread.index()];
            found.current.filter(|current| current.took == OPEN || found.position > cycle).map(|it| it.vcpu)
        });
        let all = (0..self.threads.len() as u16).map(ThreadId);
        all.filter_map(|thread| self.look(thread, now)).collect()
    }

    /// A thread that has something better to do than before.
    fn look(&mut self, thread: ThreadId, now: Instant) -> Option<Visit> {
        if !self.threads[thread.index()].is_idle() {
            return self.cut(thread, now);
        }
        if !self.scheduler.could_steal(thread) {
            return None;
        }
        let found = &mut self.threads[thread.index()];
        let at = self.config.clock.start_of(found.position).max(now);
        found.expects = Some(self.config.clock.cycle_at(at));
        Some(Visit { thread, at })
    }

    /// Cuts the step that runs on a thread, if somebody else is to run: when the thread is to be visited for that. What
    /// was stolen from the thread is done first.
    pub(super) fn cut(&mut self, thread: ThreadId, now: Instant) -> Option<Visit> {
        let cycle = self.config.clock.cycle_at(now);
        let found = &mut self.threads[thread.index()];
        let Current { vcpu, then, took } = found.current.filter(|current| current.took != OPEN)?;
        let left = found.position.checked_sub(cycle).filter(|left| *left > 0)?.min(took);
        if !self.scheduler.cuts(thread, vcpu) {
            return None;
        }
        found.position -= left;
        found.current = None;
        self.put_back(thread, vcpu, Rest { cycles: left, then }, took - left);
        let visit = self.visit_when_free(thread);
        Some(Visit { at: visit.at.max(now), ..visit })
    }

    /// Goes on with what is left of a step; `step` has what it takes to get there.
    pub(super) fn resume(&mut self, step: Step, rest: Rest) -> Visit {
        self.take(step, rest.then, rest.cycles)
    }
}
