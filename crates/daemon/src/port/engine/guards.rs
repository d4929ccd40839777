//! Guards of the plane that follow from the policies of VFs, alike for all families.

use super::PortEngine;
use super::uplink::UplinkPollContext;
use crate::port::tokens;
use crate::settings::{LinkLocalPolicy, PortSettings};
use crate::state::{HeldAddresses, SavedStations};
use host::poll::Poller;
use i82576::{MacAddress, Time};
use pcie::{Function, VfIndex};
use plane::PortIndex;
use plane::guard::{ClaimCounts, GuardCounts, PortGuard};
use policy::{FrameGuards, RefusedVf, VfPolicy};

impl PortEngine {
    /// Sets whether the card drops or forwards link-local frames of guests. Returns the former policy.
    pub(in crate::port) fn set_link_local(&mut self, link_local: LinkLocalPolicy) -> LinkLocalPolicy {
        self.card.guards_mut().forward_link_local(link_local == LinkLocalPolicy::Forward);
        std::mem::replace(&mut self.link_local, link_local)
    }

    /// Returns the settings of the port with `vfs` VFs, if the host runs the PF's software.
    pub(in crate::port) fn settings(&self, vfs: usize) -> Option<PortSettings> {
        self.card.port_policy().map(|policy| PortSettings::of(policy, self.link_local, vfs))
    }

    /// Sets the guards of the VFs by their policies, by index, if the host runs the PF's software. No VF may claim the
    /// port's own address `mac`, and the storm of one VF leaves a part of the thresholds to others.
    pub(in crate::port) fn set_guards(&mut self, mac: MacAddress, vfs: &[VfPolicy]) {
        if self.card.is_hosted() {
            let guards: Vec<_> = vfs.iter().map(guard).collect();
            let plane = self.card.guards_mut();
            plane.set_guards(&guards, &[mac], self.station_key);
            plane.divide_storms(true);
        }
    }

    /// Shares the addresses of the VFs with the host's other ports on the uplink's link, a wire or the same bridge or interface, if
    /// the host runs the PF's software.
    pub(in crate::port) fn share_addresses(&mut self) {
        if self.card.is_hosted() {
            self.card.guards_mut().share_addresses(self.uplink.addresses());
        }
    }

    /// Notes a change of the uplink for [`Self::follow_uplink`]. The port may have got an end of a wire, or its interface
    /// another bridge, where other ports then have to know the addresses of its VFs.
    pub(super) fn note_uplink(&mut self, poller: &Poller, now: Time) {
        if self.uplink.follow(UplinkPollContext { poller, token: tokens::UPLINK, now }) {
            self.uplink_changed = true;
            self.share_addresses();
        }
    }

    /// Returns the addresses that the VFs hold.
    pub(in crate::port) fn held_addresses(&self) -> HeldAddresses {
        let held = self.card.guards().held_addresses();
        HeldAddresses { vfs: held.into_iter().map(|(port, address)| (port.get(), address)).collect() }
    }

    /// Returns a number that changes with the addresses that the VFs hold.
    pub(in crate::port) fn held_version(&self) -> u64 {
        self.card.guards().held_version()
    }

    /// Holds the addresses of VFs that they have held in the previous host process. Call it after [`Self::set_guards`] and before
    /// [`Self::share_addresses`].
    pub(in crate::port) fn restore_held_addresses(&mut self, held: &HeldAddresses) {
        if self.card.is_hosted() {
            let held = held.vfs.iter().map(|(vf, address)| (PortIndex::of_field((*vf).into()), *address));
            self.card.guards_mut().restore_held_addresses(&held.collect::<Vec<_>>());
        }
    }

    /// Returns the stations seen at the uplink.
    pub(in crate::port) fn save_stations(&self) -> SavedStations {
        self.card.guards().save_stations()
    }

    /// Returns a number that changes when a frame of the uplink changes the stations.
    pub(in crate::port) fn station_version(&self) -> u64 {
        self.card.guards().station_version()
    }

    /// Continues the table of stations that the previous host process has saved, or begins an empty one. Call it after
    /// [`Self::set_guards`].
    pub(in crate::port) fn restore_stations(&mut self, saved: Option<SavedStations>, now: Time) {
        if self.card.is_hosted() {
            let empty = || SavedStations { key: self.station_key, began: now, ..SavedStations::default() };
            // The key of a record without stations may be that of a plane that had none, which is known to everyone.
            let saved = saved.filter(|saved| !saved.stations.is_empty()).unwrap_or_else(empty);
            self.station_key = saved.key;
            self.card.guards_mut().restore_stations(&saved, now);
        }
    }

