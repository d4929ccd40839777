//! Xen's credit scheduler. Whoever runs at a tick pays for the whole of it. Credits are handed out by weight at each
//! accounting, to those who were seen at a tick; who has none left is over and waits for all others. Who wakes with
//! credits is boosted up to the next tick. A real-time virtual CPU goes before all of them when it is woken. Whoever goes
//! first takes the thread at once, in the middle of another's step. A thread whose line has nobody with credits takes
//! somebody from another's, as far as affinity allows.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::{Scheduler, Share};
use crate::cpu::{ThreadId, VcpuId};

/// Credits of a tick of 10 ms (Xen: 100), and thus of a millisecond.
const PER_MS: i64 = 10;
/// From one accounting to the next, milliseconds, which is a slice too.
const ACCOUNTING_MS: u64 = 30;
/// What a thread is worth at an accounting, and the most that anybody saves or owes.
const POT: i64 = PER_MS * ACCOUNTING_MS as i64;

/// The scheduler's clocks, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// Cycles of a millisecond.
    pub millisecond: u64,
    /// Milliseconds from one tick to the next; at least 1.
    pub tick_ms: u16,
    /// The first tick.
    pub first_tick: u64,
    /// The first accounting.
    pub first_accounting: u64,
}

/// Who goes first, the highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Of the real-time class, woken by its device.
    RealTime,
    /// Woken with credits.
    Boost,
    /// Has credits.
    Under,
    /// Has none.
    Over,
}

#[derive(Debug, Clone, Copy)]
struct Account {
    share: Share,
    credits: i64,
    priority: Priority,
    /// Seen at a tick since it had all it can save.
    active: bool,
}

#[derive(Debug, Default)]
struct Line {
    /// Who waits, by priority and then by arrival.
    ready: VecDeque<VcpuId>,
    /// Who has its turn, and when its slice is over.
    turn: Option<VcpuId>,
    end: u64,
    /// The slice was over when time was last told.
    is_over: bool,
}

/// The scheduler.
#[derive(Debug)]
pub struct Credit {
    clocks: Clocks,
    tick: u64,
    accounting: u64,
    accounts: Vec<Account>,
    lines: Vec<Line>,
}

impl Credit {
    /// With nobody to run.
    pub fn new(clocks: Clocks) -> Credit {
        let clocks =
            Clocks { tick_ms: clocks.tick_ms.max(1), millisecond: clocks.millisecond.max(1), ..clocks };
        let (tick, accounting) = (clocks.first_tick, clocks.first_accounting);
        Credit { clocks, tick, accounting, accounts: Vec::new(), lines: Vec::new() }
    }

    /// What a virtual CPU's priority is.
    pub fn priority(&self, vcpu: VcpuId) -> Priority {
        self.accounts[vcpu.index()].priority
    }

    /// A tick: who runs pays, and loses its boost.
    fn pay(&mut self, vcpu: VcpuId) {
        let account = &mut self.accounts[vcpu.index()];
        account.credits -= PER_MS * i64::from(self.clocks.tick_ms);
        account.active = true;
        if account.priority == Priority::Boost {
            account.priority = Priority::Under;
        }
    }

    /// An accounting: credits by weight, and priorities by credits.
    fn account(&mut self) {
        let weight = |account: &Account| i64::from(account.share.weight).max(1);
        let weights: i64 = self.accounts.iter().filter(|account| account.active).map(weight).sum();
        let pot = POT * self.lines.len() as i64;
        for account in self.accounts.iter_mut().filter(|account| account.active) {
            account.credits = (account.credits + pot * weight(account) / weights).max(-POT);
            if account.credits > POT {
                (account.credits, account.active) = (0, false);
            }
            if account.priority != Priority::RealTime {
                account.priority = if account.credits < 0 { Priority::Over } else { Priority::Under };
            }
        }
        for line in 0..self.lines.len() {
            let waiting = core::mem::take(&mut self.lines[line].ready);
            waiting.into_iter().for_each(|vcpu| self.enter(line, vcpu));
        }
    }

    /// Joins a line behind its equals.
    fn enter(&mut self, line: usize, vcpu: VcpuId) {
        let priority = self.priority(vcpu);
        let behind = self.lines[line].ready.iter().position(|other| self.priority(*other) > priority);
        let ready = &mut self.lines[line].ready;
        ready.insert(behind.unwrap_or(ready.len()), vcpu);
    }

    fn may_run(&self, vcpu: VcpuId, thread: ThreadId) -> bool {
        self.accounts[vcpu.index()].share.affinity >> thread.index().min(63) & 1 == 1
    }

    /// One of another thread's line with at least that priority: where it waits.
    fn elsewhere(&self, thread: ThreadId, least: Priority) -> Option<(usize, usize)> {
        let may = |vcpu: &VcpuId| self.priority(*vcpu) <= least && self.may_run(*vcpu, thread);
        let others = self.lines.iter().enumerate().filter(|(line, _)| *line != thread.index());
        others.filter_map(|(line, found)| Some((line, found.ready.iter().position(may)?))).next()
    }
}

