//! Polls mailboxes and sends interrupts. Frames pass in [`Nic::visit_ready`] and [`Nic::arrive`].

use crate::card::Nic;
use crate::mailbox::MailboxDescriptorOutcome;
use pcie::{Bus, VfIndex, VfSet};
use units::Time;

/// Result of a poll of mailboxes and interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PollResult {
    /// True if mailboxes still have messages: the caller must run the PF driver, and then poll again.
    pub more: bool,
    /// VFs, a bit each, from which the poll moved a message into the PF's receive queue: the caller must run the PF
    /// driver.
    pub for_pf: u64,
    /// Time at which a throttled interrupt or the next message of a rate-limited VF is due.
    pub deadline: Option<Time>,
}

impl Nic {
    /// Takes at most one message of each VF while the PF's queue has room, delivers pending messages to VFs, and sends interrupts.
    pub fn poll<B: Bus>(&mut self, now: Time, bus: &mut B) -> PollResult {
        let (mut poll, mut turned_away) = (PollResult::default(), None);
        let count = self.functions.len() as u8;
        let before = VfSet::new((1 << self.turn) - 1);
        let in_turn = self.masters.without(before).iter().chain(self.masters.and(before).iter());
        for vf in in_turn.map(VfIndex::get) {
            match self.take_mail(vf, now, bus) {
                Some(MailboxDescriptorOutcome::Given) => poll.for_pf |= 1 << vf,
                Some(MailboxDescriptorOutcome::Later) => turned_away = turned_away.or(Some(vf)),
                _ => {}
            }
            self.deliver_waiting(vf, bus);
            let due = self.send_interrupts_of(vf, now, bus);
            let function = &self.functions[usize::from(vf)];
            let mail = function.next_message().is_some();
            let held = function.brake.mail_due(now).filter(|_| mail);
            poll.more |= mail && held.is_none();
            poll.deadline = [poll.deadline, due, held].into_iter().flatten().min();
        }
        // The first VF that found the PF's queue full begins the next poll, so that every VF has its turn.
        self.turn = turned_away.unwrap_or(if count == 0 { 0 } else { (self.turn + 1) % count });
        poll
    }

    /// Sends the due interrupts of a VF. Returns the time at which a throttled interrupt is due.
    #[inline]
    pub(crate) fn send_interrupts_of<B: Bus>(&mut self, vf: u8, now: Time, bus: &mut B) -> Option<Time> {
        let function = &mut self.functions[usize::from(vf)];
        let (sent, due) = function.interrupts.send(vf, function.brake.interrupt_interval(), now, bus);
        function.counters.interrupts += u64::from(sent.count_ones());
        function.stale |= (sent >> 1) as u16;
        due
    }

    /// Takes a message of a VF, if there is one, no limit delays it, and the VF has credit.
    fn take_mail<B: Bus>(&mut self, vf: u8, now: Time, bus: &mut B) -> Option<MailboxDescriptorOutcome> {
        let function = &self.functions[usize::from(vf)];
        let is_held = self.scratch.owed.held.has(VfIndex::of_field(vf.into()));
        if is_held || function.next_message().is_none() || function.brake.mail_due(now).is_some() {
            return None;
        }
        let taken = self.take_message(vf, bus);
        if taken != Some(MailboxDescriptorOutcome::Later) {
            self.functions[usize::from(vf)].brake.took_mail(now);
        }
        taken
    }
}
