//! Policies of the VFs, and the guards and rules that follow from them.

use plane::guard::PortGuard;
use softiov_fuzz::claims::VFS;
use softiov_fuzz::stations;
use units::{IpPrefix, MacAddress};
use virtio_nic::{VfRules, VlanMembership};

/// VLAN of a VF with a port VLAN.
pub(crate) const VLAN: u16 = 7;

/// Settings of a VF's policy: a bit for each.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct VfSettings(pub(crate) u8);

impl VfSettings {
    pub(crate) const IPS: u8 = 1;
    pub(crate) const NO_SERVER: u8 = 2;
    pub(crate) const SPOOF_CHECK: u8 = 4;
    const TRUST: u8 = 8;
    /// The administrator sets the VF's address.
    pub(crate) const MAC: u8 = 0x10;
    pub(crate) const PORT_VLAN: u8 = 0x20;
    /// The VF's guest is expected to use the address.
    const PROPOSED: u8 = 0x40;
    pub(crate) const DOUBLE_TAGS: u8 = 0x80;

    /// Returns true if one of some settings is on.
    pub(crate) fn has(self, settings: u8) -> bool {
        self.0 & settings != 0
    }

    /// Returns the guard of a VF with these settings. The last VF is never trusted, so that claims are always checked.
    pub(crate) fn guard(self, vf: usize) -> PortGuard {
        let ips = [format!("10.0.0.{vf}"), format!("fd00::{vf}")];
        let prefixes: Box<[IpPrefix]> = ips.iter().map(|ip| ip.parse().expect("an address")).collect();
        PortGuard {
            assigned: self.has(Self::MAC | Self::PROPOSED).then_some(stations::address(vf as u8)),
            checks_claims: vf + 1 == VFS || !self.has(Self::TRUST),
            double_tags: self.has(Self::DOUBLE_TAGS),
            dhcp_guard: self.has(Self::NO_SERVER),
            router_guard: self.has(Self::NO_SERVER),
            ips: self.has(Self::IPS).then_some(prefixes),
        }
    }

    /// Returns the rules of a VF with these settings, whose guest has requested addresses.
    pub(crate) fn rules(self, vf: usize, requested: &[MacAddress]) -> VfRules {
        let mac = stations::address(vf as u8);
        VfRules {
            addresses: if self.has(Self::MAC) { vec![mac] } else { requested.to_vec() },
            promised: self.has(Self::PROPOSED).then_some(mac),
            vlans: if self.has(Self::PORT_VLAN) { VlanMembership::Port(VLAN) } else { VlanMembership::Any },
            spoof_check: self.has(Self::SPOOF_CHECK),
            ..VfRules::default()
        }
    }
}
