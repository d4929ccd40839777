//! Translates the policy of a VF to the forwarding rules of its virtio device. A guest's requests end in its VMM, so the
//! policy alone decides.

use crate::virtio_limits::LIMITS;
use policy::VfPolicy;
use units::FCS;
use virtio_nic::{VfRules, VlanMembership};

/// Returns the forwarding rules of a VF. `linked` is true if the VF has a link, and `max_tx_rate` is its transmit rate
/// limit in Mb/s.
pub(super) fn rules(policy: &VfPolicy, linked: bool, max_tx_rate: u32) -> VfRules {
    VfRules {
        enabled: linked,
        // An address that the administrator did not set is a proposal: the VMM's own setting decides.
        addresses: policy.mac.filter(|_| policy.admin_mac).into_iter().collect(),
        promised: policy.mac,
        vlans: vlans(policy),
        spoof_check: policy.spoofchk,
        all_multicast: policy.allmulti,
        promiscuous: policy.trust,
        longest_frame: usize::from(policy.longest_frame(&LIMITS)) - FCS,
        max_tx_rate,
    }
}

fn vlans(policy: &VfPolicy) -> VlanMembership {
    match (policy.vlan, &policy.vlans) {
        (Some(vlan), _) => VlanMembership::Port(vlan.tag()),
        (None, Some(allowed)) => VlanMembership::Guest(Box::new(*allowed.ids())),
        (None, None) => VlanMembership::Any,
    }
}

/// Returns the VLANs of which a VF is a member, with 0 for untagged frames. For a VF that may use every VLAN, returns 0
/// alone.
pub(super) fn memberships(policy: &VfPolicy) -> Vec<u16> {
    match (policy.vlan, &policy.vlans) {
        (Some(vlan), _) => vec![vlan.id],
        (None, Some(allowed)) => allowed.iter().collect(),
        (None, None) => vec![0],
    }
}

#[cfg(test)]
mod tests {
    use super::{memberships, rules};
    use i82576::MacAddress;
    use policy::{PortVlan, VfPolicy};
    use virtio_nic::{LONGEST_FRAME, VfRules, VlanMembership};

    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

    /// Returns the rules of a VF with a link and no rate limit.
    fn linked(policy: VfPolicy) -> VfRules {
        rules(&policy, true, 0)
    }

    #[test]
    fn default_policy_has_the_rules_of_a_vf_without_policy() {
        let default = VfRules { spoof_check: true, ..VfRules::default() };
        assert_eq!(linked(VfPolicy::default()), default);
        let proposed = VfPolicy { mac: Some(MAC), ..VfPolicy::default() };
        let promised = VfRules { promised: Some(MAC), ..default };
        assert_eq!(linked(proposed), promised, "the guest chooses its address");
    }

    #[test]
    fn each_setting_of_a_vf_becomes_a_forwarding_rule() {
        let policy = VfPolicy {
            mac: Some(MAC),
            admin_mac: true,
            spoofchk: false,
            trust: true,
            allmulti: false,
            max_mtu: Some(1_500),
            ..VfPolicy::default()
        };
        let expected = VfRules {
            enabled: false,
            addresses: vec![MAC],
            promised: Some(MAC),
            vlans: VlanMembership::Any,
            spoof_check: false,
            all_multicast: false,
            promiscuous: true,
            longest_frame: 1_518,
            max_tx_rate: 7,
        };
        assert_eq!(rules(&policy, false, 7), expected);
        let longest = VfPolicy { max_mtu: Some(9_706), ..VfPolicy::default() };
        assert_eq!(linked(longest).longest_frame, LONGEST_FRAME);
    }

    #[test]
    fn port_vlan_and_allowed_vlans_become_memberships() {
        let tagged = VfPolicy { vlan: Some(PortVlan { id: 100, qos: 3 }), ..VfPolicy::default() };
        assert_eq!(linked(tagged).vlans, VlanMembership::Port(3 << 13 | 100));
        assert_eq!(memberships(&tagged), [100]);
        let some = VfPolicy { vlans: Some([7, 4_095].into_iter().collect()), ..VfPolicy::default() };
        let VlanMembership::Guest(ids) = linked(some).vlans else { panic!("the guest tags by itself") };
        assert_eq!([0, 7, 8, 4_095].map(|vlan| ids.contains(vlan)), [true, true, false, true]);
        assert_eq!(memberships(&some), [0, 7, 4_095]);
        assert_eq!(memberships(&VfPolicy::default()), [0]);
    }
}
