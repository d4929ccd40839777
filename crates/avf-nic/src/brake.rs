//! Limits that the PF sets on a VF: the least time between two messages from its mailbox, and between two interrupts of
//! a vector. A reset of the VF does not lift these limits, so that a guest cannot escape them by a reset. The plane
//! keeps transmit rates, and the PF driver decides when to limit a VF.

use avf::control::MailboxAndInterruptLimits;
use core::time::Duration;
use serde::{Deserialize, Serialize};
use units::Time;

/// Limits on a VF's messages and interrupts, and the earliest time of the VF's next message.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename = "Brake")]
pub(crate) struct VfThrottle {
    pub(crate) restraint: MailboxAndInterruptLimits,
    /// Earliest time of the VF's next message while the PF limits the VF's messages.
    mail_at: Time,
}

impl VfThrottle {
    /// Returns the earliest time at which the card may take the VF's next mailbox descriptor, or `None` if it may take
    /// the descriptor now.
    pub(crate) fn mail_due(&self, now: Time) -> Option<Time> {
        (self.restraint.mail_us > 0 && self.mail_at > now).then_some(self.mail_at)
    }

    /// Delays the VF's next message, because a mailbox descriptor was taken at `now`.
    pub(crate) fn took_mail(&mut self, now: Time) {
        self.mail_at = now + Duration::from_micros(self.restraint.mail_us.into());
    }

    /// Returns the least time between two interrupts of each of the VF's vectors.
    pub(crate) fn interrupt_interval(&self) -> Duration {
        Duration::from_micros(self.restraint.interrupt_us.into())
    }
}
