//! Applies VLANs and tags of a VF, by i40e's rules, limited to the VLANs that the administrator allows. A VF is a
//! member of the VLANs that it requested and its policy allows. The others are withheld until the policy allows them,
//! the VF leaves them, or it is reset.
//!
//! Linux iavf requests all its VLANs in one message, and forgets all of them after an error. So a request for VLANs
//! that are not allowed succeeds, like i40e's reply beyond the quota, and the rest of it takes effect.
//!
//! The switch enforces the memberships.

use super::counters::VirtchnlRefusal;
use super::filters::quota;
use super::requests::{VirtchnlReply, VirtchnlResult};
use super::{AvfPf, CardControlHal};
use ::avf::control::{CardCommand, VlanTagHandling};
use ::avf::virtchnl::vlan_offload::support;
use ::avf::virtchnl::{MessageList, VfCapabilities, VlanFilter, VlanOffloadKind, VlanSetting};
use policy::{FilterKind, PortVlan};
use units::{LAST_VLAN, VlanIds};

const TPID: u16 = 0x8100;
/// Bits of a VLAN tag that hold the VLAN id (IEEE 802.1Q).
const ID: u16 = 0xfff;

impl AvfPf {
    /// Makes a VF, which the card has just reset, a member of its default VLAN alone: untagged frames, or the port VLAN.
    pub(super) fn restore_default_vlan<H: CardControlHal>(&mut self, hal: &mut H, vf: u8) {
        let state = self.state_mut(vf);
        (state.vlans, state.withheld) = (VlanIds::new(), VlanIds::new());
        let fixed = state.decided.policy.vlan.map_or(0, |vlan| vlan.id);
        self.add_vlan(hal, vf, fixed);
    }

