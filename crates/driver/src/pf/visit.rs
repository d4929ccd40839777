//! Runs the PF driver once: handles the card's reports since the last run, resets first, then at most one request of
//! each VF, then pending notices. The number of VFs bounds the work of a run, whatever the VFs do.
//!
//! `messages` decides the requests.

use super::Pf;
use super::work::PfWork;
use crate::hal::Hal;
use i82576::bits::{icr, mbvficr, status};
use i82576::ids::MAX_VFS;
use i82576::register as r;
use i82576::{Time, VfIndex};
use units::WorkCost;

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
    /// Work for the VFs, which a host charges them for.
    pub work: PfWork,
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
        self.handle_resets(hal, &mut visit);
        self.handle_causes(hal, causes, &mut visit);
        for step in 0..MAX_VFS as u8 {
            let Some(vf) = VfIndex::new((self.turn + step) % MAX_VFS as u8) else { continue };
            self.handle_mailbox(hal, vf, events, &mut visit);
        }
        self.turn = (self.turn + 1) % MAX_VFS as u8;
        if self.vlans.is_changed() {
            let look_ups = self.retry_withheld(hal);
            visit.work.charge_look_ups(look_ups);
        }
        self.follow_vlans(hal);
        self.send_notices(hal);
        self.end_throttles(hal);
        self.moderate(hal);
        visit.deadline = self.deadline(hal.now());
        visit
    }

    /// Leaves the requests, acknowledgements and resets of these VFs (a bit each) to a later run, and serves those of all
    /// other VFs again.
    pub fn hold_requests(&mut self, vfs: u8) {
        self.held = vfs;
    }

    fn handle_mailbox<H: Hal>(
        &mut self,
        hal: &mut H,
        vf: VfIndex,
        events: u32,
        visit: &mut PfServiceResults,
    ) {
        let has = |shift: u32| events & vf.bit() << shift != 0;
        let [asks, acknowledges] = [mbvficr::VFREQ_SHIFT, mbvficr::VFACK_SHIFT].map(has);
        if (asks || acknowledges) && u32::from(self.held) & vf.bit() != 0 {
            visit.work.unpaid |= vf.bit() as u8;
            return;
        }
        if asks && self.state_mut(vf).monitor.may_serve(hal.now()) {
            let served = visit.work.measure(hal, vf, |hal| self.serve(hal, vf));
            if let Some(kind) = served {
                visit.served |= vf.bit() as u8;
                visit.work.charge(vf, kind.cost());
            }
        }
        if acknowledges {
            visit.work.measure(hal, vf, |hal| self.acknowledged(hal, vf));
        }
    }

    fn handle_resets<H: Hal>(&mut self, hal: &mut H, visit: &mut PfServiceResults) {
        let found = hal.read(r::VFLRE) & 0xff;
        visit.work.unpaid |= found as u8 & self.held;
        let resets = found & !u32::from(self.held);
        if resets == 0 {
            return;
        }
        hal.write(r::VFLRE, resets);
        let now = hal.now();
        for vf in VfIndex::all().filter(|vf| resets & vf.bit() != 0) {
            let state = self.state_mut(vf);
            state.counters.resets += 1;
            state.last_nack = Some(now);
            (state.notice, state.locked) = (None, 0);
            if vf.get() < self.enabled {
                self.continue_sampling(hal, vf);
                visit.work.charge(vf, WorkCost::SETUP);
                visit.work.measure(hal, vf, |hal| self.restore_defaults(hal, vf));
            }
        }
        visit.resets = resets as u8;
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
