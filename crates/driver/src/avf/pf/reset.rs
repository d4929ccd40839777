//! Resets of VFs, as i40e makes them: the card is told, forgets queues and mailbox, and says that it has; the VF gets its
//! filters as they were at the start; VFGEN_RSTAT says active. Nothing of it takes time, but a driver must be able to see
//! that ARQLEN.ENABLE is clear: the card keeps it so until the driver writes it.
//!
//! Left out: what the card forgets.

use super::{Card, Pf, Stage};
use crate::hal::Hal;
use ::avf::bits::rstat;
use ::avf::control::{HashFunction, Order};
use ::avf::ids::{HASH_KEY, LOOKUP_TABLE};
use ::avf::packet_type::HASH_TYPES;
use ::avf::pf_register as r;
use ::avf::virtchnl::reply::encode;
use ::avf::virtchnl::{Capabilities, Event, Op, Status};
use policy::Offence;

/// VFs that were reset by their guests, a bit each. A card that is gone says so of all, and has a queue that cannot be.
fn find_resets<H: Hal>(hal: &mut H) -> u64 {
    let [low, high] = [0, 1].map(|word| hal.read(r::GLGEN_VFLRSTAT + 4 * word));
    let gone = low & high == u32::MAX && hal.read(r::PF_ATQLEN) == u32::MAX;
    if gone { 0 } else { u64::from(low) | u64::from(high) << 32 }
}

/// Tells the card which of them were seen.
fn confirm_resets<H: Hal>(hal: &mut H, resets: u64) {
    for (word, bits) in [(0, resets as u32), (1, (resets >> 32) as u32)] {
        if bits != 0 {
            hal.write(r::GLGEN_VFLRSTAT + 4 * word, bits);
        }
    }
}

impl Pf {
    /// Sees to VFs that were reset by their guests; answers which. What such a VF has sent is void at once. One that is held
    /// back finds its reset in progress until a request of it may be served.
    pub(super) fn serve_resets<H: Card>(&mut self, hal: &mut H) -> u64 {
        let (found, now) = (find_resets(hal), hal.now());
        let reset = |vf: &u8| found >> vf & 1 == 1;
        let mut waiting = 0;
        for vf in self.vfs().filter(reset) {
            self.cancel_requests(hal, vf);
            let due = self.state_mut(vf).monitor.may_serve(now);
            waiting |= u64::from(!due) << vf;
        }
        let due = found & !waiting;
        confirm_resets(hal, due);
        for vf in self.vfs().filter(|vf| due >> vf & 1 == 1) {
            self.state_mut(vf).counters.resets += 1;
            self.reset_vf(hal, vf);
        }
        due
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
        let state = self.state_mut(vf);
        state.counters.resets += 1;
        // It is the PF's doing, or a message has asked for it, which is counted.
        state.monitor.excuse(Offence::Mailbox);
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
        (state.strip, state.insert) = (state.decided.policy.vlan.is_some(), true);
        let given =
            state.decided.policy.mac.filter(|_| state.decided.policy.admin_mac || state.mac.is_none());
        let mac = given.or(state.mac);
        state.mac = mac;
        let (pairs, policy) = (state.pairs, state.decided.policy);
        self.forget_addresses(hal, vf);
        self.forget_vlans(hal, vf);
        if let Some(mac) = mac {
            self.add_address(hal, vf, mac);
        }
        hal.order(vf, Order::Promiscuity { unicast: false, multicast: false });
        hal.order(vf, Order::SpoofCheck(policy.spoofchk));
        self.hold_back(hal, vf);
        hal.order(vf, Order::HashTypes(HASH_TYPES));
        hal.order(vf, Order::HashFunction(HashFunction::Toeplitz));
        hal.order(vf, Order::HashKey(&[0; HASH_KEY]));
        let table: [u8; LOOKUP_TABLE] = core::array::from_fn(|entry| (entry % usize::from(pairs)) as u8);
        hal.order(vf, Order::LookupTable(&table));
        self.apply_tags(hal, vf);
    }
}