    /// Returns true if a function keeps the address of its guest in the previous host process: others may use it, and the
    /// function may have lost the right to it. Counts a refusal.
    pub(in crate::port) fn may_keep_address(&mut self, function: Function, address: MacAddress) -> bool {
        function.vf().is_none_or(|vf| self.card.guards_mut().may_request(port(vf), address))
    }

    /// Takes addresses that others use back from VFs that have lost the right to them since the previous host process. `policies`
    /// holds those of the VFs, by index. Call it after [`Self::share_addresses`] of every port of the host.
    ///
    /// # Errors
    /// Returns the errors of [`AddressRevocation`](super::revocation::AddressRevocation).
    pub(in crate::port) fn revoke_addresses(
        &mut self,
        policies: &[VfPolicy],
        now: Time,
    ) -> Result<(), RefusedVf> {
        let vfs = self.card.take_distrusted();
        if vfs.is_empty() {
            return Ok(());
        }
        // The plane also holds addresses for VFs that reset, of which the PF driver knows nothing.
        let guards = self.card.guards_mut();
        for (port, address) in guards.held_addresses() {
            let vf = VfIndex::of_field(port.get().into());
            let own = policies.get(vf.index()).and_then(|policy| policy.mac);
            if vfs.has(vf) && own != Some(address) && !address.is_virtual_router() {
                guards.revoke_address(port, address);
            }
        }
        self.card.revoke_addresses(vfs, &mut self.bus, now)
    }

    /// Ages the stations seen at the uplink, and grants VFs the addresses of those that are gone.
    pub(in crate::port) fn review_claims(&mut self, now: Time) {
        self.card.guards_mut().review_claims(now);
    }

    /// Returns the number of a VF's refused claims to addresses, and the last refused address.
    pub(in crate::port) fn refused_claims(&self, vf: VfIndex) -> ClaimCounts {
        self.card.guards().refused_claims(port(vf))
    }

    /// Returns the numbers of a VF's frames that its guards have dropped.
    pub(in crate::port) fn guarded_frames(&self, vf: VfIndex) -> GuardCounts {
        self.card.guards().guarded_frames(port(vf))
    }

    /// Forgets which addresses a VF's guest has held, when its client is gone.
    pub(in crate::port) fn release_claims(&mut self, vf: VfIndex) {
        self.card.guards_mut().release_claims(port(vf));
    }

    /// Keeps the addresses of a VF's guest for a few minutes, when its client is away and may come back.
    pub(in crate::port) fn keep_claims_for_return(&mut self, vf: VfIndex) {
        self.card.guards_mut().keep_claims_for_return(port(vf));
    }
}

/// Returns the port of the plane that a VF is.
fn port(vf: VfIndex) -> PortIndex {
    PortIndex::of_field(vf.get().into())
}

/// Returns the guard of a VF with this policy.
fn guard(policy: &VfPolicy) -> PortGuard {
    let FrameGuards { qinq, dhcp_guard, router_guard, ips } = policy.guards;
    PortGuard {
        assigned: policy.mac,
        checks_claims: !policy.trust && !policy.share_mac,
        double_tags: qinq,
        dhcp_guard,
        router_guard,
        ips: ips.map(|ips| ips.iter().collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::guard;
    use i82576::MacAddress;
    use plane::guard::PortGuard;
    use policy::{FrameGuards, VfPolicy};

    #[test]
    fn trust_and_share_mac_lift_the_check_of_claims() {
        let mac = Some(MacAddress([2, 0, 0, 0, 0, 9]));
        let default = VfPolicy { mac, ..VfPolicy::default() };
        assert_eq!(guard(&default), PortGuard { assigned: mac, checks_claims: true, ..PortGuard::default() });
        for lifted in [VfPolicy { trust: true, ..default }, VfPolicy { share_mac: true, ..default }] {
            assert!(!guard(&lifted).checks_claims);
        }
    }

    /// The simulation's `settings_of_a_vf_set_its_guards` shows by frames that the guards reach each family's plane.
    #[test]
    fn each_frame_guard_of_a_policy_is_the_planes() {
        let guard = |guards| guard(&VfPolicy { guards, ..VfPolicy::default() });
        let (off, none) = (FrameGuards::default(), guard(FrameGuards::default()));
        assert!(!none.double_tags && !none.dhcp_guard && !none.router_guard && none.ips.is_none());
        let [qinq, dhcp, router] = [
            FrameGuards { qinq: true, ..off },
            FrameGuards { dhcp_guard: true, ..off },
            FrameGuards { router_guard: true, ..off },
        ];
        assert_eq!(guard(qinq), PortGuard { double_tags: true, ..none.clone() });
        assert_eq!(guard(dhcp), PortGuard { dhcp_guard: true, ..none.clone() });
        assert_eq!(guard(router), PortGuard { router_guard: true, ..none });
    }
}
