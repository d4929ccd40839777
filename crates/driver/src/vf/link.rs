//! Decides whether a VF's link is up, as Linux igbvf does.
//!
//! igbvf checks the link only on a trigger: after a mailbox interrupt, after it saw RSTI or RSTD, or after it lost
//! a reply. It then requires STATUS.LU, and a word with CTS in the mailbox, which it reads without checking for
//! news. A NACK without CTS means that the PF has forgotten the VF, which then resets itself, as it does if the PF
//! sends again after a lost reply. Until all of that holds the link is down, and every watchdog tick (2 s) checks
//! again.
//!
//! Unlike igbvf: RSTI or RSTD while the function runs mean that another party reset it, so the queues are gone,
//! whatever the mailbox holds.
//!
//! The owner provides the timer.

use super::Vf;
use super::mailbox::MailboxError;
use crate::hal::{DmaHal, Hal};
use i82576::bits::status;
use i82576::mailbox::{CTS, NACK};
use i82576::register::vf;

/// Link speed of the port that the VF belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortSpeed {
    /// Link speed of 10 Mb/s.
    Ten,
    /// Link speed of 100 Mb/s.
    Hundred,
    /// Link speed of 1 Gb/s.
    Thousand,
}

/// Result of a check of the VF's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VfLinkStatus {
    /// The VF's link is up, at this speed.
    Up(PortSpeed),
    /// The VF's link is down.
    Down,
    /// The PF has lost the VF's state, another party has reset the VF, or a reply of the PF was lost: call
    /// [`Vf::restart`].
    ResetNeeded,
    /// The function was removed from the bus.
    Gone,
}

/// State of the VF's link checks.
#[derive(Debug, Default)]
pub(super) struct LinkCheckState {
    /// True if the link was up at the last check and no event has required another check since.
    settled: bool,
    /// True if another party than this driver has reset the function.
    lost: bool,
}

impl LinkCheckState {
    pub(super) fn look_again(&mut self) {
        self.settled = false;
    }

    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

impl Vf {
    /// Returns the state of the VF's link. Reads the mailbox only after an interrupt or another trigger. Returns `Down`
    /// for a function that was not started.
    pub fn check_link<H: Hal>(&mut self, hal: &mut H) -> VfLinkStatus {
        match self.mailbox.reset_seen(hal) {
            Err(_) => return VfLinkStatus::Gone,
            Ok(reset) => self.link.lost |= reset,
        }
        match (self.running, self.link.lost) {
            (false, _) => return VfLinkStatus::Down,
            (true, true) => return VfLinkStatus::ResetNeeded,
            (true, false) => {}
        }
        if self.mailbox.is_lost() || self.mailbox.take_notice() {
            self.link.look_again();
        }
        if self.link.settled { VfLinkStatus::Up(speed(hal.read(vf::STATUS))) } else { self.read_link(hal) }
    }

    fn read_link<H: Hal>(&mut self, hal: &mut H) -> VfLinkStatus {
        let port = hal.read(vf::STATUS);
        if port & status::LU == 0 {
            return VfLinkStatus::Down;
        }
        let word = match self.mailbox.peek(hal) {
            Ok(word) => word,
            Err(MailboxError::Gone) => return VfLinkStatus::Gone,
            // The PF is writing: check again at the next tick.
            Err(_) => return VfLinkStatus::Down,
        };
        if word & CTS == 0 {
            return if word & NACK == 0 { VfLinkStatus::Down } else { VfLinkStatus::ResetNeeded };
        }
        if self.mailbox.is_lost() {
            return VfLinkStatus::ResetNeeded;
        }
        self.link.settled = true;
        VfLinkStatus::Up(speed(port))
    }

    /// Does igbvf's work of every two seconds: checks the link, reads statistics, adjusts moderation and, in case
    /// an interrupt was lost, raises the receive interrupt by software.
    pub fn watchdog<H: DmaHal>(&mut self, hal: &mut H) -> VfLinkStatus {
        let check = self.check_link(hal);
        if matches!(check, VfLinkStatus::Up(_)) {
            self.statistics.update(hal);
        }
        if self.running && check != VfLinkStatus::Gone {
            self.moderate(hal);
            hal.write(vf::VTEICS, 1 << super::RECEIVE_VECTOR);
        }
        check
    }
}

fn speed(port: u32) -> PortSpeed {
    match (port >> 6) & 3 {
        0 => PortSpeed::Ten,
        1 => PortSpeed::Hundred,
        _ => PortSpeed::Thousand,
    }
}
