//! The PF's end of the mailbox: locks it, takes the request, replies. Acknowledgement and reply are one write, so
//! that the VF is interrupted once and finds both.
//!
//! A request is taken exactly once: its bit in MBVFICR is cleared under the lock, and if the bit is already clear
//! then the VF was reset and no request is served.
//!
//! `messages` decides the requests.

use super::Pf;
use super::counters::{MailboxMessageKind, MailboxRefusal};
use super::messages::MailboxReply;
use crate::hal::Hal;
use core::time::Duration;
use i82576::bits::{mbvficr, p2v};
use i82576::mailbox::{ACK, CTS, NACK, WORDS, id};
use i82576::register as r;
use i82576::{Time, VfIndex};

/// Minimum interval between two NACKs to a VF that has not sent VF_RESET.
const NACK_INTERVAL: Duration = Duration::from_secs(2);
/// Time for which a reply is protected from notices if the VF does not acknowledge it. igbvf never reads some
/// replies, and an emulated guest may be slow.
const REPLY_TIME: Duration = Duration::from_secs(1);
/// Number of runs of the PF driver for which a VF that waits for a reply may keep the mailbox buffer locked.
pub(super) const LOCK_PATIENCE: u8 = 10;

impl Pf {
    /// Takes and serves the VF's request, if the mailbox is free. Returns the kind of the request, or `None` if none was
    /// served.
    pub(super) fn serve<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) -> Option<MailboxMessageKind> {
        if !lock(hal, vf) {
            self.count_locked(hal, vf);
            return None;
        }
        self.state_mut(vf).locked = 0;
        let request = vf.bit() << mbvficr::VFREQ_SHIFT;
        if hal.read(r::MBVFICR) & request == 0 {
            unlock(hal, vf);
            return None;
        }
        hal.write(r::MBVFICR, request);
        let mut message = [0; WORDS];
        for (word, i) in message.iter_mut().zip(0..) {
            *word = hal.read(r::vmbmem(vf, i));
        }
        self.respond(hal, vf, &message);
        Some(MailboxMessageKind::of(message[0]))
    }

    fn respond<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, message: &[u32; WORDS]) {
        let first = message[0];
        self.state_mut(vf).counters.count_message(MailboxMessageKind::of(first));
        if vf.get() >= self.enabled || first & (ACK | NACK) != 0 {
            // A VF that is not enabled, or a reply of the PF that came back.
            self.state_mut(vf).counters.unanswered += 1;
            return hal.write(r::p2v_mailbox(vf), p2v::ACK);
        }
        if first == id::VF_RESET {
            return self.answer_reset(hal, vf);
        }
        if !self.state(vf).clear_to_send {
            self.state_mut(vf).counters.count_outcome(Err(MailboxRefusal::NotReady));
            return if self.may_nack(hal.now(), vf) {
                self.reply(hal, vf, &[first | NACK]);
            } else {
                self.state_mut(vf).counters.unanswered += 1;
                hal.write(r::p2v_mailbox(vf), p2v::ACK);
            };
        }
        let MailboxReply { echo, outcome } = self.decide(hal, vf, message);
        self.state_mut(vf).counters.count_outcome(outcome);
        let flag = if outcome.is_ok() { ACK } else { NACK };
        self.reply(hal, vf, &[echo | flag | CTS]);
    }

    /// Serves VF_RESET: restores the defaults, enables the queues, and returns the address in a reply without CTS.
    fn answer_reset<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) {
        self.restore_defaults(hal, vf);
        let state = self.state_mut(vf);
        state.clear_to_send = true;
        let mac = state.mac;
        state.counters.count_outcome(mac.map(|_| ()).ok_or(MailboxRefusal::NoAddress));
        self.apply_enable(hal, vf);
        let (low, high) = mac.unwrap_or_default().to_words();
        let flag = if mac.is_some() { ACK } else { NACK };
        self.reply(hal, vf, &[id::VF_RESET | flag, low, high]);
    }

    fn reply<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, words: &[u32]) {
        for (word, i) in words.iter().zip(0..) {
            hal.write(r::vmbmem(vf, i), *word);
        }
        hal.write(r::p2v_mailbox(vf), p2v::ACK | p2v::STS);
        self.state_mut(vf).reply_until = Some(hal.now() + REPLY_TIME);
    }

    /// Handles a VF's acknowledgement of the PF's last message. A VF that has not sent VF_RESET gets a NACK.
    pub(super) fn acknowledged<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) {
        hal.write(r::MBVFICR, vf.bit() << mbvficr::VFACK_SHIFT);
        self.state_mut(vf).reply_until = None;
        if vf.get() >= self.enabled || self.state(vf).clear_to_send || !self.may_nack(hal.now(), vf) {
            return;
        }
        if lock(hal, vf) {
            if has_request(hal, vf) {
                return unlock(hal, vf);
            }
            hal.write(r::vmbmem(vf, 0), NACK);
            hal.write(r::p2v_mailbox(vf), p2v::STS);
        }
    }

    fn may_nack(&mut self, now: Time, vf: VfIndex) -> bool {
        let state = self.state_mut(vf);
        let may = state.last_nack.is_none_or(|last| now.since(last) > NACK_INTERVAL);
        if may {
            state.last_nack = Some(now);
        }
        may
    }

    /// Counts a run of the PF driver in which the VF has kept its mailbox buffer locked while it waits for a reply.
    /// After too many, takes the buffer from the VF and drops its request.
    fn count_locked<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) {
        let state = self.state_mut(vf);
        state.locked += 1;
        if state.locked >= LOCK_PATIENCE {
            state.locked = 0;
            state.counters.dropped += 1;
            hal.write(r::p2v_mailbox(vf), p2v::RVFU);
            let events = vf.bit() << mbvficr::VFREQ_SHIFT | vf.bit() << mbvficr::VFACK_SHIFT;
            hal.write(r::MBVFICR, events);
        }
    }
}

/// Locks a VF's mailbox buffer for the PF. Returns false if the VF holds the buffer.
pub(super) fn lock<H: Hal>(hal: &mut H, vf: VfIndex) -> bool {
    hal.write(r::p2v_mailbox(vf), p2v::PFU);
    hal.read(r::p2v_mailbox(vf)) & p2v::PFU != 0
}

pub(super) fn unlock<H: Hal>(hal: &mut H, vf: VfIndex) {
    hal.write(r::p2v_mailbox(vf), 0);
}

/// Returns true if a request of the VF is pending.
pub(super) fn has_request<H: Hal>(hal: &mut H, vf: VfIndex) -> bool {
    hal.read(r::MBVFICR) & vf.bit() << mbvficr::VFREQ_SHIFT != 0
}
