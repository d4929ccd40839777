//! Applies the administrator's policy for a VF to registers. `messages` has the VF's requests.

use super::Pf;
use super::limits::LIMITS;
use super::switch::update;
use crate::hal::Hal;
use ::policy::{PolicyError, VfPolicy};
use i82576::bits::{dtxswc, rttbcnrc, vmolr, vmvir};
use i82576::ids::{LINK_SPEED, MAX_FRAME};
use i82576::register as r;
use i82576::{MacAddress, VfIndex};

/// Maximum frame length in bytes, with VLAN tag and frame check sequence (IEEE 802.3), of a VF that requested no
/// maximum.
const STANDARD_FRAME: u32 = 1522;

/// Greatest delay of a run of the PF driver, in milliseconds, for which every rate is still met. [`MOST_RATE_WINDOW`]
/// limits it to 8 at the link's speed; a longer delay loses credit.
const LATENESS_MS: u32 = 10;
/// Minimum credit of a rate limit in KB, as in Linux igb. Silicon never exceeds it.
const LEAST_RATE_WINDOW: u32 = 0x14;
/// Maximum credit of a rate limit in KB: the highest value of RTTBCNRM.
const MOST_RATE_WINDOW: u32 = 0x3ff;

impl Pf {
    /// Returns the policy of a VF.
    #[must_use]
    pub fn policy(&self, vf: VfIndex) -> &VfPolicy {
        &self.state(vf).policy
    }

    /// Sets the policy of a VF, enabled or not. Takes effect at once, except that a running guest gets a changed
    /// address only when it resets the VF. VFs lose the addresses that they may no longer have.
    ///
    /// # Errors
    /// [`PolicyError`]: nothing is changed.
    pub fn set_policy<H: Hal>(
        &mut self,
        hal: &mut H,
        vf: VfIndex,
        policy: VfPolicy,
    ) -> Result<(), PolicyError> {
        policy.check(&LIMITS)?;
        self.admit(vf, &policy, |_, _| false)?;
        let fits = self.check_guarantees(core::iter::once((vf, policy)));
        fits.map_err(|(_, error)| error)?;
        let before = self.policies();
        self.apply_policy(hal, vf, policy);
        self.revoke_addresses(hal, &before);
        self.retry_withheld(hal);
        self.follow_vlans(hal);
        Ok(())
    }

