//! The step from looking to sleeping, in every order of what a guest and the port do. The port's rounds are played: they
//! take what was stored and what was said, and know from then on whether somebody must look.

use super::{LONGEST, Naps, SHORTEST, Wake};
use crate::config::file::Wait;
use i82576::Time;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// What a guest does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// It stores into a page.
    Store,
    /// It does something that the port hears of, and that starts or ends the time in which the port must look.
    Say { must_look: bool },
}

use Act::{Say, Store};

const ON: Act = Say { must_look: true };
const OFF: Act = Say { must_look: false };

/// At so many moments the guest may act or not; afterwards it does what is left.
const MOMENTS: usize = 16;

/// Which of them it uses: every set of moments comes once.
#[derive(Default)]
struct Choices {
    taken: Vec<bool>,
    next: usize,
}

impl Choices {
    fn take(&mut self) -> bool {
        if self.next >= MOMENTS {
            return true;
        }
        if self.next == self.taken.len() {
            self.taken.push(false);
        }
        self.next += 1;
        self.taken[self.next - 1]
    }

    /// The next set; `false` if there is none.
    fn advance(&mut self) -> bool {
        self.taken.truncate(self.next);
        self.next = 0;
        while self.taken.pop_if(|last| *last).is_some() {}
        self.taken.last_mut().is_some_and(|last| {
            *last = true;
            true
        })
    }
}

/// A guest, and the port as it waits.
struct Model<'a> {
    choices: &'a mut Choices,
    script: VecDeque<Act>,
    now: Time,
    /// Known since the last round, and since when.
    must_look: bool,
    since: Time,
    stored: Vec<Time>,
    said: Vec<(Time, bool)>,
    rested: bool,
}

impl Model<'_> {
    /// A moment between two steps of the port.
    fn moment(&mut self) {
        while !self.script.is_empty() && self.choices.take() {
            self.act();
        }
    }

    fn act(&mut self) {
        match self.script.pop_front() {
            Some(Store) => self.stored.push(self.now),
            Some(Say { must_look }) => self.said.push((self.now, must_look)),
            None => {}
        }
    }

    /// One round: nothing may have waited longer than it should.
    fn round(&mut self) {
        for (at, must_look) in std::mem::take(&mut self.said) {
            assert_eq!(at, self.now, "what is heard wakes at once");
            (self.must_look, self.since) = (must_look, self.now);
        }
        for at in std::mem::take(&mut self.stored) {
            let waited = self.now.since(at.max(self.since));
            assert!(!self.must_look || waited <= LONGEST, "a store has waited for {waited:?}");
        }
        self.rested = false;
    }
}

impl Wake for Model<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn sleep(&mut self, time: Option<Duration>) -> io::Result<bool> {
        self.moment();
        if !self.said.is_empty() {
            return Ok(true);
        }
        match time {
            Some(time) => {
                self.now = self.now + time / 2;
                self.moment();
                if self.said.is_empty() {
                    self.now = self.now + (time - time / 2);
                }
            }
            // Only what is heard ends this sleep.
            None => {
                assert!(!self.must_look, "asleep though somebody must look");
                while self.said.is_empty() && !self.script.is_empty() {
                    self.act();
                }
                // The script is over: anything else that could wake a port.
                return Ok(true);
            }
        }
        Ok(!self.said.is_empty())
    }

    fn must_look(&self) -> bool {
        self.must_look
    }

    fn stirred(&self) -> bool {
        !self.stored.is_empty()
    }

    fn may_rest(&self) -> bool {
        !self.rested
    }

    fn rest(&mut self) {
        self.rested = true;
        self.moment();
    }
}

/// Plays a script in every order; answers how many there were.
fn play(wait: Wait, script: &[Act], time: Option<Duration>) -> usize {
    let (mut choices, mut orders) = (Choices::default(), 0);
    loop {
        let script = script.iter().copied().collect();
        let (now, since) = (Time::from_micros(1), Time::ZERO);
        let (stored, said) = (Vec::new(), Vec::new());
        let choices_now = &mut choices;
        let mut model =
            Model { choices: choices_now, script, now, must_look: false, since, stored, said, rested: false };
        let mut naps = Naps::new(wait);
        while !model.script.is_empty() || !model.said.is_empty() || (model.must_look && model.stirred()) {
            naps.pass(&mut model, time).unwrap();
            model.moment();
            // What came after the wait ended is part of this round, as it is of a real one.
            model.round();
        }
        orders += 1;
        if !choices.advance() {
            return orders;
        }
    }
}

#[test]
fn no_store_and_no_word_is_missed_in_any_order() {
    let scripts: [&[Act]; 4] =
        [&[ON, Store, Store, OFF], &[Store, ON, Store], &[ON, OFF, Store, ON], &[ON, Store, OFF, Store, ON]];
    let times =
        [None, Some(Duration::ZERO), Some(Duration::from_micros(10)), Some(Duration::from_millis(60))];
    for wait in [Wait::Sleep, Wait::Mapped, Wait::Busy] {
        for script in scripts {
            let orders: usize = times.iter().map(|time| play(wait, script, *time)).sum();
            assert!(orders > 100, "{orders} orders of {script:?}");
        }
    }
}

#[test]
fn naps_grow_up_to_a_bound_and_begin_anew_with_what_is_found() {
    let mut naps = Naps::new(Wait::Mapped);
    let first: Vec<_> = (0..8).map(|_| naps.next()).collect();
    let grown = [0, 4, 8, 16, 32, 64, 128, 128].map(Duration::from_micros);
    assert_eq!(first, grown);
    assert_eq!((SHORTEST, LONGEST), (grown[1], grown[7]));
    naps.stirred();
    assert_eq!(naps.next(), Duration::ZERO);
    let mut busy = Naps::new(Wait::Busy);
    assert!((0..8).all(|_| busy.next().is_zero()));
}
