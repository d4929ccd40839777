//! The PF's end of the mailbox: lock, take the request, answer. Acknowledgement and reply are one write, so
//! that the VF is interrupted once and finds both.
//!
//! A request is taken exactly once: its bit in MBVFICR is cleared under the lock, and if the bit is gone by
//! then the VF was reset and nothing is served.
//!
//! Left out: what to answer (`messages`).

use super::Pf;
use super::counters::{Kind, Refusal};
use super::messages::Answer;
use crate::hal::Hal;
use core::time::Duration;
use i82576::bits::{mbvficr, p2v};
use i82576::mailbox::{ACK, CTS, NACK, WORDS, id};
use i82576::register as r;
use i82576::{Time, VfIndex};

/// A VF that has not introduced itself is told so at most this often.
const NACK_INTERVAL: Duration = Duration::from_secs(2);
/// How long a reply stays safe from notices if the VF does not acknowledge it. igbvf never reads some replies,
/// and an emulated guest may take long over those it reads.
const REPLY_TIME: Duration = Duration::from_secs(1);
/// Visits that a VF may keep the buffer locked while it waits for an answer.
pub(super) const LOCK_PATIENCE: u8 = 10;

/// Whether a request was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Served {
    Yes,
    No,
}

impl Pf {
    /// Takes and answers the VF's request, if it can be had now.
    pub(super) fn serve<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) -> Served {
        if !lock(hal, vf) {
            self.count_locked(hal, vf);
            return Served::No;
        }
        self.state_mut(vf).locked = 0;
        let request = vf.bit() << mbvficr::VFREQ_SHIFT;
        if hal.read(r::MBVFICR) & request == 0 {
            unlock(hal, vf);
            return Served::No;
        }
        hal.write(r::MBVFICR, request);
        let mut message = [0; WORDS];
        for (word, i) in message.iter_mut().zip(0..) {
            *word = hal.read(r::vmbmem(vf, i));
        }
        self.respond(hal, vf, &message);
        Served::Yes
    }

    fn respond<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, message: &[u32; WORDS]) {
        let first = message[0];
        self.state_mut(vf).counters.count_message(Kind::of(first));
        if vf.get() >= self.enabled || first & (ACK | NACK) != 0 {
            // Nobody's VF, or an answer of ours that came back.
            self.state_mut(vf).counters.unanswered += 1;
            return hal.write(r::p2v_mailbox(vf), p2v::ACK);
        }
        if first == id::VF_RESET {
            return self.answer_reset(hal, vf);
        }
        if !self.state(vf).clear_to_send {
            self.state_mut(vf).counters.count_outcome(Err(Refusal::NotReady));
            return if self.may_nack(hal.now(), vf) {
                self.reply(hal, vf, &[first | NACK]);
            } else {
                self.state_mut(vf).counters.unanswered += 1;
                hal.write(r::p2v_mailbox(vf), p2v::ACK);
            };
        }
        let Answer { echo, outcome } = self.decide(hal, vf, message);
        self.state_mut(vf).counters.count_outcome(outcome);
        let flag = if outcome.is_ok() { ACK } else { NACK };
        self.reply(hal, vf, &[echo | flag | CTS]);
    }

    /// VF_RESET: back to the defaults, gates open, and the address in a reply without CTS.
    fn answer_reset<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) {
        self.restore_defaults(hal, vf);
        let state = self.state_mut(vf);
        state.clear_to_send = true;
        let mac = state.mac;
        state.counters.count_outcome(mac.map(|_| ()).ok_or(Refusal::NoAddress));
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

    /// The VF has read what the PF wrote. One that has not introduced itself is told so.
    pub(super) fn acknowledged<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) {
        hal.write(r::MBVFICR, vf.bit() << mbvficr::VFACK_SHIFT);
        self.state_mut(vf).reply_until = None;
        if vf.get() >= self.enabled || self.state(vf).clear_to_send || !self.may_nack(hal.now(), vf) {
            return;
        }
        if lock(hal, vf) {
            if asks(hal, vf) {
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

    /// The VF holds the buffer though it waits for an answer: in the end the buffer and the request are taken
    /// from it.
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

/// Takes the buffer; false if the VF has it.
pub(super) fn lock<H: Hal>(hal: &mut H, vf: VfIndex) -> bool {
    hal.write(r::p2v_mailbox(vf), p2v::PFU);
    hal.read(r::p2v_mailbox(vf)) & p2v::PFU != 0
}

pub(super) fn unlock<H: Hal>(hal: &mut H, vf: VfIndex) {
    hal.write(r::p2v_mailbox(vf), 0);
}

/// Whether a request of the VF waits.
pub(super) fn asks<H: Hal>(hal: &mut H, vf: VfIndex) -> bool {
    hal.read(r::MBVFICR) & vf.bit() << mbvficr::VFREQ_SHIFT != 0
}
