//! Xen's credit scheduler on one processor. Whoever runs at a tick pays for the whole of it. Credits are handed out by
//! weight at each accounting, to those who were seen at a tick; who has none left is over and waits for all others. Who
//! wakes with credits is boosted up to the next tick. A real-time virtual CPU goes before all of them. Left out: other
//! processors, caps, and domains of several virtual CPUs.

use std::collections::VecDeque;

/// Credits of a millisecond.
const PER_MS: i64 = 10;
/// From one accounting to the next, milliseconds, which is a slice too.
pub const ACCOUNTING_MS: u64 = 30;
/// What all are given at an accounting, and the most that anybody saves or owes.
const POT: i64 = PER_MS * ACCOUNTING_MS as i64;

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

/// A virtual CPU, by its number.
pub type Vcpu = usize;

#[derive(Debug, Clone, Copy)]
struct Account {
    weight: i64,
    credits: i64,
    priority: Priority,
    is_real_time: bool,
    /// Seen at a tick since it had all it can save.
    active: bool,
    runnable: bool,
}

/// The scheduler.
#[derive(Debug)]
pub struct Credit {
    accounts: Vec<Account>,
    /// Who waits, by priority and then by arrival.
    line: VecDeque<Vcpu>,
    running: Option<Vcpu>,
    per_tick: i64,
}

impl Credit {
    /// Virtual CPUs by weight and class, all asleep, with ticks of so many milliseconds.
    #[must_use]
    pub fn new(vcpus: &[(u16, bool)], tick_ms: u16) -> Self {
        let account = |(weight, is_real_time): &(u16, bool)| Account {
            weight: i64::from(*weight).max(1),
            credits: 0,
            priority: Priority::Under,
            is_real_time: *is_real_time,
            active: false,
            runnable: false,
        };
        let accounts = vcpus.iter().map(account).collect();
        Self { accounts, line: VecDeque::new(), running: None, per_tick: PER_MS * i64::from(tick_ms) }
    }

    /// A virtual CPU has something to do.
    pub fn wake(&mut self, vcpu: Vcpu) {
        let account = &mut self.accounts[vcpu];
        if account.runnable {
            return;
        }
        account.runnable = true;
        if account.is_real_time {
            account.priority = Priority::RealTime;
        } else if account.priority == Priority::Under {
            account.priority = Priority::Boost;
        }
        self.enter(vcpu);
    }

    /// Who runs has nothing to do any more.
    pub fn block(&mut self) {
        let Some(vcpu) = self.running.take() else { return };
        let account = &mut self.accounts[vcpu];
        account.runnable = false;
        if account.is_real_time {
            account.priority = if account.credits < 0 { Priority::Over } else { Priority::Under };
        }
    }

    /// A tick: who runs pays, and loses its boost.
    pub fn tick(&mut self) {
        let Some(vcpu) = self.running else { return };
        let account = &mut self.accounts[vcpu];
        account.credits -= self.per_tick;
        account.active = true;
        if account.priority == Priority::Boost {
            account.priority = Priority::Under;
        }
    }

    /// An accounting: credits by weight, and priorities by credits.
    pub fn account(&mut self) {
        let weights: i64 = self.accounts.iter().filter(|account| account.active).map(|it| it.weight).sum();
        for account in self.accounts.iter_mut().filter(|account| account.active) {
            account.credits = (account.credits + POT * account.weight / weights).max(-POT);
            if account.credits > POT {
                (account.credits, account.active) = (0, false);
            }
            if account.priority != Priority::RealTime {
                account.priority = if account.credits < 0 { Priority::Over } else { Priority::Under };
            }
        }
        let waiting: Vec<Vcpu> = self.line.drain(..).collect();
        waiting.into_iter().for_each(|vcpu| self.enter(vcpu));
    }

    /// The slice of who runs is over.
    pub fn end_slice(&mut self) {
        if let Some(vcpu) = self.running.take() {
            self.enter(vcpu);
        }
    }

    /// Who runs from here on: who ran, unless somebody of a higher priority waits.
    pub fn pick(&mut self) -> Option<Vcpu> {
        let first = self.line.front().copied();
        let better = |vcpu: Vcpu| {
            first.is_some_and(|first| self.accounts[first].priority < self.accounts[vcpu].priority)
        };
        if self.running.is_some_and(|vcpu| !better(vcpu)) {
            return self.running;
        }
        self.line.pop_front();
        if let Some(pushed) = self.running.take() {
            self.enter(pushed);
        }
        self.running = first;
        first
    }

    /// What a virtual CPU's priority is.
    #[must_use]
    pub fn priority(&self, vcpu: Vcpu) -> Priority {
        self.accounts[vcpu].priority
    }

    fn enter(&mut self, vcpu: Vcpu) {
        let priority = self.accounts[vcpu].priority;
        let behind = self.line.iter().position(|other| self.accounts[*other].priority > priority);
        self.line.insert(behind.unwrap_or(self.line.len()), vcpu);
    }
}

#[cfg(test)]
mod tests {
    use super::{Credit, Priority};

    #[test]
    fn who_runs_at_a_tick_pays_for_all_of_it() {
        let mut credit = Credit::new(&[(1, false), (16, false)], 10);
        credit.wake(1);
        assert_eq!(credit.pick(), Some(1));
        credit.tick();
        credit.wake(0);
        assert_eq!((credit.pick(), credit.priority(0)), (Some(0), Priority::Boost));
        credit.tick();
        assert_eq!(credit.priority(0), Priority::Under, "the boost is over");
        credit.account();
        assert_eq!((credit.priority(0), credit.priority(1)), (Priority::Over, Priority::Under));
        assert_eq!(credit.pick(), Some(1), "who has credits goes first");
        credit.block();
        credit.pick();
        credit.block();
        credit.wake(1);
        credit.wake(0);
        assert_eq!(
            (credit.pick(), credit.priority(0)),
            (Some(1), Priority::Over),
            "no boost for who is over"
        );
    }

    #[test]
    fn a_real_time_virtual_cpu_goes_first_when_it_wakes_whatever_it_owes() {
        let mut credit = Credit::new(&[(1, true), (16, false), (16, false)], 10);
        credit.wake(0);
        credit.pick();
        (0..20).for_each(|_| credit.tick());
        credit.block();
        credit.wake(1);
        credit.pick();
        credit.tick();
        credit.account();
        assert_eq!(credit.priority(0), Priority::Over);
        credit.wake(2);
        credit.wake(0);
        assert_eq!(credit.pick(), Some(0));
    }

    #[test]
    fn equals_have_slices_in_turn() {
        let mut credit = Credit::new(&[(1, false), (1, false)], 10);
        credit.wake(0);
        credit.wake(1);
        let mut turns = Vec::new();
        for _ in 0..4 {
            turns.push(credit.pick().unwrap());
            credit.tick();
            credit.end_slice();
        }
        assert_eq!(turns, [0, 1, 0, 1]);
    }
}