impl Scheduler for Credit {
    fn add_thread(&mut self) {
        self.lines.push(Line::default());
    }

    fn add_vcpu(&mut self, thread: ThreadId, _: VcpuId, mut share: Share) {
        share.affinity |= 1 << thread.index().min(63);
        let account = Account { share, credits: 0, priority: Priority::Under, active: false };
        self.accounts.push(account);
        let most = self.accounts.len();
        self.lines.iter_mut().for_each(|line| line.ready.reserve(most));
    }

    fn place(&self, home: ThreadId, vcpu: VcpuId, is_idle: impl Fn(ThreadId) -> bool) -> ThreadId {
        if is_idle(home) {
            return home;
        }
        let threads = (0..self.lines.len() as u16).map(ThreadId);
        threads.into_iter().find(|thread| self.may_run(vcpu, *thread) && is_idle(*thread)).unwrap_or(home)
    }

    fn woken(&mut self, thread: ThreadId, vcpu: VcpuId) {
        let account = &mut self.accounts[vcpu.index()];
        if account.share.real_time {
            account.priority = Priority::RealTime;
        } else if account.priority == Priority::Under {
            account.priority = Priority::Boost;
        }
        self.enter(thread.index(), vcpu);
    }

    fn continues(&mut self, thread: ThreadId, vcpu: VcpuId, _: u64, cut: bool) {
        let priority = self.priority(vcpu);
        let line = &self.lines[thread.index()];
        if cut || line.is_over {
            self.lines[thread.index()].turn = None;
            return self.enter(thread.index(), vcpu);
        }
        // It goes on before its equals.
        let before = line.ready.iter().position(|other| self.priority(*other) >= priority);
        let ready = &mut self.lines[thread.index()].ready;
        ready.insert(before.unwrap_or(ready.len()), vcpu);
    }

    fn blocked(&mut self, thread: ThreadId, vcpu: VcpuId, _: u64) {
        self.lines[thread.index()].turn = None;
        let account = &mut self.accounts[vcpu.index()];
        if account.share.real_time {
            account.priority = if account.credits < 0 { Priority::Over } else { Priority::Under };
        }
    }

    fn pick(&mut self, thread: ThreadId, now: u64) -> Option<VcpuId> {
        let own = self.lines[thread.index()].ready.front().map(|vcpu| self.priority(*vcpu));
        let stolen = match own {
            Some(priority) if priority < Priority::Over => None,
            Some(_) => self.elsewhere(thread, Priority::Under),
            None => self.elsewhere(thread, Priority::Over),
        };
        let next = match stolen {
            Some((line, at)) => self.lines[line].ready.remove(at),
            None => self.lines[thread.index()].ready.pop_front(),
        };
        let line = &mut self.lines[thread.index()];
        if next != line.turn || line.is_over {
            line.end = now + ACCOUNTING_MS * self.clocks.millisecond;
        }
        (line.turn, line.is_over) = (next, false);
        next
    }

    fn has_ready(&self, thread: ThreadId) -> bool {
        !self.lines[thread.index()].ready.is_empty()
    }

    fn cuts(&self, thread: ThreadId, running: VcpuId) -> bool {
        let line = &self.lines[thread.index()];
        let first = line.ready.front().map(|vcpu| self.priority(*vcpu));
        let priority = self.priority(running);
        first.is_some_and(|first| first < priority || line.is_over && first == priority)
    }

    fn could_steal(&self, thread: ThreadId) -> bool {
        self.elsewhere(thread, Priority::Over).is_some()
    }

    fn due(&self) -> Option<u64> {
        let ends = self.lines.iter().filter(|line| line.turn.is_some() && !line.is_over).map(|line| line.end);
        ends.chain([self.tick, self.accounting]).min()
    }

    fn time(&mut self, now: u64, running: impl Fn(ThreadId) -> Option<VcpuId>) {
        if now >= self.tick {
            self.tick += u64::from(self.clocks.tick_ms) * self.clocks.millisecond;
            (0..self.lines.len() as u16)
                .filter_map(|thread| running(ThreadId(thread)))
                .for_each(|it| self.pay(it));
        }
        if now >= self.accounting {
            self.accounting += ACCOUNTING_MS * self.clocks.millisecond;
            self.account();
        }
        for thread in 0..self.lines.len() {
            let line = &self.lines[thread];
            let Some(turn) = line.turn.filter(|_| now >= line.end) else { continue };
            // Nobody who would have the next slice waits: it has another itself.
            let waits = line.ready.front().is_some_and(|first| self.priority(*first) <= self.priority(turn));
            let line = &mut self.lines[thread];
            line.is_over = waits;
            line.end = now + ACCOUNTING_MS * self.clocks.millisecond;
        }
    }
}