    pub(super) fn change_vlans<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        vf: u8,
        on: bool,
        vlans: impl Iterator<Item = Result<u16, VirtchnlRefusal>> + Clone,
    ) -> VirtchnlResult {
        if on && self.state(vf).decided.policy.vlan.is_some() {
            return Err(VirtchnlRefusal::VlanFixed);
        }
        for vlan in vlans.clone() {
            if vlan? > LAST_VLAN {
                return Err(VirtchnlRefusal::VlanInvalid);
            }
        }
        if on { Ok(self.join(hal, vf, vlans)) } else { Ok(self.leave(hal, vf, vlans)) }
    }

    fn join<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        vf: u8,
        vlans: impl Iterator<Item = Result<u16, VirtchnlRefusal>>,
    ) -> VirtchnlReply {
        let mut answer = VirtchnlReply::Done;
        for vlan in vlans.flatten() {
            if let Err(refusal) = self.join_one(hal, vf, vlan) {
                answer = VirtchnlReply::Pretended(refusal);
            }
        }
        // Without V2 there is no other request that enables stripping.
        if !self.state(vf).has(VfCapabilities::VLAN_V2) {
            self.state_mut(vf).strip = true;
            self.apply_tags(hal, vf);
        }
        answer
    }

    /// Makes a VF a member of a VLAN that the VF requested. If the policy denies the VLAN, only remembers the request.
    fn join_one<H: CardControlHal>(&mut self, hal: &mut H, vf: u8, vlan: u16) -> Result<(), VirtchnlRefusal> {
        let state = self.state_mut(vf);
        if state.vlans.contains(vlan) {
            return Ok(());
        }
        state.withheld.remove(vlan);
        // VLAN 0, which every VF has, does not count.
        let most = usize::from(quota(&state.decided.policy, FilterKind::Vlan));
        if state.vlans.len() + state.withheld.len() > most {
            return Err(VirtchnlRefusal::TooManyVlans);
        }
        if vlan != 0 && !state.decided.policy.allows_vlan(vlan) {
            state.withheld.insert(vlan);
            return Err(VirtchnlRefusal::VlanNotAllowed);
        }
        self.add_vlan(hal, vf, vlan);
        Ok(())
    }

    fn leave<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        vf: u8,
        vlans: impl Iterator<Item = Result<u16, VirtchnlRefusal>>,
    ) -> VirtchnlReply {
        let fixed = self.state(vf).decided.policy.vlan.map_or(0, |vlan| vlan.id);
        for vlan in vlans.flatten().filter(|vlan| *vlan != fixed) {
            self.state_mut(vf).withheld.remove(vlan);
            self.remove_vlan(hal, vf, vlan);
        }
        VirtchnlReply::Done
    }

    /// Applies a VF's policy to the VLANs that the VF requested.
    pub(super) fn follow_vlan_policy<H: CardControlHal>(&mut self, hal: &mut H, vf: u8) {
        let state = self.state(vf);
        if state.decided.policy.vlan.is_some() {
            return;
        }
        let policy = state.decided.policy;
        let denied = state.vlans.iter().filter(|vlan| *vlan != 0 && !policy.allows_vlan(*vlan));
        let withheld = core::mem::take(&mut self.state_mut(vf).withheld);
        // The quota permitted all of them when the guest requested them. A smaller one takes nothing away.
        for vlan in denied.chain(withheld.iter()) {
            self.remove_vlan(hal, vf, vlan);
            if policy.allows_vlan(vlan) {
                self.add_vlan(hal, vf, vlan);
            } else {
                self.state_mut(vf).withheld.insert(vlan);
            }
        }
    }

    fn add_vlan<H: CardControlHal>(&mut self, hal: &mut H, vf: u8, vlan: u16) {
        self.state_mut(vf).vlans.insert(vlan);
        hal.order(vf, CardCommand::Vlan { vlan, on: true });
    }

    fn remove_vlan<H: CardControlHal>(&mut self, hal: &mut H, vf: u8, vlan: u16) {
        if self.state_mut(vf).vlans.remove(vlan) {
            hal.order(vf, CardCommand::Vlan { vlan, on: false });
        }
    }

    pub(super) fn change_vlan_filters<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        vf: u8,
        on: bool,
        list: MessageList<'_, VlanFilter>,
    ) -> VirtchnlResult {
        self.agreed(vf, VfCapabilities::VLAN_V2)?;
        let one_tag = |filter: VlanFilter| match (filter.outer.tpid, filter.inner.tpid) {
            (TPID, 0) => Ok(filter.outer.tci & ID),
            _ => Err(VirtchnlRefusal::VlanInvalid),
        };
        self.change_vlans(hal, vf, on, list.iter().map(one_tag))
    }

    /// Serves ENABLE_VLAN_STRIPPING and DISABLE_VLAN_STRIPPING. On a port VLAN they succeed without effect, as with
    /// i40e: VPP sends them without the capability.
    pub(super) fn set_stripping<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        vf: u8,
        on: bool,
    ) -> VirtchnlResult {
        if self.state(vf).decided.policy.vlan.is_some() {
            return Ok(VirtchnlReply::Done);
        }
        self.agreed(vf, VfCapabilities::VLAN)?;
        self.state_mut(vf).strip = on;
        self.apply_tags(hal, vf);
        Ok(VirtchnlReply::Done)
    }

    pub(super) fn set_vlan_offload<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        vf: u8,
        what: VlanOffloadKind,
        on: bool,
        setting: VlanSetting,
    ) -> VirtchnlResult {
        self.agreed(vf, VfCapabilities::VLAN_V2)?;
        let state = self.state_mut(vf);
        if state.decided.policy.vlan.is_some() {
            return Err(VirtchnlRefusal::VlanFixed);
        }
        if setting.outer != support::ETHERTYPE_8100 || setting.inner != 0 {
            return Err(VirtchnlRefusal::VlanInvalid);
        }
        match what {
            VlanOffloadKind::Strip => state.strip = on,
            VlanOffloadKind::Insert => state.insert = on,
        }
        self.apply_tags(hal, vf);
        Ok(VirtchnlReply::Done)
    }

    pub(super) fn apply_tags<H: CardControlHal>(&self, hal: &mut H, vf: u8) {
        let state = self.state(vf);
        let port_vlan = state.decided.policy.vlan.map(PortVlan::tag);
        let insert = port_vlan.is_none() && state.insert;
        hal.order(vf, CardCommand::Tags(VlanTagHandling { strip: state.strip, insert, port_vlan }));
    }
}
