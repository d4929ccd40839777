//! Resets of VFs, as i40e makes them: the card is told, forgets queues and mailbox, and says that it has; the VF gets its
//! filters as they were at the start; VFGEN_RSTAT says active. Nothing of it takes time, but a driver must be able to see
//! that ARQLEN.ENABLE is clear: the card keeps it so until the driver writes it.
//!
//! Left out: what the card forgets.

use super::{Card, Pf, Stage};
use ::avf::bits::rstat;
use ::avf::control::HashFunction;
use ::avf::ids::{HASH_KEY, LOOKUP_TABLE};
use ::avf::packet_type::HASH_TYPES;
use ::avf::pf_register as r;
use ::avf::virtchnl::reply::encode;
use ::avf::virtchnl::{Capabilities, Event, Op, Status};

/// Words of registers that say which VFs were reset.
const WORDS: u32 = 2;

impl Pf {
    /// VFs that were reset by their guests; the card is told that this was seen.
    pub(super) fn find_resets<H: Card>(&mut self, hal: &mut H) -> u64 {
        let mut resets = 0;
        for word in 0..WORDS {
            let bits = hal.read(r::GLGEN_VFLRSTAT + 4 * word);
            if bits != 0 && bits != u32::MAX {
                hal.write(r::GLGEN_VFLRSTAT + 4 * word, bits);
                resets |= u64::from(bits) << (32 * word);
            }
        }
        resets
    }

    /// Resets every VF. Drivers are told before, and start anew.
    pub fn reset_all<H: Card>(&mut self, hal: &mut H) {
        self.vfs().for_each(|vf| self.reset_with_notice(hal, vf));
    }

    /// A reset that the VF has not asked for: its driver is told before.
    pub(super) fn reset_with_notice<H: Card>(&mut self, hal: &mut H, vf: u8) {
        if self.state(vf).stage == Stage::Active {
            self.send(hal, vf, Op::Event.number(), Status::Success, &encode(&Event::ResetImpending));
        }
        self.reset_now(hal, vf);
    }

    /// A reset: what the VF has sent so far is void.
    pub(super) fn reset_now<H: Card>(&mut self, hal: &mut H, vf: u8) {
        self.state_mut(vf).counters.resets += 1;
        self.reset_vf(hal, vf);
        self.cancel_requests(hal, vf);
    }

    /// The reset itself. Version and address outlive it: drivers do not say them again.
    pub(super) fn reset_vf<H: Card>(&mut self, hal: &mut H, vf: u8) {
        let at = 4 * u32::from(vf);
        hal.write(r::VPGEN_VFRTRIG + at, r::VFSWR);
        self.restore_defaults(hal, vf);
        hal.write(r::VPGEN_VFRTRIG + at, 0);
        hal.write(r::VFGEN_RSTAT1 + at, rstat::ACTIVE);
    }

    /// What a VF starts with.
    fn restore_defaults<H: Card>(&mut self, hal: &mut H, vf: u8) {
        let state = self.state_mut(vf);
        (state.stage, state.agreed) = (Stage::Reset, Capabilities::default());
        (state.rx, state.tx) = (0, 0);
        // Tags of descriptors are put in until the VF wants otherwise: iavf does not ask anew after a reset.
        (state.strip, state.insert) = (state.policy.vlan.is_some(), true);
        let given = state.policy.mac.filter(|_| state.policy.admin_mac || state.mac.is_none());
        let mac = given.or(state.mac);
        state.mac = mac;
        let (pairs, policy) = (state.pairs, state.policy);
        self.forget_filters(hal, vf);
        if let Some(mac) = mac {
            self.add_address(hal, vf, mac);
        }
        hal.promiscuity(vf, false, false);
        hal.spoof_check(vf, policy.spoofchk);
        hal.rate(vf, policy.max_tx_rate);
        hal.hash_types(vf, HASH_TYPES);
        hal.hash_function(vf, HashFunction::Toeplitz);
        hal.hash_key(vf, &[0; HASH_KEY]);
        let table: [u8; LOOKUP_TABLE] = core::array::from_fn(|entry| (entry % usize::from(pairs)) as u8);
        hal.lookup_table(vf, &table);
        self.apply_tags(hal, vf);
    }
}
