//! Owners of MAC addresses: which VF may use an address, and which addresses a VF loses with a change of policies.
//!
//! A change takes effect without a reset of the VF. A VF with an administrator's address and without trust then has that
//! address alone. Another VF whose `trust` or `share_mac` ends loses the addresses of others, and keeps the rest.

use super::Pf;
use super::counters::MailboxRefusal;
use crate::hal::Hal;
use ::policy::{AddressOwner, VfPolicy};
use alloc::vec::Vec;
use i82576::ids::MAX_VFS;
use i82576::{MacAddress, VfIndex};

impl Pf {
    /// Returns the function, other than this VF, that keeps an address from the VF: it receives by the address now or will
    /// after a reset, and `leaves` is not true for it.
    pub(super) fn owner_of(
        &self,
        mac: MacAddress,
        other_than: VfIndex,
        leaves: impl Fn(VfIndex, MacAddress) -> bool,
    ) -> Option<AddressOwner> {
        if mac == self.mac {
            return Some(AddressOwner::Port);
        }
        let owner = self.owners(mac, other_than).find(|owner| !leaves(*owner, mac));
        owner.map(|vf| AddressOwner::Vf(vf.into()))
    }

    /// Returns true if a VF no longer has an address once its policy is `next`: the address is not among those that the VF
    /// added, and its policy's address changes, or the VF may have the administrator's alone.
    pub(super) fn gives_up(&self, vf: VfIndex, mac: MacAddress, next: &VfPolicy) -> bool {
        let is_replaced =
            self.state(vf).policy.mac != next.mac && self.filters.added(vf).all(|had| had != mac);
        next.mac != Some(mac) && (next.has_fixed_mac() || is_replaced)
    }

    /// Returns the VFs, except `other_than`, that have a MAC address in use or in their policy.
    fn owners(&self, mac: MacAddress, other_than: VfIndex) -> impl Iterator<Item = VfIndex> {
        VfIndex::all().filter(move |vf| *vf != other_than && self.has_mac(*vf, mac))
    }

    /// Returns true if a VF has a MAC address in use or in its policy.
    fn has_mac(&self, vf: VfIndex, mac: MacAddress) -> bool {
        self.filters.has(vf, mac) || self.state(vf).policy.mac == Some(mac)
    }

    /// Checks that a VF may receive by an address that other functions may have. A trusted VF may use any address, and
    /// all VFs may use a virtual router's.
    pub(super) fn may_use(&self, vf: VfIndex, mac: MacAddress) -> Result<(), MailboxRefusal> {
        let VfPolicy { trust, share_mac, .. } = self.state(vf).policy;
        let shares = |owner| share_mac && self.state(owner).policy.share_mac;
        let free = || mac != self.mac && (mac.is_virtual_router() || self.owners(mac, vf).all(shares));
        if trust || free() { Ok(()) } else { Err(MailboxRefusal::AddressInUse) }
    }

    /// Removes a VF's addresses that its `next` policy takes away, so that other VFs can get them.
    pub(super) fn give_up_addresses<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, next: &VfPolicy) {
        let is_enabled = vf.get() < self.enabled;
        if is_enabled && next.has_fixed_mac() {
            self.filters.clear_added(hal, vf);
        }
        if self.state(vf).policy.mac == next.mac {
            return;
        }
        self.state_mut(vf).policy.mac = None;
        if is_enabled {
            self.use_mac(hal, vf, None);
        }
    }

    /// Applies the address of a VF's policy to the VF, if it is not the `old` one's.
    pub(super) fn apply_mac<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, old: &VfPolicy) {
        let state = self.state(vf);
        let VfPolicy { mac, admin_mac, .. } = state.policy;
        let is_fixed = state.policy.has_fixed_mac();
        if (old.mac, old.admin_mac) != (mac, admin_mac) || is_fixed && state.mac != mac {
            self.use_mac(hal, vf, mac);
        }
        if is_fixed {
            self.filters.clear_added(hal, vf);
        }
    }

    /// Returns the policies of all VFs.
    pub(super) fn policies(&self) -> [VfPolicy; MAX_VFS] {
        core::array::from_fn(|vf| self.vfs[vf].policy)
    }

    /// Removes the addresses to which VFs have lost the right, since they had the policies `before`. The policies of all VFs
    /// must be in force.
    ///
    /// Of several VFs that lose the right to share an address, the last one keeps it, unless it is of another one's policy.
    pub(super) fn revoke_addresses<H: Hal>(&mut self, hal: &mut H, before: &[VfPolicy; MAX_VFS]) {
        let is_unshared =
            |pf: &Self, vf: VfIndex| before[vf.index()].share_mac && !pf.state(vf).policy.share_mac;
        for vf in self.enabled_vfs() {
            let is_distrusted = before[vf.index()].trust && !self.state(vf).policy.trust;
            if is_distrusted || is_unshared(self, vf) {
                let used = self.addresses_of_others(hal, vf);
                self.drop_addresses(hal, vf, |pf, mac| used.contains(&mac) || pf.may_use(vf, mac).is_err());
            }
        }
        // The others have shared the addresses of these VFs, as these have shared theirs.
        let unshared: Vec<_> = VfIndex::all().filter(|vf| is_unshared(self, *vf)).collect();
        for vf in self.enabled_vfs() {
            let VfPolicy { trust, share_mac, .. } = self.state(vf).policy;
            if share_mac && !trust {
                // What else these VFs have now, they have by their own right.
                self.drop_addresses(hal, vf, |pf, mac| {
                    !mac.is_virtual_router()
                        && unshared.iter().any(|owner| pf.state(*owner).policy.mac == Some(mac))
                });
            }
        }
    }

    /// Returns the addresses of a VF that stations, the host or other ports use too, if the VF has no right to them.
    fn addresses_of_others<H: Hal>(&self, hal: &mut H, vf: VfIndex) -> Vec<MacAddress> {
        let VfPolicy { trust, share_mac, .. } = self.state(vf).policy;
        let own = self.filters.added(vf).chain(self.state(vf).mac);
        own.filter(|mac| {
            !(trust || share_mac || mac.is_virtual_router()) && hal.revoke_address(vf.get(), *mac)
        })
        .collect()
    }

    /// Removes a VF's addresses that are refused to it. The address of its policy is never refused, and replaces a refused
    /// main one.
    fn drop_addresses<H: Hal>(
        &mut self,
        hal: &mut H,
        vf: VfIndex,
        is_refused: impl Fn(&Self, MacAddress) -> bool,
    ) {
        let assigned = self.state(vf).policy.mac;
        let is_lost = |pf: &Self, mac: MacAddress| assigned != Some(mac) && is_refused(pf, mac);
        let lost: Vec<_> = self.filters.added(vf).filter(|mac| is_lost(self, *mac)).collect();
        let loses_main = self.state(vf).mac.is_some_and(|mac| is_lost(self, mac));
        self.filters.remove_added(hal, vf, |mac| lost.contains(&mac));
        if loses_main {
            self.use_mac(hal, vf, assigned);
        }
    }
}
