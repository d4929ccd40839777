//! Adds VFs to VLANs by request. A VF is a member of the VLANs that it requested and its policy allows; denied ones are
//! withheld until the policy allows them, or the VF leaves them or is reset: Linux igbvf requests a VLAN once, and
//! treats a refusal as a grant.
//!
//! `policy` has the port VLAN, and `switch` the VLAN table.

use super::Pf;
use super::counters::MailboxRefusal;
use super::switch::update;
use crate::hal::Hal;
use alloc::vec::Vec;
use i82576::VfIndex;
use i82576::bits::vmolr;
use i82576::ids::VLAN_FILTERS;
use i82576::register as r;
use policy::{FilterKind, PortVlan, VfPolicy};

impl Pf {
    /// Serves a VF's SET_VLAN request. No VF can leave VLAN 0: every VF receives untagged frames.
    pub(super) fn set_vlan<H: Hal>(
        &mut self,
        hal: &mut H,
        vf: VfIndex,
        join: bool,
        vlan: u16,
    ) -> Result<(), MailboxRefusal> {
        if join {
            return self.join_vlan(hal, vf, vlan);
        }
        self.state_mut(vf).withheld.retain(|withheld| *withheld != vlan);
        if self.state(vf).policy.vlan.is_some() {
            return Err(MailboxRefusal::VlanFixed);
        }
        if vlan != 0 {
            self.vlans.leave(hal, vf, vlan);
            self.strip_tags(hal, vf, true);
        }
        Ok(())
    }

    /// Makes a VF a member of a VLAN that the VF requested. If the VF cannot join the VLAN now, only remembers the
    /// request.
    fn join_vlan<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, vlan: u16) -> Result<(), MailboxRefusal> {
        let policy = self.state(vf).policy;
        let joined = match policy.vlan {
            Some(_) => Err(MailboxRefusal::VlanFixed),
            None if !policy.allows_vlan(vlan) => Err(MailboxRefusal::VlanNotAllowed),
            None => self.add_vlan(hal, vf, vlan),
        };
        let withheld = &mut self.state_mut(vf).withheld;
        withheld.retain(|withheld| *withheld != vlan);
        match joined {
            Ok(()) => self.strip_tags(hal, vf, vlan != 0),
            Err(_) if vlan != 0 && withheld.len() < VLAN_FILTERS => withheld.push(vlan),
            Err(_) => {}
        }
        joined
    }

    /// Makes a VF a member of a VLAN, if the VF's quota and the guarantees of the other VFs leave a filter for it.
    fn add_vlan<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, vlan: u16) -> Result<(), MailboxRefusal> {
        let (members, quota) = (self.vlans.members_of(vlan), self.state(vf).policy.quotas.vlan);
        let needs_share = vlan != 0 && !members.has(vf.into());
        if needs_share && !self.shares(FilterKind::Vlan).admits(vf, quota, members) {
            return Err(MailboxRefusal::NoVlanFilter);
        }
        self.vlans.join(hal, vf, vlan)
    }

    /// Makes VFs members of VLANs that they requested while no filter was left for them, until none is left again. The VF
    /// with the fewest VLANs comes first.
    pub(super) fn retry_withheld<H: Hal>(&mut self, hal: &mut H) {
        let mut shares = self.shares(FilterKind::Vlan);
        let waits =
            |vf: &VfIndex| self.state(*vf).policy.vlan.is_none() && !self.state(*vf).withheld.is_empty();
        let mut waiting: Vec<VfIndex> = self.enabled_vfs().filter(waits).collect();
        waiting.sort_by_key(|vf| shares.used(*vf));
        for vf in waiting {
            let policy = self.state(vf).policy;
            for vlan in self.state(vf).withheld.clone() {
                let admits = shares.admits(vf, policy.quotas.vlan, self.vlans.members_of(vlan));
                // A refused VLAN is withheld again.
                if admits && policy.allows_vlan(vlan) && self.join_vlan(hal, vf, vlan).is_ok() {
                    shares = self.shares(FilterKind::Vlan);
                }
            }
        }
    }

    /// Removes a VF from its VLANs if its port VLAN is to change. Remembers the VLANs that the VF requested.
    pub(super) fn give_up_vlans<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, next: Option<PortVlan>) {
        let old = self.state(vf).policy.vlan;
        if old == next || vf.get() >= self.enabled {
            return;
        }
        if old.is_none() {
            let own: Vec<u16> = self.vlans.of(vf).filter(|vlan| *vlan != 0).collect();
            let withheld = &mut self.state_mut(vf).withheld;
            withheld.extend(own.into_iter().take(VLAN_FILTERS.saturating_sub(withheld.len())));
        }
        self.vlans.leave_all(hal, vf);
    }

    /// Applies a new policy to the VLANs that a VF requested under the `old` one.
    pub(super) fn follow_vlan_policy<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, old: &VfPolicy) {
        let policy = self.state(vf).policy;
        let own = self.vlans.of(vf).filter(|vlan| *vlan != 0 && old.vlan.is_none());
        let asked: Vec<u16> = own.chain(self.state(vf).withheld.iter().copied()).collect();
        if old.vlan != policy.vlan {
            self.apply_vlan(hal, vf);
        }
        for vlan in asked {
            if policy.vlan.is_none() && !policy.allows_vlan(vlan) {
                self.vlans.leave(hal, vf, vlan);
            }
            // A refused VLAN is withheld again.
            let _ = self.join_vlan(hal, vf, vlan);
        }
    }

    /// Enables or disables the removal of tags from the VF's received frames.
    fn strip_tags<H: Hal>(&self, hal: &mut H, vf: VfIndex, on: bool) {
        update(hal, r::vmolr(vf.pool()), vmolr::STRVLAN, if on { vmolr::STRVLAN } else { 0 });
    }
}
