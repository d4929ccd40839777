//! Xen's credit scheduler. The virtual CPU running at a tick pays for the whole tick. Each accounting distributes
//! credits by weight to the virtual CPUs that ran at a tick; a virtual CPU without credits is OVER and waits for all
//! others. A virtual CPU that wakes with credits is BOOSTed until the next tick. A real-time virtual CPU precedes all
//! others when it is woken. A virtual CPU of higher priority preempts a running step. A thread whose queue has no
//! virtual CPU with credits takes one from another thread, within its affinity.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::{Scheduler, SchedulingParameters, WakeCause};
use crate::cpu::{HardwareThreadId, VcpuId};

/// Credits per millisecond (Xen: 100 per tick of 10 ms).
const PER_MS: i64 = 10;
/// Period of credit accounting and time slice, in milliseconds (Xen: 30).
const ACCOUNTING_MS: u64 = 30;
/// Credits distributed per thread at an accounting, and the limit of a virtual CPU's saved and owed credits.
const CREDITS_PER_ACCOUNTING: i64 = PER_MS * ACCOUNTING_MS as i64;

/// Clocks of the credit scheduler, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditSchedulerClocks {
    /// Processor cycles per millisecond, by which the credit scheduler converts its times.
    pub millisecond: u64,
    /// Milliseconds per scheduler tick; at least 1.
    pub tick_ms: u16,
    /// Clock cycle of the scheduler's first tick.
    pub first_tick: u64,
    /// Clock cycle in which credits are accounted first.
    pub first_accounting: u64,
}

/// Priority of a virtual CPU, highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum VcpuPriority {
    /// Priority of a virtual CPU in the real-time class that its device woke.
    RealTime,
    /// Priority of a virtual CPU that was woken while it had credits (BOOST).
    Boost,
    /// Priority of a virtual CPU that has credits (UNDER).
    Under,
    /// Priority of a virtual CPU that has no credits (OVER).
    Over,
}

#[derive(Debug, Clone, Copy)]
struct VcpuCreditAccount {
    share: SchedulingParameters,
    credits: i64,
    priority: VcpuPriority,
    /// The virtual CPU ran at a scheduler tick since its credits last exceeded the limit and were reset.
    active: bool,
}

#[derive(Debug, Default)]
struct CreditRunQueue {
    /// Virtual CPUs that wait for the thread, by priority and then by arrival.
    ready: VecDeque<VcpuId>,
    /// Virtual CPU that has the current time slice of the thread.
    current: Option<VcpuId>,
    slice_end: u64,
    /// The thread's current time slice had ended at the last scheduler call.
    slice_ended: bool,
}

/// Xen's credit scheduler for all threads.
#[derive(Debug)]
pub struct CreditScheduler {
    clocks: CreditSchedulerClocks,
    tick: u64,
    accounting: u64,
    accounts: Vec<VcpuCreditAccount>,
    queues: Vec<CreditRunQueue>,
}

impl CreditScheduler {
    /// Creates a credit scheduler without threads and virtual CPUs.
    pub fn new(clocks: CreditSchedulerClocks) -> CreditScheduler {
        let clocks = CreditSchedulerClocks {
            tick_ms: clocks.tick_ms.max(1),
            millisecond: clocks.millisecond.max(1),
            ..clocks
        };
        let (tick, accounting) = (clocks.first_tick, clocks.first_accounting);
        CreditScheduler { clocks, tick, accounting, accounts: Vec::new(), queues: Vec::new() }
    }

    /// Returns the scheduling priority of a virtual CPU.
    pub fn priority(&self, vcpu: VcpuId) -> VcpuPriority {
        self.accounts[vcpu.index()].priority
    }

    /// Debits the credits of a tick from the running virtual CPU and ends its boost.
    fn debit(&mut self, vcpu: VcpuId) {
        let account = &mut self.accounts[vcpu.index()];
        account.credits -= PER_MS * i64::from(self.clocks.tick_ms);
        account.active = true;
        if account.priority == VcpuPriority::Boost {
            account.priority = VcpuPriority::Under;
        }
    }

