//! Resets VFs as i40e does. The PF orders the reset, the card clears the VF's queues and mailbox, and the PF restores
//! default filters and reports the VF as active (VFGEN_RSTAT). The card keeps ARQLEN.ENABLE clear until the VF's driver
//! writes it, so that the driver can detect the reset.
//!
//! The card's part of a reset is not here.

use super::{AvfPf, CardControlHal, VfDriverStage};
use crate::hal::Hal;
use ::avf::bits::rstat;
use ::avf::control::{CardCommand, RssHashFunction};
use ::avf::ids::{HASH_KEY, LOOKUP_TABLE};
use ::avf::packet_type::HASH_TYPES;
use ::avf::pf_register as r;
use ::avf::virtchnl::reply::encode;
use ::avf::virtchnl::{VfCapabilities, VirtchnlEvent, VirtchnlOpcode, VirtchnlStatus, VirtchnlVersion};
use policy::Offence;

/// Returns the VFs that their guests have reset, a bit each. Returns none if the card is removed, which PF_ATQLEN shows
/// by all ones.
fn find_resets<H: Hal>(hal: &mut H) -> u64 {
    let [low, high] = [0, 1].map(|word| hal.read(r::GLGEN_VFLRSTAT + 4 * word));
    let gone = low & high == u32::MAX && hal.read(r::PF_ATQLEN) == u32::MAX;
    if gone { 0 } else { u64::from(low) | u64::from(high) << 32 }
}

impl AvfPf {
    /// Has the resets that the guests of these VFs (a bit each) have requested wait until a later call leaves the VF out.
    pub fn hold_resets(&mut self, vfs: u64) {
        self.unpaid = vfs;
    }

    /// Serves the resets that guests have requested of their VFs. Returns two sets of VFs, a bit each: those that were reset,
    /// and those whose reset waits for credit. Earlier messages of a reset VF are void at once. A throttled VF's reset stays
    /// pending until a request of it may be served.
    pub(super) fn serve_resets<H: CardControlHal>(&mut self, hal: &mut H) -> [u64; 2] {
        let (found, now) = (find_resets(hal), hal.now());
        let reset = |vf: &u8| found >> vf & 1 == 1;
        let (mut waiting, unpaid) = (0, found & self.unpaid);
        for vf in self.vfs().filter(reset) {
            self.cancel_requests(hal, vf);
            let due = unpaid >> vf & 1 == 0 && self.state_mut(vf).monitor.may_serve(now);
            waiting |= u64::from(!due) << vf;
        }
        let due = found & !waiting;
        for vf in self.vfs().filter(|vf| due >> vf & 1 == 1) {
            self.state_mut(vf).counters.resets += 1;
            self.reset_vf(hal, vf);
        }
        [due, unpaid]
    }

    /// Resets every VF after notifying its driver, which then starts the VF again.
    pub fn reset_all<H: CardControlHal>(&mut self, hal: &mut H) {
        self.vfs().for_each(|vf| self.reset_with_notice(hal, vf));
    }

    /// Notifies a VF's driver of a reset, and then resets the VF.
    pub(super) fn reset_with_notice<H: CardControlHal>(&mut self, hal: &mut H, vf: u8) {
        if self.state(vf).stage == VfDriverStage::Active {
            self.send(
                hal,
                vf,
                VirtchnlOpcode::Event.number(),
                VirtchnlStatus::Success,
                &encode(&VirtchnlEvent::ResetImpending),
            );
        }
        self.reset_now(hal, vf);
    }

    /// Resets a VF at once, without notice to its driver. Its earlier messages are void.
    pub(super) fn reset_now<H: CardControlHal>(&mut self, hal: &mut H, vf: u8) {
        let state = self.state_mut(vf);
        state.counters.resets += 1;
        // The PF caused the reset, or a message requested it, which is counted.
        state.monitor.excuse(Offence::Mailbox);
        self.reset_vf(hal, vf);
        self.cancel_requests(hal, vf);
    }

    /// Forgets the choices of a VF's guest that outlive a reset: address, queue pairs and virtchnl version. Call it when the
    /// guest's client has left, before the card reports the reset of the VF for its next owner.
    pub fn forget_guest(&mut self, vf: u8) {
        if let Some(state) = self.vfs.get_mut(usize::from(vf)) {
            (state.mac, state.pairs) = (state.decided.policy.mac, state.decided.pairs);
            state.version = VirtchnlVersion::V1_1;
            // The card has stopped the queues, of which the VF may have fewer from now on.
            (state.rx, state.tx) = (0, 0);
        }
    }

    /// Performs a VF's reset, and confirms to the card the reset that the VF's guest may have requested, as
    /// `i40e_trigger_vf_reset` does. The VF's virtchnl version and address are kept: drivers do not send them again.
    pub(super) fn reset_vf<H: CardControlHal>(&mut self, hal: &mut H, vf: u8) {
        let at = 4 * u32::from(vf);
        hal.write(r::GLGEN_VFLRSTAT + 4 * u32::from(vf / 32), 1 << (vf % 32));
        hal.write(r::VPGEN_VFRTRIG + at, r::VFSWR);
        self.restore_defaults(hal, vf);
        hal.write(r::VPGEN_VFRTRIG + at, 0);
        hal.write(r::VFGEN_RSTAT1 + at, rstat::ACTIVE);
    }

    /// Restores a VF's default settings after its reset.
    fn restore_defaults<H: CardControlHal>(&mut self, hal: &mut H, vf: u8) {
        let state = self.state_mut(vf);
        (state.stage, state.agreed) = (VfDriverStage::Reset, VfCapabilities::default());
        (state.rx, state.tx) = (0, 0);
        // Tags of descriptors are inserted unless the VF disables it: iavf does not request it again after a reset.
        (state.strip, state.insert) = (state.decided.policy.vlan.is_some(), true);
        let given =
            state.decided.policy.mac.filter(|_| state.decided.policy.admin_mac || state.mac.is_none());
        let mac = given.or(state.mac);
        state.mac = mac;
        let policy = state.decided.policy;
        // The card's reset has removed the VF's addresses and VLANs.
        self.state_mut(vf).addresses.clear();
        self.restore_default_vlan(hal, vf);
        if let Some(mac) = mac {
            self.add_address(hal, vf, mac);
        }
        hal.order(vf, CardCommand::Promiscuity { unicast: false, multicast: false });
        hal.order(vf, CardCommand::SpoofCheck(policy.spoofchk));
        self.apply_restraint(hal, vf);
        hal.order(vf, CardCommand::HashTypes(HASH_TYPES));
        hal.order(vf, CardCommand::HashFunction(RssHashFunction::Toeplitz));
        hal.order(vf, CardCommand::HashKey(&[0; HASH_KEY]));
        // Only queue 0, which every driver enables: iavf sets its key some milliseconds before its table.
        hal.order(vf, CardCommand::LookupTable(&[0; LOOKUP_TABLE]));
        self.apply_tags(hal, vf);
    }
}
