//! The step from looking to sleeping, in every order of what a guest and the port do. The port's rounds are played: they
//! take what was stored and what was said, and know from then on whether somebody must look.

use super::{LONGEST, Naps, SHORTEST, SPIN, UNASKED, Wake};
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

/// How long it takes to ask the kernel.
const QUESTION: Duration = Duration::from_micros(1);

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
    /// Another guest rings by message.
    must_hear: bool,
    stored: Vec<Time>,
    said: Vec<(Time, bool)>,
    /// The port knows that something was said.
    heard: bool,
    /// Rounds since something was said that the port has not heard.
    deaf: u8,
    /// How often the kernel was asked.
    asked: usize,
    rested: bool,
    /// What drivers have done was told in this round.
    told: bool,
}

impl<'a> Model<'a> {
    fn new(choices: &'a mut Choices, script: &[Act]) -> Self {
        Self {
            choices,
            script: script.iter().copied().collect(),
            now: Time::from_micros(1),
            must_look: false,
            since: Time::ZERO,
            must_hear: false,
            stored: Vec::new(),
            said: Vec::new(),
            heard: false,
            deaf: 0,
            asked: 0,
            rested: false,
            told: false,
        }
    }

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
        let heard = std::mem::take(&mut self.heard);
        self.deaf = if heard || self.said.is_empty() { 0 } else { self.deaf + 1 };
        // One was under way.
        assert!(self.deaf <= UNASKED + 1, "what was said has waited for {} rounds", self.deaf);
        for (at, must_look) in self.said.extract_if(.., |_| heard) {
            let longest = SPIN * u32::from(UNASKED + 1) + QUESTION;
            assert!(self.now.since(at) <= longest, "what was said has waited for {:?}", self.now.since(at));
            (self.must_look, self.since) = (must_look, self.now);
        }
        for at in std::mem::take(&mut self.stored) {
            let waited = self.now.since(at.max(self.since));
            assert!(!self.must_look || waited <= LONGEST, "a store has waited for {waited:?}");
        }
        (self.rested, self.told) = (false, false);
    }
}

impl Wake for Model<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn sleep(&mut self, time: Option<Duration>) -> io::Result<bool> {
        self.asked += 1;
        assert!(self.told || time == Some(Duration::ZERO), "asleep, and nothing was told before");
        self.moment();
        self.heard = !self.said.is_empty();
        if self.heard {
            return Ok(true);
        }
        match time {
            Some(time) => {
                let time = time.max(QUESTION);
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
                self.heard = true;
                return Ok(true);
            }
        }
        self.heard = !self.said.is_empty();
        Ok(self.heard)
    }

    fn must_look(&self) -> bool {
        self.must_look
    }

    fn must_hear(&self) -> bool {
        self.must_hear
    }

    fn look(&mut self, time: Duration) -> bool {
        self.now = self.now + time / 2;
        self.moment();
        let found = !self.stored.is_empty();
        self.now = if found { self.now } else { self.now + (time - time / 2) };
        found
    }

    fn may_rest(&self) -> bool {
        !self.rested
    }

    fn rest(&mut self) {
        self.rested = true;
        self.moment();
    }

    fn tell(&mut self) {
        self.told = true;
    }
}

/// Plays a script in every order; answers how many there were.
fn play(wait: Wait, script: &[Act], time: Option<Duration>) -> usize {
    let (mut choices, mut orders) = (Choices::default(), 0);
    loop {
        let mut model = Model::new(&mut choices, script);
        let mut naps = Naps::new(wait);
        while !model.script.is_empty()
            || !model.said.is_empty()
            || (model.must_look && !model.stored.is_empty())
        {
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
    let first: Vec<_> = (0..6).map(|_| naps.next()).collect();
    let grown = [16, 32, 64, 128, 160, 160].map(Duration::from_micros);
    assert_eq!(first, grown);
    assert_eq!((SHORTEST, LONGEST), (grown[0], grown[5]));
    naps.stirred();
    assert_eq!(naps.next(), SHORTEST);
    let mut busy = Naps::new(Wait::Busy);
    assert!((0..8).all(|_| busy.next().is_zero()));
}

#[test]
fn rounds_with_work_ask_the_kernel_once_in_a_while() {
    const ROUNDS: usize = 900;
    let every = usize::from(UNASKED) + 1;
    for (wait, must_hear, every) in
        [(Wait::Mapped, false, every), (Wait::Busy, false, every), (Wait::Mapped, true, 1)]
    {
        let mut choices = Choices::default();
        let mut model = Model { must_look: true, must_hear, ..Model::new(&mut choices, &[]) };
        let mut naps = Naps::new(wait);
        for _ in 0..ROUNDS {
            model.stored.push(model.now);
            naps.pass(&mut model, None).unwrap();
            model.round();
        }
        assert_eq!(model.asked, ROUNDS / every, "{wait:?}, somebody rings by message: {must_hear}");
    }
}

#[test]
fn after_work_the_port_looks_before_it_naps() {
    let mut choices = Choices::default();
    let mut model = Model { must_look: true, ..Model::new(&mut choices, &[]) };
    let mut naps = Naps::new(Wait::Mapped);
    let began = model.now;
    naps.pass(&mut model, Some(SPIN)).unwrap();
    assert_eq!(model.now.since(began), SPIN + QUESTION, "as long as a nap takes, and then a question");
    naps.pass(&mut model, Some(SHORTEST)).unwrap();
    assert_eq!(model.asked, 2, "no second time");
}
