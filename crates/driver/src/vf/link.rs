//! Whether there is a link, decided as igbvf decides it.
//!
//! igbvf looks only when told to: after a mailbox interrupt, after it saw RSTI or RSTD, or after it lost an
//! answer. Then it wants STATUS.LU, and in the mailbox, read without asking whether anything new is there, a
//! word with CTS. A NACK without CTS means that the PF has forgotten the VF, which then resets itself, as it
//! does if the PF speaks again after a lost answer. Until all of that holds the link is down, and every
//! watchdog tick (2 s) looks again.
//!
//! One thing igbvf does not do: RSTI or RSTD while the function runs mean a reset that was not its own, so the
//! queues are gone, whatever the mailbox says.
//!
//! Left out: the timer.

use super::Vf;
use super::mailbox::MailboxError;
use crate::hal::{DmaHal, Hal};
use i82576::bits::status;
use i82576::mailbox::{CTS, NACK};
use i82576::register::vf;

/// Speed of the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speed {
    /// 10 Mb/s.
    Ten,
    /// 100 Mb/s.
    Hundred,
    /// 1 Gb/s.
    Thousand,
}

/// What a look at the link found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkCheck {
    /// Frames can move.
    Up(Speed),
    /// They cannot, for now.
    Down,
    /// The PF has lost track of this VF, or the VF of the PF: [`Vf::restart`].
    ResetNeeded,
    /// The function is not on the bus any more.
    Gone,
}

/// What is known about the link.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// Known good, until something says otherwise.
    settled: bool,
    /// Somebody else has reset the function.
    lost: bool,
}

impl Link {
    pub(super) fn look_again(&mut self) {
        self.settled = false;
    }

    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

impl Vf {
    /// Looks at the link, closely only if there is reason to. A function that was not started has none.
    pub fn check_link<H: Hal>(&mut self, hal: &mut H) -> LinkCheck {
        match self.mailbox.reset_seen(hal) {
            Err(_) => return LinkCheck::Gone,
            Ok(reset) => self.link.lost |= reset,
        }
        match (self.running, self.link.lost) {
            (false, _) => return LinkCheck::Down,
            (true, true) => return LinkCheck::ResetNeeded,
            (true, false) => {}
        }
        if self.mailbox.is_lost() || self.mailbox.take_notice() {
            self.link.look_again();
        }
        if self.link.settled { LinkCheck::Up(speed(hal.read(vf::STATUS))) } else { self.look(hal) }
    }

    fn look<H: Hal>(&mut self, hal: &mut H) -> LinkCheck {
        let port = hal.read(vf::STATUS);
        if port & status::LU == 0 {
            return LinkCheck::Down;
        }
        let word = match self.mailbox.peek(hal) {
            Ok(word) => word,
            Err(MailboxError::Gone) => return LinkCheck::Gone,
            // The PF is writing: look again at the next tick.
            Err(_) => return LinkCheck::Down,
        };
        if word & CTS == 0 {
            return if word & NACK == 0 { LinkCheck::Down } else { LinkCheck::ResetNeeded };
        }
        if self.mailbox.is_lost() {
            return LinkCheck::ResetNeeded;
        }
        self.link.settled = true;
        LinkCheck::Up(speed(port))
    }

    /// What igbvf does every two seconds: looks at the link, fetches statistics, re-tunes moderation and, in
    /// case an interrupt was lost, raises the receive interrupt by software.
    pub fn watchdog<H: DmaHal>(&mut self, hal: &mut H) -> LinkCheck {
        let check = self.check_link(hal);
        if matches!(check, LinkCheck::Up(_)) {
            self.statistics.update(hal);
        }
        if self.running && check != LinkCheck::Gone {
            self.moderate(hal);
            hal.write(vf::VTEICS, 1 << super::RECEIVE_VECTOR);
        }
        check
    }
}

fn speed(port: u32) -> Speed {
    match (port >> 6) & 3 {
        0 => Speed::Ten,
        1 => Speed::Hundred,
        _ => Speed::Thousand,
    }
}