    /// Sets the policy of a VF, which has been checked and admitted before.
    pub(super) fn apply_policy<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, policy: VfPolicy) {
        let old = self.state(vf).policy;
        self.state_mut(vf).policy = policy;
        if vf.get() >= self.enabled {
            return;
        }
        self.apply_mac(hal, vf, &old);
        if (old.vlan, old.vlans) != (policy.vlan, policy.vlans) {
            self.follow_vlan_policy(hal, vf, &old);
        }
        if old.max_mtu != policy.max_mtu {
            self.apply_length(hal, vf, self.state(vf).asked_length);
        }
        if (old.allmulti, old.trust) != (policy.allmulti, policy.trust) {
            let state = self.state_mut(vf);
            state.all_multicast &= policy.allmulti;
            state.overflow &= policy.allmulti;
            self.apply_groups(hal, vf);
        }
        if old.rss != policy.rss {
            self.apply_scaling(hal, vf);
        }
        self.apply_spoof_check(hal, vf);
        self.apply_enable(hal, vf);
        self.apply_rate(hal, vf);
        if old.state != policy.state {
            self.notify(hal, vf);
        }
        self.follow_vlans(hal);
    }

    /// Checks that a VF can have a policy now, while the VFs for which `leaves` is true give up an address.
    pub(super) fn admit(
        &self,
        vf: VfIndex,
        policy: &VfPolicy,
        leaves: impl Fn(VfIndex, MacAddress) -> bool,
    ) -> Result<(), PolicyError> {
        let old = &self.state(vf).policy;
        // An unchanged address was granted before, even if a trusted VF uses it since.
        if let Some(mac) = policy.mac.filter(|_| old.mac != policy.mac)
            && let Some(owner) = self.owner_of(mac, vf, leaves)
        {
            return Err(PolicyError::MacInUse(mac, owner));
        }
        if policy.vlan.is_some_and(|vlan| !self.vlans.has_room(vf, vlan.id)) {
            return Err(PolicyError::NoVlanFilter);
        }
        Ok(())
    }

    /// Removes the VF from its own VLANs, and adds it to its port VLAN, or to VLAN 0 for untagged frames.
    pub(super) fn apply_vlan<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) {
        let vlan = self.state(vf).policy.vlan;
        self.vlans.leave_all(hal, vf);
        // Room was checked when the policy was set, and entry 0 always exists.
        let _ = self.vlans.join(hal, vf, vlan.map_or(0, |v| v.id));
        let insert = vlan.map_or(0, |vlan| vmvir::DEFAULT | u32::from(vlan.tag()));
        hal.write(r::vmvir(vf.pool()), insert);
        self.apply_pool(hal, vf, vlan);
    }

    /// Sets the longest frame that a VF receives: the requested length, limited by the policy, or else Ethernet's
    /// standard.
    pub(super) fn apply_length<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, asked: Option<u32>) {
        let state = self.state_mut(vf);
        state.asked_length = asked;
        let limited = state.policy.max_mtu.is_some();
        let longest = asked.unwrap_or(STANDARD_FRAME).min(state.policy.longest_frame(&LIMITS).into());
        let length = if asked.is_some() || limited { vmolr::LPE | longest } else { MAX_FRAME as u32 };
        let fixed = vmolr::STRCRC | vmolr::BAM;
        update(hal, r::vmolr(vf.pool()), vmolr::LPE | vmolr::RLPML_MASK, fixed | length);
    }

    pub(super) fn apply_spoof_check<H: Hal>(&self, hal: &mut H, vf: VfIndex) {
        let bits = vf.bit() << dtxswc::MAC_SPOOF_SHIFT | vf.bit() << dtxswc::VLAN_SPOOF_SHIFT;
        let others = hal.read(r::DTXSWC) & !bits;
        hal.write(r::DTXSWC, if self.state(vf).policy.spoofchk { others | bits } else { others });
    }

    pub(super) fn apply_rate<H: Hal>(&self, hal: &mut H, vf: VfIndex) {
        let fastest = VfIndex::all().map(|vf| self.rate(vf)).max().unwrap_or(0);
        hal.write(r::RTTDQSEL, vf.get().into());
        hal.write(r::RTTBCNRM, rate_window(fastest));
        hal.write(r::RTTBCNRC, rate_factor(self.rate(vf)));
    }

    /// Returns the VF's current transmit rate limit in Mb/s; 0 is no limit.
    fn rate(&self, vf: VfIndex) -> u32 {
        self.conduct(vf).rate(self.state(vf).policy.max_tx_rate)
    }

    /// Enables the queues of a VF if it may move frames and has sent VF_RESET; otherwise disables them.
    pub(super) fn apply_enable<H: Hal>(&self, hal: &mut H, vf: VfIndex) {
        let state = self.state(vf);
        let open = state.clear_to_send && state.policy.enabled && state.monitor.quarantined().is_none();
        for register in [r::VFTE, r::VFRE] {
            let others = hal.read(register) & !vf.bit();
            hal.write(register, if open { others | vf.bit() } else { others });
        }
    }
}

/// Returns the value of RTTBCNRM, which all VFs share, for the fastest rate limit of a VF in Mb/s.
fn rate_window(mbps: u32) -> u32 {
    (mbps * LATENESS_MS * 1_000 / 8).div_ceil(1_024).clamp(LEAST_RATE_WINDOW, MOST_RATE_WINDOW)
}

/// Returns the value of RTTBCNRC for a rate limit in Mb/s: the link's speed divided by it, with 14 binary places.
fn rate_factor(mbps: u32) -> u32 {
    match (LINK_SPEED << rttbcnrc::INTEGER_SHIFT).checked_div(mbps) {
        Some(factor) => rttbcnrc::RS_ENA | factor & rttbcnrc::FACTOR,
        None => 0,
    }
}
