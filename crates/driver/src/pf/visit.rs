//! A visit: what the card reports since the last one, resets first, then at most one request of each VF, then
//! what is owed to them. The work of a visit is bounded by the number of VFs, whatever they do.
//!
//! Left out: what a request means (`messages`).

use super::Pf;
use super::mailbox::Served;
use crate::hal::Hal;
use i82576::bits::{icr, mbvficr, status};
use i82576::ids::MAX_VFS;
use i82576::register as r;
use i82576::{Time, VfIndex};

/// What a visit did. VFs are given as bit masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Visit {
    /// VFs that had a request served; each has one at most.
    pub served: u8,
    /// VFs that were reset.
    pub resets: u8,
    /// VFs that had frames blocked as spoofed.
    pub spoofed: u8,
    /// The port's link has changed: [`Pf::link_state`] of every VF is to be shown again.
    pub link_changed: bool,
    /// When to come again though nothing new happens.
    pub deadline: Option<Time>,
}

impl Pf {
    /// Looks after the VFs. To be called when the card reports VMMB, DOUTSYNC or LSC, or regularly; a VF's
    /// request waits for at most one visit.
    pub fn visit<H: Hal>(&mut self, hal: &mut H) -> Visit {
        let mut visit = Visit::default();
        let causes = hal.read(r::ICR);
        // Requests before resets: a request that is seen here and came after a reset finds the reset below.
        let events = hal.read(r::MBVFICR);
        if causes == u32::MAX || events == u32::MAX {
            return visit;
        }
        visit.resets = self.handle_resets(hal);
        self.handle_causes(hal, causes, &mut visit);
        for step in 0..MAX_VFS as u8 {
            let Some(vf) = VfIndex::new((self.turn + step) % MAX_VFS as u8) else { continue };
            let asks = events & vf.bit() << mbvficr::VFREQ_SHIFT != 0;
            if asks && self.state_mut(vf).monitor.may_serve(hal.now()) && self.serve(hal, vf) == Served::Yes {
                visit.served |= vf.bit() as u8;
            }
            if events & vf.bit() << mbvficr::VFACK_SHIFT != 0 {
                self.acknowledged(hal, vf);
            }
        }
        self.turn = (self.turn + 1) % MAX_VFS as u8;
        self.follow_vlans(hal);
        self.send_notices(hal);
        self.forgive(hal);
        self.moderate(hal);
        visit.deadline = self.deadline(hal.now());
        visit
    }

    fn handle_resets<H: Hal>(&mut self, hal: &mut H) -> u8 {
        let resets = hal.read(r::VFLRE) & 0xff;
        if resets == 0 {
            return 0;
        }
        hal.write(r::VFLRE, resets);
        let now = hal.now();
        for vf in VfIndex::all().filter(|vf| resets & vf.bit() != 0) {
            let state = self.state_mut(vf);
            state.counters.resets += 1;
            state.last_nack = Some(now);
            (state.notice, state.locked) = (None, 0);
            if vf.get() < self.enabled {
                self.restore_defaults(hal, vf);
            }
        }
        resets as u8
    }

    fn handle_causes<H: Hal>(&mut self, hal: &mut H, causes: u32, visit: &mut Visit) {
        self.count_storm(hal, causes);
        if causes & icr::LSC != 0 {
            let up = hal.read(r::STATUS) & status::LU != 0;
            visit.link_changed = core::mem::replace(&mut self.wire_up, up) != up;
        }
        if visit.link_changed {
            self.mark_notices(hal.now());
        }
        if causes & icr::DOUTSYNC != 0 {
            let queues = hal.read(r::WVBR);
            visit.spoofed = (queues | queues >> 8) as u8;
            for vf in VfIndex::all().filter(|vf| u32::from(visit.spoofed) & vf.bit() != 0) {
                self.state_mut(vf).counters.spoofed += 1;
            }
        }
    }
}
