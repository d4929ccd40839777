//! How long requests of VFs wait for the PF driver, which takes no interrupts and is visited every round instead.
//!
//! A wait is measured on the port's thread. It begins at a moment at which the VF had not yet written its mailbox as far as
//! the port could know: when the kernel was last asked for messages before it had this one, or when it woke the port with
//! it. It ends after the visit that answers. So it is rather too long than too short, by a round of the port at most, and
//! it has in it whatever else the port did meanwhile. What is not in it: the way of the VMM to the socket, the kernel's
//! wake-up of a sleeping port, and the answer's interrupt.
//!
//! Nothing grows with the number of requests ([`Delays`] has a fixed size). Left out: who waited.

mod delays;

use crate::control::status::Answers as Status;
use crate::totals::AnswerTotals;
use delays::Delays;
use i82576::Time;
use pcie::{MAX_VFS, VfIndex, VfSet};
use std::time::Duration;

/// The kernel had something to tell when it was asked, if it answers within this time.
const AT_ONCE: Duration = Duration::from_micros(20);

/// Requests and their answers since the port was first opened.
#[derive(Debug)]
pub(in crate::port) struct Answers {
    /// VFs whose request is not answered yet.
    waiting: VfSet,
    /// Of each of them: it had not asked before this moment.
    since: [Time; MAX_VFS],
    delays: Delays,
    /// Visits that answered a request, and the most that one has answered.
    visits: u64,
    most: u8,
}

impl Default for Answers {
    fn default() -> Self {
        let (waiting, since) = (VfSet::NONE, [Time::ZERO; MAX_VFS]);
        Self { waiting, since, delays: Delays::default(), visits: 0, most: 0 }
    }
}

impl Answers {
    /// Before a visit: these VFs have a request in their mailbox, and `since` tells since when at the earliest.
    pub(super) fn ask(&mut self, requests: VfSet, since: impl Fn(VfIndex) -> Time) {
        for vf in requests.without(self.waiting).iter() {
            self.since[vf.index()] = since(vf);
        }
        // A request that is gone was taken back by a reset, or from a VF that did not let go of its mailbox.
        self.waiting = requests;
    }

    /// After a visit: these VFs were answered.
    pub(super) fn answer(&mut self, answered: VfSet, now: Time) {
        if answered.is_empty() {
            return;
        }
        self.visits += 1;
        self.most = self.most.max(answered.count() as u8);
        for vf in answered.and(self.waiting).iter() {
            self.delays.add(now.since(self.since[vf.index()]));
        }
        self.waiting = self.waiting.without(answered);
    }

    /// Returns the delays as a successor takes them over.
    pub(in crate::port) fn save(&self) -> AnswerTotals {
        AnswerTotals { visits: self.visits, most: self.most, ..self.delays.save() }
    }

    /// Resumes with a predecessor's delays.
    pub(in crate::port) fn resume(&mut self, totals: &AnswerTotals) {
        (self.visits, self.most) = (totals.visits, totals.most);
        self.delays = Delays::restore(totals);
    }

    /// For people and programs to read.
    pub(in crate::port) fn status(&self) -> Status {
        Status { visits: self.visits, most_a_visit: self.most, ..self.delays.status() }
    }
}

/// What the port knows of when messages came.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Heard {
    /// When the kernel was last asked for news.
    asked: Time,
    /// What it told then came no earlier than this.
    since: Time,
}

impl Heard {
    /// The kernel was asked at `asked`, for so long at most, and told `news`.
    pub(super) fn news(&mut self, asked: Time, told: Time, news: bool) {
        let slept = news && told.since(asked) >= AT_ONCE;
        // What woke the port came when it woke. Everything else may be there since the kernel was asked before.
        self.since = if slept { told } else { self.asked };
        self.asked = if slept { told } else { asked };
    }

    /// What was just heard of came no earlier than this.
    pub(super) fn since(&self) -> Time {
        self.since
    }
}

#[cfg(test)]
mod tests {
    use super::{AT_ONCE, Answers, Heard};
    use i82576::Time;
    use pcie::VfSet;

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    #[test]
    fn a_wait_lasts_from_the_first_sight_of_a_request_to_its_answer() {
        let mut answers = Answers::default();
        answers.ask(VfSet::new(0b11), |_| at(100));
        answers.answer(VfSet::new(0b01), at(130));
        // VF 1 still waits: what is heard of it later changes nothing.
        answers.ask(VfSet::new(0b10), |_| at(150));
        answers.answer(VfSet::new(0b10), at(400));
        let status = answers.status();
        assert_eq!((status.requests, status.visits, status.most_a_visit), (2, 2, 1));
        assert_eq!((status.p50_ns, status.max_ns, status.sum_ns), (30_000, 300_000, 330_000));
    }

    #[test]
    fn a_request_that_was_taken_back_is_not_counted_and_the_next_begins_anew() {
        let mut answers = Answers::default();
        answers.ask(VfSet::new(0b1), |_| at(100));
        answers.ask(VfSet::new(0b0), |_| at(200));
        answers.ask(VfSet::new(0b1), |_| at(1000));
        answers.answer(VfSet::new(0b1), at(1010));
        assert_eq!((answers.status().requests, answers.status().max_ns), (1, 10_000));
    }

    #[test]
    fn a_visit_that_answers_all_of_them_is_one_visit() {
        let mut answers = Answers::default();
        answers.ask(VfSet::new(u64::MAX), |_| at(0));
        answers.answer(VfSet::new(u64::MAX), at(7));
        answers.answer(VfSet::new(0), at(8));
        let status = answers.status();
        assert_eq!((status.requests, status.visits, status.most_a_visit), (64, 1, 64));
    }

    #[test]
    fn a_message_that_woke_the_port_came_then_and_any_other_since_the_kernel_was_asked_before() {
        let mut heard = Heard::default();
        heard.news(at(100), at(101), false);
        heard.news(at(200), at(201), true);
        assert_eq!(heard.since(), at(100), "it may have come right after the first question");
        heard.news(at(300), at(9000), true);
        assert_eq!(heard.since(), at(9000), "nothing was there before the port slept");
        heard.news(at(9100), at(9101), true);
        assert_eq!(heard.since(), at(9000));
        assert!(at(201).since(at(200)) < AT_ONCE);
    }
}
