//! The restraint that the PF puts on a VF: a least time between two messages that the card takes from its mailbox, and
//! between two interrupts of a vector.
//! No reset of the VF takes it off. Left out: rates, which the plane keeps; and when a VF is held back, which the PF
//! decides.

use avf::control::Restraint;
use core::time::Duration;
use serde::{Deserialize, Serialize};
use units::Time;

/// The brake of a VF.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Brake {
    pub(crate) restraint: Restraint,
    /// Before then no mail is taken, while it is held back.
    mail_at: Time,
}

impl Brake {
    /// From when on the next descriptor may be taken, if not at once.
    pub(crate) fn mail_due(&self, now: Time) -> Option<Time> {
        (self.restraint.mail_us > 0 && self.mail_at > now).then_some(self.mail_at)
    }

    /// A descriptor was taken.
    pub(crate) fn took_mail(&mut self, now: Time) {
        self.mail_at = now + Duration::from_micros(self.restraint.mail_us.into());
    }

    /// The time between two interrupts of a vector.
    pub(crate) fn interrupt_interval(&self) -> Duration {
        Duration::from_micros(self.restraint.interrupt_us.into())
    }
}
