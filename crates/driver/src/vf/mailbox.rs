//! The VF's end of the mailbox: lock the buffer, write, ring, wait for the acknowledgement and for the reply,
//! read it, acknowledge. Every wait is bounded.
//!
//! One lost answer spoils the conversation, so after it nothing is said until the next reset, as in igbvf.
//! Left out: what the messages mean (`requests`).

use crate::hal::Hal;
use core::time::Duration;
use i82576::bits::v2p;
use i82576::mailbox::{CTS, ID_MASK, NACK, id};
use i82576::register::vf;

/// Polls of an answer at the quick pace, and of the lock.
const QUICK_POLLS: u32 = 50;
const QUICK: Duration = Duration::from_micros(20);
/// Polls of an answer at igbvf's pace: together a second.
const PATIENT_POLLS: u32 = 2_000;
const PATIENT: Duration = Duration::from_micros(500);
/// Notices of the PF that may come between a request and its reply.
const NOTICES: u32 = 4;

/// Why a message did not get through, or was not agreed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MailboxError {
    /// Registers read as all ones.
    #[error("the function does not answer on the bus")]
    Gone,
    /// An earlier answer never came.
    #[error("an earlier message got lost, the VF must be reset first")]
    Lost,
    /// The buffer could not be locked.
    #[error("the PF keeps the mailbox locked")]
    Locked,
    /// The PF has not taken the message.
    #[error("the PF did not acknowledge message {0:#x}")]
    NotAcknowledged(u32),
    /// The PF has taken the message and stayed silent.
    #[error("the PF did not reply to message {0:#x}")]
    NoReply(u32),
    /// The PF refused.
    #[error("the PF refused message {0:#x}")]
    Refused(u32),
    /// The reply belongs to something else.
    #[error("the PF answered {reply:#010x} to message {sent:#x}")]
    Unexpected {
        /// First dword of the message.
        sent: u32,
        /// First dword of the reply.
        reply: u32,
    },
}

/// The state of the VF's end.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    /// Clear-on-read bits that a read has brought along and nobody has asked for yet.
    seen: u32,
    /// An answer got lost.
    lost: bool,
    /// The PF has sent a notice since somebody asked.
    notified: bool,
}

impl Mailbox {
    /// Forgets everything: the function was just reset.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether an answer got lost since the last reset.
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Whether a reset is going on or was finished since the last call.
    pub(super) fn reset_seen<H: Hal>(&mut self, hal: &mut H) -> Result<bool, MailboxError> {
        self.take(hal, v2p::RSTI | v2p::RSTD)
    }

    /// Sends `message` and waits for the reply, whose first dwords go to `reply`. A refusal is a reply.
    pub(super) fn exchange<H: Hal>(
        &mut self,
        hal: &mut H,
        message: &[u32],
        reply: &mut [u32],
    ) -> Result<(), MailboxError> {
        let sent = message.first().copied().unwrap_or(0);
        if self.lost {
            return Err(MailboxError::Lost);
        }
        self.lock(hal)?;
        self.seen &= !(v2p::PFSTS | v2p::PFACK);
        write_words(hal, message);
        hal.write(vf::V2PMAILBOX, v2p::REQ);
        self.expect(hal, v2p::PFACK, MailboxError::NotAcknowledged(sent))?;
        for _ in 0..NOTICES {
            self.expect(hal, v2p::PFSTS, MailboxError::NoReply(sent))?;
            self.read(hal, reply)?;
            let first = reply.first().copied().unwrap_or(0);
            if first & ID_MASK != id::PF_CONTROL {
                return self.check(sent, first);
            }
            self.notified = true;
        }
        Err(self.give_up(MailboxError::NoReply(sent)))
    }

    /// As [`Mailbox::exchange`], for messages that are only agreed to or refused.
    pub(super) fn request<H: Hal>(&mut self, hal: &mut H, message: &[u32]) -> Result<(), MailboxError> {
        let mut reply = [0];
        self.exchange(hal, message, &mut reply)?;
        if reply[0] & NACK == 0 { Ok(()) } else { Err(MailboxError::Refused(message[0])) }
    }

    /// What the buffer holds now, whoever wrote it: its first dword. Acknowledges it to the PF.
    pub(super) fn peek<H: Hal>(&mut self, hal: &mut H) -> Result<u32, MailboxError> {
        let mut word = [0];
        self.read(hal, &mut word)?;
        Ok(word[0])
    }

    /// Whether the PF sent a notice beside its replies since the last call.
    pub(super) fn take_notice(&mut self) -> bool {
        core::mem::take(&mut self.notified)
    }

    fn check(&mut self, sent: u32, reply: u32) -> Result<(), MailboxError> {
        let same = sent & ID_MASK == reply & ID_MASK;
        // A refusal without the id or without CTS: the PF does not know this VF any more.
        let forgotten = reply & NACK != 0 && reply & CTS == 0 && reply & ID_MASK == 0;
        if same || forgotten { Ok(()) } else { Err(MailboxError::Unexpected { sent, reply }) }
    }

    fn lock<H: Hal>(&mut self, hal: &mut H) -> Result<(), MailboxError> {
        for _ in 0..QUICK_POLLS {
            hal.write(vf::V2PMAILBOX, v2p::VFU);
            if self.status(hal)? & v2p::VFU != 0 {
                return Ok(());
            }
            hal.wait(QUICK);
        }
        Err(MailboxError::Locked)
    }

    fn read<H: Hal>(&mut self, hal: &mut H, into: &mut [u32]) -> Result<(), MailboxError> {
        self.lock(hal)?;
        for (word, offset) in into.iter_mut().zip((vf::VMBMEM..).step_by(4)) {
            *word = hal.read(offset);
        }
        hal.write(vf::V2PMAILBOX, v2p::ACK);
        Ok(())
    }

    fn expect<H: Hal>(&mut self, hal: &mut H, bit: u32, otherwise: MailboxError) -> Result<(), MailboxError> {
        for poll in 0..QUICK_POLLS + PATIENT_POLLS {
            if self.take(hal, bit)? {
                return Ok(());
            }
            hal.wait(if poll < QUICK_POLLS { QUICK } else { PATIENT });
        }
        Err(self.give_up(otherwise))
    }

    fn give_up(&mut self, error: MailboxError) -> MailboxError {
        self.lost = true;
        error
    }

    /// Whether any bit of `mask` is or was set; forgets it.
    fn take<H: Hal>(&mut self, hal: &mut H, mask: u32) -> Result<bool, MailboxError> {
        let status = self.status(hal)?;
        self.seen &= !mask;
        Ok(status & mask != 0)
    }

    /// Reads the control register without losing what the read clears.
    fn status<H: Hal>(&mut self, hal: &mut H) -> Result<u32, MailboxError> {
        let value = hal.read(vf::V2PMAILBOX);
        if value == u32::MAX {
            return Err(MailboxError::Gone);
        }
        let status = value | self.seen;
        self.seen = status & v2p::READ_CLEARS;
        Ok(status)
    }
}

fn write_words<H: Hal>(hal: &mut H, words: &[u32]) {
    for (word, offset) in words.iter().zip((vf::VMBMEM..).step_by(4)) {
        hal.write(offset, *word);
    }
}

#[cfg(test)]
mod tests;
