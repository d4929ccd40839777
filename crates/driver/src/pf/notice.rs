//! What the PF says of its own accord: PF_CONTROL, by which a VF is told to look at the link again. A notice
//! waits while a request or an unread reply is in the buffer, so that it never costs a VF an answer.
//!
//! Left out: showing the link itself, which is the card's (see the module above).

use super::mailbox::{asks, lock, unlock};
use super::{Pf, VfState};
use crate::hal::Hal;
use core::time::Duration;
use i82576::bits::p2v;
use i82576::mailbox::{CTS, id};
use i82576::register as r;
use i82576::{Time, VfIndex};
use policy::Link;

/// When to try again if a VF held the buffer: soon, and then ever less often, each time after as long as it has
/// taken so far. A guest that keeps the buffer, or has died with it, must not keep the port awake.
const RETRY: Duration = Duration::from_millis(1);
const LONGEST_RETRY: Duration = Duration::from_secs(1);

impl Pf {
    /// Whether a VF is shown a link.
    #[must_use]
    pub fn link_state(&self, vf: VfIndex) -> bool {
        self.link_override(vf).unwrap_or(self.wire_up)
    }

    /// What the card must present as a VF's STATUS.LU if that is not the port's. One that is removed or quarantined sees
    /// no link, whatever the administrator wishes.
    #[must_use]
    pub fn link_override(&self, vf: VfIndex) -> Option<bool> {
        match self.state(vf).policy.state {
            _ if self.removed || self.conduct(vf).quarantined().is_some() => Some(false),
            Link::Disable => Some(false),
            Link::Enable => Some(true),
            Link::Auto => (!self.port_up).then_some(false),
        }
    }

    /// The administrator's wish for one VF's link. Afterwards the card must be told [`Pf::link_override`].
    pub fn set_vf_link<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, link: Link) {
        if core::mem::replace(&mut self.state_mut(vf).policy.state, link) != link {
            self.notify(hal, vf);
        }
    }

    /// The administrator's wish for the whole port. Afterwards the card must be told every VF's
    /// [`Pf::link_override`].
    pub fn set_port_link<H: Hal>(&mut self, hal: &mut H, up: bool) {
        if core::mem::replace(&mut self.port_up, up) != up {
            self.notify_all(hal);
        }
    }

    /// Tells every VF to look at the link again, at once or at a later visit.
    pub fn notify_all<H: Hal>(&mut self, hal: &mut H) {
        self.mark_notices(hal.now());
        self.send_notices(hal);
    }

    /// Tells one VF to look at the link again, at once or at a later visit.
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
        let now = hal.now();
        let state = self.state(vf);
        if state.notice.is_none() || state.reply_until.is_some_and(|until| now < until) || !lock(hal, vf) {
            return;
        }
        if asks(hal, vf) {
            return unlock(hal, vf);
        }
        let known = if state.clear_to_send { CTS } else { 0 };
        hal.write(r::vmbmem(vf, 0), id::PF_CONTROL | known);
        hal.write(r::p2v_mailbox(vf), p2v::STS);
        let state = self.state_mut(vf);
        state.notice = None;
        state.counters.notices += 1;
    }

    /// When something that could not be done now can be tried again.
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
