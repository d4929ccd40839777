//! Sends PF_CONTROL notices, which make a VF check its link again. A notice waits while the mailbox buffer holds a
//! request or an unread reply, so that it never overwrites one.
//!
//! The card presents the link itself (see [`super`]).

use super::mailbox::{has_request, lock, unlock};
use super::{Pf, VfState};
use crate::hal::Hal;
use core::time::Duration;
use i82576::bits::p2v;
use i82576::mailbox::{CTS, id};
use i82576::register as r;
use i82576::{Time, VfIndex};
use policy::VfLinkPolicy;

/// First delay before the PF tries again to send a notice to a VF that held the mailbox buffer. The delay grows with
/// the notice's age, so that such a guest does not keep the port awake.
const RETRY: Duration = Duration::from_millis(1);
/// Longest delay before the PF tries again to send a notice.
const LONGEST_RETRY: Duration = Duration::from_secs(1);

impl Pf {
    /// Returns true if a VF sees the link as up.
    #[must_use]
    pub fn link_state(&self, vf: VfIndex) -> bool {
        self.link_override(vf).unwrap_or(self.wire_up)
    }

    /// Returns the card's STATUS.LU for a VF if it differs from the port's. A removed or quarantined VF sees no
    /// link, whatever its policy.
    #[must_use]
    pub fn link_override(&self, vf: VfIndex) -> Option<bool> {
        match self.state(vf).policy.state {
            _ if self.removed || self.conduct(vf).quarantined().is_some() => Some(false),
            VfLinkPolicy::Disable => Some(false),
            VfLinkPolicy::Enable => Some(true),
            VfLinkPolicy::Auto => (!self.port_up).then_some(false),
        }
    }

    /// Sets the link policy of one VF. Afterwards pass [`Pf::link_override`] to the card.
    pub fn set_vf_link<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, link: VfLinkPolicy) {
        if core::mem::replace(&mut self.state_mut(vf).policy.state, link) != link {
            self.notify(hal, vf);
        }
    }

    /// Sets the whole port up or down. Afterwards pass every VF's [`Pf::link_override`] to the card.
    pub fn set_port_link<H: Hal>(&mut self, hal: &mut H, up: bool) {
        if core::mem::replace(&mut self.port_up, up) != up {
            self.notify_all(hal);
        }
    }

    /// Notifies every VF to check its link, now or in a later run of the PF driver.
    pub fn notify_all<H: Hal>(&mut self, hal: &mut H) {
        self.mark_notices(hal.now());
        self.send_notices(hal);
    }

    /// Notifies one VF to check its link, now or in a later run of the PF driver.
    pub fn notify<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) {
        if vf.get() < self.enabled {
            let now = hal.now();
            self.state_mut(vf).notice.get_or_insert(now);
            self.send_notice(hal, vf);
        }
    }

    pub(super) fn mark_notices(&mut self, now: Time) {
        for vf in self.enabled_vfs() {
            self.state_mut(vf).notice.get_or_insert(now);
        }
    }

    pub(super) fn send_notices<H: Hal>(&mut self, hal: &mut H) {
        for vf in self.enabled_vfs() {
            self.send_notice(hal, vf);
        }
    }

    fn send_notice<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) {
        if u32::from(self.held) & vf.bit() != 0 {
            // A reset of the VF may wait, which drops its notices.
            return;
        }
        let now = hal.now();
        let state = self.state(vf);
        if state.notice.is_none() || state.reply_until.is_some_and(|until| now < until) || !lock(hal, vf) {
            return;
        }
        if has_request(hal, vf) {
            return unlock(hal, vf);
        }
        let known = if state.clear_to_send { CTS } else { 0 };
        hal.write(r::vmbmem(vf, 0), id::PF_CONTROL | known);
        hal.write(r::p2v_mailbox(vf), p2v::STS);
        let state = self.state_mut(vf);
        state.notice = None;
        state.counters.notices += 1;
    }

    /// Returns the time at which the PF can try again to send a delayed notice.
    pub(super) fn deadline(&self, now: Time) -> Option<Time> {
        let waiting =
            self.enabled_vfs().map(|vf| self.state(vf)).filter(|s| s.notice.is_some() || s.locked > 0);
        let retry = |s: &VfState| match s.notice {
            Some(since) if s.locked == 0 => now.since(since).clamp(RETRY, LONGEST_RETRY),
            _ => RETRY,
        };
        let next = |s: &VfState| s.reply_until.filter(|until| *until > now).unwrap_or(now + retry(s));
        let held = self.enabled_vfs().filter_map(|vf| self.state(vf).monitor.deadline(now));
        waiting.map(next).chain(held).min()
    }
}
