//! Policy that the administrator of a simulation sets for a VF, and its settings.

use super::families::mac_of;
use super::frames::ip_of;
use crate::settings::{LinkState, SettingValues, SettingsGroup, VfSettings};
use ::policy::{FilterQuota, FilterQuotas};
use i82576::MacAddress;

/// Quotas of filters that are not the default ones.
const OWN_QUOTAS: FilterQuotas =
    FilterQuotas { mac: FilterQuota { min: 0, max: 6 }, vlan: FilterQuota { min: 1, max: 3 } };

/// Source addresses of a VF's guard for IP, ARP and neighbour discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum SimulatedIps {
    #[default]
    Any,
    /// The guest's own.
    Own,
    /// An address that no guest has.
    Foreign,
    None,
}

/// Policy that the administrator sets for a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SimulatedPolicy {
    /// Port VLAN; 0 for none.
    pub(super) vlan: u16,
    /// True if the administrator has disabled the VF's link.
    pub(super) is_disabled: bool,
    /// True if the VF moves no frame.
    pub(super) is_quarantined: bool,
    /// True if the VF may send in others' names and VLANs.
    pub(super) may_spoof: bool,
    pub(super) is_trusted: bool,
    /// True if the VF has its second address, and not the one of the configuration.
    pub(super) has_second_mac: bool,
    /// True if the guest chooses its addresses.
    pub(super) has_free_mac: bool,
    /// True if the VF has other quotas of filters than by default.
    pub(super) has_own_quotas: bool,
    pub(super) ips: SimulatedIps,
    /// True if the guest may not answer as a DHCP server.
    pub(super) has_dhcp_guard: bool,
    /// True if the guest may not advertise itself as a router.
    pub(super) has_router_guard: bool,
    /// True if the guest may send a second tag behind its port VLAN.
    pub(super) has_qinq: bool,
    /// Limit of the transmit rate in Mb/s; 0 for none.
    pub(super) rate: u32,
}

impl SimulatedPolicy {
    pub(super) fn draw(random: &mut fastrand::Rng) -> Self {
        let vlan = [0, 0, 0, 7, 8][random.usize(0..5)];
        let policy = Self { vlan, is_disabled: random.u32(0..6) == 0, ..Self::default() };
        let ips = [SimulatedIps::Own, SimulatedIps::Foreign, SimulatedIps::None, SimulatedIps::Any];
        match random.u32(0..16) {
            0 => Self { is_quarantined: true, ..policy },
            1 => Self { may_spoof: true, ..policy },
            2 => Self { is_trusted: true, may_spoof: random.bool(), ..policy },
            3 => Self { has_second_mac: true, ..policy },
            4 => Self { ips: ips[random.usize(0..ips.len())], ..policy },
            5 => Self { rate: [10, 40, 100][random.usize(0..3)], ..policy },
            6 => Self {
                has_second_mac: random.bool(),
                ips: ips[random.usize(0..ips.len())],
                rate: [0, 10, 100][random.usize(0..3)],
                may_spoof: random.bool(),
                ..policy
            },
            7..10 => Self { has_free_mac: true, ..policy },
            10 => Self { has_own_quotas: true, has_free_mac: random.bool(), ..policy },
            11..14 => Self {
                has_dhcp_guard: random.bool(),
                has_router_guard: random.bool(),
                has_qinq: random.bool(),
                ..policy
            },
            _ => policy,
        }
    }

    /// Returns the policy of a VF as a command's changes of settings. A VF without a port VLAN may join none, as in the
    /// configuration: a virtio VF receives the frames of all VLANs that it may join.
    pub(super) fn settings(self, vf: usize) -> SettingValues {
        self.all(vf).leaves()
    }

    fn all(self, vf: usize) -> VfSettings {
        let vlans = if self.vlan == 0 { String::new() } else { "any".to_owned() };
        let ips = match self.ips {
            SimulatedIps::Any => "any".to_owned(),
            SimulatedIps::Own => ip_of(vf as u16).to_string(),
            SimulatedIps::Foreign => ip_of(200).to_string(),
            SimulatedIps::None => "none".to_owned(),
        };
        let mac = if self.has_free_mac { MacAddress::ZERO } else { mac_of(vf, self.has_second_mac) };
        let FilterQuotas { mac: macs, vlan: vlans_joined } =
            if self.has_own_quotas { OWN_QUOTAS } else { FilterQuotas::default() };
        VfSettings {
            vlan: Some(self.vlan),
            vlans: Some(vlans),
            state: Some(if self.is_disabled { LinkState::Disable } else { LinkState::Auto }),
            quarantine: Some(self.is_quarantined),
            spoofchk: Some(!self.may_spoof),
            trust: Some(self.is_trusted),
            mac: Some(mac.to_string()),
            min_mac_filters: Some(macs.min),
            max_mac_filters: Some(macs.max),
            min_vlan_filters: Some(vlans_joined.min),
            max_vlan_filters: Some(vlans_joined.max),
            ips: Some(vec![ips]),
            dhcp_guard: Some(self.has_dhcp_guard),
            router_guard: Some(self.has_router_guard),
            qinq: Some(self.has_qinq),
            max_tx_rate: Some(self.rate),
            ..VfSettings::default()
        }
    }

    /// Returns true if these settings of a VF's status are the policy's.
    pub(super) fn is_in(self, vf: usize, settings: &VfSettings) -> bool {
        let all = |settings: &VfSettings| {
            let VfSettings { quarantine, spoofchk, trust, mac, ips, max_tx_rate, .. } = settings.clone();
            let is_disabled = settings.state == Some(LinkState::Disable);
            let mac_quota = (settings.min_mac_filters, settings.max_mac_filters);
            let vlan_quota = (settings.min_vlan_filters, settings.max_vlan_filters);
            let guards = (spoofchk, trust, mac, ips);
            let contents = (settings.dhcp_guard, settings.router_guard, settings.qinq);
            (settings.vlan, is_disabled, quarantine, guards, contents, max_tx_rate, mac_quota, vlan_quota)
        };
        all(settings) == all(&self.all(vf))
    }

    /// Returns true if frames of a guest pass the guard of its source addresses: UDP from its own, or another protocol.
    pub(super) fn passes_guard(self, is_udp: bool) -> bool {
        match self.ips {
            SimulatedIps::Any => true,
            SimulatedIps::Own => is_udp,
            SimulatedIps::Foreign | SimulatedIps::None => false,
        }
    }

    /// Returns true if a guest sees a link.
    pub(super) fn has_link(self) -> bool {
        !self.is_disabled && !self.is_quarantined
    }

    /// Returns true if frames may pass between functions with these policies. A disabled link is what a guest sees, and keeps no
    /// frame from a driver that ignores it.
    pub(super) fn connects(self, other: Self) -> bool {
        self.vlan == other.vlan && !self.is_quarantined && !other.is_quarantined
    }
}