    /// Distributes credits to virtual CPUs by weight, and sets each virtual CPU's priority by its credits.
    fn distribute_credits(&mut self) {
        let weight = |account: &VcpuCreditAccount| i64::from(account.share.weight).max(1);
        let weights: i64 = self.accounts.iter().filter(|account| account.active).map(weight).sum();
        let pot = CREDITS_PER_ACCOUNTING * self.queues.len() as i64;
        for account in self.accounts.iter_mut().filter(|account| account.active) {
            account.credits =
                (account.credits + pot * weight(account) / weights).max(-CREDITS_PER_ACCOUNTING);
            if account.credits > CREDITS_PER_ACCOUNTING {
                (account.credits, account.active) = (0, false);
            }
            if account.priority != VcpuPriority::RealTime {
                account.priority = if account.credits < 0 { VcpuPriority::Over } else { VcpuPriority::Under };
            }
        }
        for queue in 0..self.queues.len() {
            let waiting = core::mem::take(&mut self.queues[queue].ready);
            waiting.into_iter().for_each(|vcpu| self.enqueue(queue, vcpu));
        }
    }

    /// Queues a virtual CPU on its thread behind the virtual CPUs of equal priority.
    fn enqueue(&mut self, queue: usize, vcpu: VcpuId) {
        let priority = self.priority(vcpu);
        let behind = self.queues[queue].ready.iter().position(|other| self.priority(*other) > priority);
        let ready = &mut self.queues[queue].ready;
        ready.insert(behind.unwrap_or(ready.len()), vcpu);
    }

    fn may_run(&self, vcpu: VcpuId, thread: HardwareThreadId) -> bool {
        self.accounts[vcpu.index()].share.affinity >> thread.index().min(63) & 1 == 1
    }

    /// Finds a virtual CPU that waits on another thread, has at least priority `least` and may run on `thread`. Returns
    /// its queue and its index there.
    fn find_stealable(&self, thread: HardwareThreadId, least: VcpuPriority) -> Option<(usize, usize)> {
        let may = |vcpu: &VcpuId| self.priority(*vcpu) <= least && self.may_run(*vcpu, thread);
        let others = self.queues.iter().enumerate().filter(|(queue, _)| *queue != thread.index());
        others.filter_map(|(queue, found)| Some((queue, found.ready.iter().position(may)?))).next()
    }
}

impl Scheduler for CreditScheduler {
    fn add_thread(&mut self) {
        self.queues.push(CreditRunQueue::default());
    }

    fn add_vcpu(&mut self, thread: HardwareThreadId, _: VcpuId, mut share: SchedulingParameters) {
        share.affinity |= 1 << thread.index().min(63);
        let account = VcpuCreditAccount { share, credits: 0, priority: VcpuPriority::Under, active: false };
        self.accounts.push(account);
        let most = self.accounts.len();
        self.queues.iter_mut().for_each(|queue| queue.ready.reserve(most));
    }

    fn choose_thread(
        &self,
        home: HardwareThreadId,
        vcpu: VcpuId,
        is_idle: impl Fn(HardwareThreadId) -> bool,
    ) -> HardwareThreadId {
        if is_idle(home) {
            return home;
        }
        let threads = (0..self.queues.len() as u16).map(HardwareThreadId);
        threads.into_iter().find(|thread| self.may_run(vcpu, *thread) && is_idle(*thread)).unwrap_or(home)
    }

    fn woken(&mut self, thread: HardwareThreadId, vcpu: VcpuId, cause: WakeCause) {
        let account = &mut self.accounts[vcpu.index()];
        if account.share.real_time && cause == WakeCause::Interrupt {
            account.priority = VcpuPriority::RealTime;
        } else if account.priority == VcpuPriority::Under {
            account.priority = VcpuPriority::Boost;
        }
        self.enqueue(thread.index(), vcpu);
    }

