//! The VF's end of the mailbox: locks the buffer, writes, rings, waits for the acknowledgement and for the reply,
//! reads it, acknowledges. Every wait is bounded.
//!
//! After a lost reply, replies no longer match messages, so no message is sent until the next reset, as in igbvf.
//! `requests` has the messages.

use crate::hal::Hal;
use core::time::Duration;
use i82576::bits::v2p;
use i82576::mailbox::{CTS, ID_MASK, NACK, id};
use i82576::register::vf;

/// Number of polls for a reply at the short interval [`QUICK`], and of polls for the mailbox lock.
const QUICK_POLLS: u32 = 50;
/// Short interval between two polls for a reply.
const QUICK: Duration = Duration::from_micros(20);
/// Number of polls for a reply at igbvf's interval [`PATIENT`], together one second.
const PATIENT_POLLS: u32 = 2_000;
/// Interval between two polls for a reply, as in igbvf.
const PATIENT: Duration = Duration::from_micros(500);
/// Maximum number of notices of the PF between a message and its reply.
const NOTICES: u32 = 4;

/// Reason why a message to the PF failed or was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MailboxError {
    /// Registers read as all ones: the function was removed.
    #[error("the virtual function does not respond on the bus: check that the device is present")]
    Gone,
    /// The PF's reply to an earlier message was lost.
    #[error("an earlier PF reply was lost: reset the VF before the next request")]
    Lost,
    /// The PF holds the VF's mailbox buffer.
    #[error("the PF keeps the mailbox locked: check that the PF driver runs")]
    Locked,
    /// The PF has not acknowledged the VF's message.
    #[error("the PF did not acknowledge mailbox message {0:#x}: check that the PF driver runs")]
    NotAcknowledged(u32),
    /// The PF has acknowledged the VF's message without a reply.
    #[error("the PF did not reply to mailbox message {0:#x}: check that the PF driver runs")]
    NoReply(u32),
    /// The VF lost the mailbox buffer while its driver read the PF's reply: by a reset, or to a PF that took it.
    #[error(
        "the VF lost the mailbox buffer while its driver read a PF reply, as by a reset: reset the VF, and repeat the request"
    )]
    LockLost,
    /// The PF refused the VF's message.
    #[error("the PF refused mailbox message {0:#x}")]
    Refused(u32),
    /// The PF's reply belongs to another message of the VF.
    #[error("unexpected PF reply {reply:#010x} to mailbox message {sent:#x}")]
    Unexpected {
        /// First dword of the message that the VF sent.
        sent: u32,
        /// First dword of the unexpected reply of the PF.
        reply: u32,
    },
}

/// State of the VF's end of the mailbox.
#[derive(Debug, Default)]
pub(super) struct VfMailbox {
    /// Clear-on-read bits of the VF's mailbox register that a read has returned and no caller has taken yet.
    seen: u32,
    /// True if a reply of the PF was lost, which stops all messages until a reset.
    lost: bool,
    /// True if the PF has sent a notice since the last `take_notice`.
    notified: bool,
}

impl VfMailbox {
    /// Clears the mailbox's state after a reset of the function.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Returns true if a reply of the PF was lost since the function's last reset.
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Returns true if a reset is in progress or was finished since the last call.
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

    /// Sends a message that the PF only grants or refuses, as [`VfMailbox::exchange`] does.
    pub(super) fn request<H: Hal>(&mut self, hal: &mut H, message: &[u32]) -> Result<(), MailboxError> {
        let mut reply = [0];
        self.exchange(hal, message, &mut reply)?;
        if reply[0] & NACK == 0 { Ok(()) } else { Err(MailboxError::Refused(message[0])) }
    }

    /// Returns the first dword in the mailbox buffer, which the PF or the VF has written, and acknowledges the PF's
    /// message.
    pub(super) fn peek<H: Hal>(&mut self, hal: &mut H) -> Result<u32, MailboxError> {
        let mut word = [0];
        self.read(hal, &mut word)?;
        Ok(word[0])
    }

    /// Returns true if the PF sent a notice beside its replies since the last call.
    pub(super) fn take_notice(&mut self) -> bool {
        core::mem::take(&mut self.notified)
    }

    fn check(&mut self, sent: u32, reply: u32) -> Result<(), MailboxError> {
        let same = sent & ID_MASK == reply & ID_MASK;
        // A refusal without the id or without CTS: the PF has lost this VF's state.
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
        // A reset clears the buffer and the lock: without the lock, the first dwords may be the reply's and the last ones 0.
        if self.status(hal)? & v2p::VFU == 0 {
            return Err(self.give_up(MailboxError::LockLost));
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

    /// Returns true if a mailbox register bit of `mask` is set, or was set in an earlier read and not taken
    /// yet. Takes the bits of `mask`.
    fn take<H: Hal>(&mut self, hal: &mut H, mask: u32) -> Result<bool, MailboxError> {
        let status = self.status(hal)?;
        self.seen &= !mask;
        Ok(status & mask != 0)
    }

    /// Reads the mailbox's control register, and keeps the bits that the read clears.
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
