//! Delays of the PF driver's answers to mailbox requests of VFs. The PF driver takes no interrupts; the port calls it
//! in every round of its loop instead.
//!
//! A delay is measured on the port's thread. It begins at a moment before which the VF cannot have written its
//! mailbox: the last poll of the kernel before the one that reported the message, or the wake-up by the message. It
//! ends after the visit that answers. So it is too long rather than too short, by one round of the port at most,
//! and it includes the port's other work in that time. It excludes the VMM's way to the socket, the kernel's
//! wake-up of a sleeping port, and the answer's interrupt.
//!
//! No memory grows with the number of requests ([`MailboxAnswerDelays`] has a fixed size).

mod delays;

use crate::control::status::PfAnswerStatus as Status;
use crate::totals::MailboxAnswerTotals;
use delays::MailboxAnswerDelays;
use i82576::Time;
use pcie::{MAX_VFS, VfIndex, VfSet};
use std::time::Duration;

/// Longest duration of a poll of the kernel that returned at once, because its event had happened before. A longer poll
/// has waited for its event, so its end is the time of the event.
const AT_ONCE: Duration = Duration::from_micros(20);

/// Statistics of the VFs' mailbox requests and the PF driver's answers, since the port was first opened.
#[derive(Debug)]
pub(in crate::port) struct MailboxAnswerStatistics {
    /// VFs with an unanswered mailbox request.
    waiting: VfSet,
    /// Earliest time of each VF's unanswered mailbox request.
    since: [Time; MAX_VFS],
    delays: MailboxAnswerDelays,
    /// Number of PF driver runs that answered a request, and the largest number of VFs that one run has answered.
    visits: u64,
    most: u8,
}

impl Default for MailboxAnswerStatistics {
    fn default() -> Self {
        let (waiting, since) = (VfSet::NONE, [Time::ZERO; MAX_VFS]);
        Self { waiting, since, delays: MailboxAnswerDelays::default(), visits: 0, most: 0 }
    }
}

impl MailboxAnswerStatistics {
    /// Records, before a run of the PF driver, which VFs have a request in their mailbox. `since` returns the earliest
    /// time of a VF's request.
    pub(super) fn ask(&mut self, requests: VfSet, since: impl Fn(VfIndex) -> Time) {
        for vf in requests.without(self.waiting).iter() {
            self.since[vf.index()] = since(vf);
        }
        // A request that has disappeared was withdrawn: by a reset, or from a VF that kept its mailbox locked.
        self.waiting = requests;
    }

    /// Records, after a run of the PF driver, which VFs the driver has answered.
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

    /// Returns the statistics of mailbox answers, to be saved for the successor process.
    pub(in crate::port) fn save(&self) -> MailboxAnswerTotals {
        MailboxAnswerTotals { visits: self.visits, most: self.most, ..self.delays.save() }
    }

    /// Continues the statistics of mailbox answers that the previous host process has saved.
    pub(in crate::port) fn resume(&mut self, totals: &MailboxAnswerTotals) {
        (self.visits, self.most) = (totals.visits, totals.most);
        self.delays = MailboxAnswerDelays::restore(totals);
    }

    /// Returns the numbers of mailbox requests and their delays, for the port's status.
    pub(in crate::port) fn status(&self) -> Status {
        Status { visits: self.visits, most_a_visit: self.most, ..self.delays.status() }
    }
}

/// Earliest times at which received messages may have arrived, by the times of the kernel's polls.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MessageArrivalTimes {
    /// Time of the last poll of the kernel for messages.
    asked: Time,
    /// Earliest time at which the events of the last poll may have happened.
    since: Time,
}

impl MessageArrivalTimes {
    /// Records a poll of the kernel that began at `asked` and returned at `returned`, with an event (`news`) or
    /// without.
    pub(super) fn note_poll(&mut self, asked: Time, returned: Time, news: bool) {
        let slept = news && returned.since(asked) >= AT_ONCE;
        // An event that ended a sleep came at its end. Any other event may have come since the poll before.
        self.since = if slept { returned } else { self.asked };
        self.asked = if slept { returned } else { asked };
    }

    /// Returns the earliest time at which the events of the last poll may have happened.
    pub(super) fn since(&self) -> Time {
        self.since
    }
}

#[cfg(test)]
mod tests {
    use super::{AT_ONCE, MailboxAnswerStatistics, MessageArrivalTimes};
    use i82576::Time;
    use pcie::VfSet;

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    #[test]
    fn mailbox_delay_lasts_from_first_poll_to_answer() {
        let mut answers = MailboxAnswerStatistics::default();
        answers.ask(VfSet::new(0b11), |_| at(100));
        answers.answer(VfSet::new(0b01), at(130));
        // VF 1 still waits, so the later time does not replace the first.
        answers.ask(VfSet::new(0b10), |_| at(150));
        answers.answer(VfSet::new(0b10), at(400));
        let status = answers.status();
        assert_eq!((status.requests, status.visits, status.most_a_visit), (2, 2, 1));
        assert_eq!((status.p50_ns, status.max_ns, status.sum_ns), (30_000, 300_000, 330_000));
    }

    #[test]
    fn withdrawn_mailbox_request_counts_no_delay() {
        let mut answers = MailboxAnswerStatistics::default();
        answers.ask(VfSet::new(0b1), |_| at(100));
        answers.ask(VfSet::new(0b0), |_| at(200));
        answers.ask(VfSet::new(0b1), |_| at(1000));
        answers.answer(VfSet::new(0b1), at(1010));
        assert_eq!((answers.status().requests, answers.status().max_ns), (1, 10_000));
    }

    #[test]
    fn pf_driver_poll_that_answers_64_vfs_is_counted_once() {
        let mut answers = MailboxAnswerStatistics::default();
        answers.ask(VfSet::new(u64::MAX), |_| at(0));
        answers.answer(VfSet::new(u64::MAX), at(7));
        answers.answer(VfSet::new(0), at(8));
        let status = answers.status();
        assert_eq!((status.requests, status.visits, status.most_a_visit), (64, 1, 64));
    }

    #[test]
    fn client_message_delay_starts_at_previous_poll_or_wake_up() {
        let mut times = MessageArrivalTimes::default();
        times.note_poll(at(100), at(101), false);
        times.note_poll(at(200), at(201), true);
        assert_eq!(times.since(), at(100), "it may have come right after the first poll");
        times.note_poll(at(300), at(9000), true);
        assert_eq!(times.since(), at(9000), "no event was there before the port slept");
        times.note_poll(at(9100), at(9101), true);
        assert_eq!(times.since(), at(9000));
        assert!(at(201).since(at(200)) < AT_ONCE);
    }
}