    fn continues(&mut self, thread: HardwareThreadId, vcpu: VcpuId, _: u64, preempted: bool) {
        let priority = self.priority(vcpu);
        let queue = &self.queues[thread.index()];
        if preempted || queue.slice_ended {
            self.queues[thread.index()].current = None;
            return self.enqueue(thread.index(), vcpu);
        }
        // It resumes before those of equal priority, since its slice has not ended.
        let before = queue.ready.iter().position(|other| self.priority(*other) >= priority);
        let ready = &mut self.queues[thread.index()].ready;
        ready.insert(before.unwrap_or(ready.len()), vcpu);
    }

    fn blocked(&mut self, thread: HardwareThreadId, vcpu: VcpuId, _: u64) {
        self.queues[thread.index()].current = None;
        let account = &mut self.accounts[vcpu.index()];
        if account.share.real_time {
            account.priority = if account.credits < 0 { VcpuPriority::Over } else { VcpuPriority::Under };
        }
    }

    fn pick(&mut self, thread: HardwareThreadId, now: u64) -> Option<VcpuId> {
        let own = self.queues[thread.index()].ready.front().map(|vcpu| self.priority(*vcpu));
        let stolen = match own {
            Some(priority) if priority < VcpuPriority::Over => None,
            Some(_) => self.find_stealable(thread, VcpuPriority::Under),
            None => self.find_stealable(thread, VcpuPriority::Over),
        };
        let next = match stolen {
            Some((queue, at)) => self.queues[queue].ready.remove(at),
            None => self.queues[thread.index()].ready.pop_front(),
        };
        let queue = &mut self.queues[thread.index()];
        if next != queue.current || queue.slice_ended {
            queue.slice_end = now + ACCOUNTING_MS * self.clocks.millisecond;
        }
        (queue.current, queue.slice_ended) = (next, false);
        next
    }

    fn has_ready(&self, thread: HardwareThreadId) -> bool {
        !self.queues[thread.index()].ready.is_empty()
    }

    fn preempts(&self, thread: HardwareThreadId, running: VcpuId) -> bool {
        let queue = &self.queues[thread.index()];
        let first = queue.ready.front().map(|vcpu| self.priority(*vcpu));
        let priority = self.priority(running);
        first.is_some_and(|first| first < priority || queue.slice_ended && first == priority)
    }

    fn could_steal(&self, thread: HardwareThreadId) -> bool {
        self.find_stealable(thread, VcpuPriority::Over).is_some()
    }

    fn due(&self) -> Option<u64> {
        let ends = self
            .queues
            .iter()
            .filter(|queue| queue.current.is_some() && !queue.slice_ended)
            .map(|queue| queue.slice_end);
        ends.chain([self.tick, self.accounting]).min()
    }

    fn advance(&mut self, now: u64, running: impl Fn(HardwareThreadId) -> Option<VcpuId>) {
        if now >= self.tick {
            self.tick += u64::from(self.clocks.tick_ms) * self.clocks.millisecond;
            (0..self.queues.len() as u16)
                .filter_map(|thread| running(HardwareThreadId(thread)))
                .for_each(|it| self.debit(it));
        }
        if now >= self.accounting {
            self.accounting += ACCOUNTING_MS * self.clocks.millisecond;
            self.distribute_credits();
        }
        for thread in 0..self.queues.len() {
            let queue = &self.queues[thread];
            let Some(current) = queue.current.filter(|_| now >= queue.slice_end) else { continue };
            // Without a waiting virtual CPU of equal or higher priority, the running one gets another slice.
            let waits =
                queue.ready.front().is_some_and(|first| self.priority(*first) <= self.priority(current));
            let queue = &mut self.queues[thread];
            queue.slice_ended = waits;
            queue.slice_end = now + ACCOUNTING_MS * self.clocks.millisecond;
        }
    }
}
