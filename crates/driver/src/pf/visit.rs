//! Runs the PF driver once: handles the card's reports since the last run, resets first, then at most one request of
//! each VF, then pending notices. The number of VFs bounds the work of a run, whatever the VFs do.
//!
//! `messages` decides the requests.

use super::Pf;
use super::mailbox::MailboxServiceResult;
use crate::hal::Hal;
use i82576::bits::{icr, mbvficr, status};
use i82576::ids::MAX_VFS;
use i82576::register as r;
use i82576::{Time, VfIndex};

/// Results of one run of the PF driver. VFs are given as bit masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PfServiceResults {
    /// VFs whose request was served in the run, at most one each.
    pub served: u8,
    /// VFs that were reset since the last run of the PF driver, a bit each.
    pub resets: u8,
    /// VFs with frames blocked for a forged source.
    pub spoofed: u8,
    /// True if the port's link has changed: pass [`Pf::link_override`] of every VF to the card again.
    pub link_changed: bool,
    /// Latest time of the next run of the PF driver, if the card reports nothing before.
    pub deadline: Option<Time>,
}

impl Pf {
    /// Serves the pending mailbox requests and resets of the VFs. Call it when the card reports VMMB, DOUTSYNC or LSC,
    /// or regularly. Each call serves at most one request of each VF.
    pub fn visit<H: Hal>(&mut self, hal: &mut H) -> PfServiceResults {
        let mut visit = PfServiceResults::default();
        let causes = hal.read(r::ICR);
        // Requests are read before resets: the reset that precedes a request read here is found below.
        let events = hal.read(r::MBVFICR);
        if causes == u32::MAX || events == u32::MAX {
            return visit;
        }
        visit.resets = self.handle_resets(hal);
        self.handle_causes(hal, causes, &mut visit);
        for step in 0..MAX_VFS as u8 {
            let Some(vf) = VfIndex::new((self.turn + step) % MAX_VFS as u8) else { continue };
            let asks = events & vf.bit() << mbvficr::VFREQ_SHIFT != 0;
            if asks
                && self.state_mut(vf).monitor.may_serve(hal.now())
                && self.serve(hal, vf) == MailboxServiceResult::Yes
            {
                visit.served |= vf.bit() as u8;
            }
            if events & vf.bit() << mbvficr::VFACK_SHIFT != 0 {
                self.acknowledged(hal, vf);
            }
        }
        self.turn = (self.turn + 1) % MAX_VFS as u8;
        if self.vlans.is_changed() {
            self.retry_withheld(hal);
        }
        self.follow_vlans(hal);
        self.send_notices(hal);
        self.end_throttles(hal);
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

    fn handle_causes<H: Hal>(&mut self, hal: &mut H, causes: u32, visit: &mut PfServiceResults) {
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
