//! Adds VFs to VLANs by request. A VF is a member of the VLANs that it requested and its policy allows; denied ones are
//! withheld until the policy allows them, or the VF leaves them or is reset: Linux igbvf requests a VLAN once, and
//! treats a refusal as a grant.
//!
//! `policy` has the port VLAN, and `switch` the VLAN table.

use super::counters::MailboxRefusal;
use super::switch::update;
use super::{Pf, VfState};
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
    /// with the fewest VLANs comes first, and a quarantined VF waits for its release. Returns the number of look-ups in the
    /// shares, which grows by one for each VF and each joined VLAN, not for each withheld one.
    pub(super) fn retry_withheld<H: Hal>(&mut self, hal: &mut H) -> usize {
        let mut shares = self.shares(FilterKind::Vlan);
        let waits = |vf: &VfIndex| {
            let VfState { policy, withheld, monitor, .. } = self.state(*vf);
            policy.vlan.is_none() && !withheld.is_empty() && monitor.quarantined().is_none()
        };
        let mut waiting: Vec<VfIndex> = self.enabled_vfs().filter(waits).collect();
        waiting.sort_by_key(|vf| shares.used(*vf));
        let mut look_ups = 0;
        for vf in waiting {
            let policy = self.state(vf).policy;
            let allows = |vlan: &u16| policy.allows_vlan(*vlan);
            // The answer for a VLAN without members, which is the same for all of them.
            let mut admits_new = None;
            let withheld: Vec<u16> = self.state(vf).withheld.iter().copied().filter(allows).collect();
            for vlan in withheld {
                if !policy.quotas.vlan.permits_more(shares.used(vf).into()) {
                    break;
                }
                let members = self.vlans.members_of(vlan);
                let known = admits_new.filter(|_| members.is_empty());
                let admits = known.unwrap_or_else(|| {
                    look_ups += 1;
                    shares.admits(vf, policy.quotas.vlan, members)
                });
                admits_new = if members.is_empty() { Some(admits) } else { admits_new };
                // A refused VLAN is withheld again.
                if admits && self.join_vlan(hal, vf, vlan).is_ok() {
                    (shares, admits_new) = (self.shares(FilterKind::Vlan), None);
                }
            }
        }
        look_ups
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

    /// Applies a new policy to the VLANs that a VF joined under the `old` one. Withheld VLANs stay so: the caller tries them
    /// when the policies of all VFs are in force ([`Self::retry_withheld`]).
    pub(super) fn follow_vlan_policy<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, old: &VfPolicy) {
        let policy = self.state(vf).policy;
        let joined: Vec<u16> = self.vlans.of(vf).filter(|vlan| *vlan != 0 && old.vlan.is_none()).collect();
        if old.vlan != policy.vlan {
            self.apply_vlan(hal, vf);
        }
        for vlan in joined {
            if policy.vlan.is_none() && !policy.allows_vlan(vlan) {
                self.vlans.leave(hal, vf, vlan);
            }
            // A refused VLAN is withheld.
            let _ = self.join_vlan(hal, vf, vlan);
        }
    }

    /// Enables or disables the removal of tags from the VF's received frames.
    fn strip_tags<H: Hal>(&self, hal: &mut H, vf: VfIndex, on: bool) {
        update(hal, r::vmolr(vf.pool()), vmolr::STRVLAN, if on { vmolr::STRVLAN } else { 0 });
    }
}
