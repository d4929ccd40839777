//! Settings of a VF, and their conversion to a policy (`policy` checks it).

use super::argument::{mtu, on_or_off, port_vlan};
use super::ips::{printed_ips, source_ips};
use super::setting::{SettingError, SettingsGroup, refuse};
use crate::config::vlans;
use clap::ValueEnum;
use i82576::MacAddress;
use policy::{
    FilterQuota, FilterQuotas, FrameGuards, InterruptBounds, PolicyError, PortVlan, VfLinkPolicy, VfPolicy,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of a VF. In a change, a missing setting keeps its value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[serde(default, deny_unknown_fields)]
#[group(id = "change", required = true, multiple = true)]
pub struct VfSettings {
    /// Link that the VF sees: auto for the port's link (the default), enable for up, disable for down.
    #[serde(skip_serializing_if = "Option::is_none", alias = "link_state")]
    #[arg(long, value_enum)]
    pub state: Option<LinkState>,
    /// MAC address of the VF, which the guest may not change; all zeros, the default, leave the choice to the guest. A
    /// running guest uses a new address after its driver is loaded again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "ADDRESS")]
    pub mac: Option<String>,
    /// Port VLAN, 1 to 4095: the guest sends and receives in this VLAN, untagged; 0, the default, is no VLAN, and
    /// clears the priority unless a priority is given too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "ID", value_parser = port_vlan, allow_negative_numbers = true)]
    pub vlan: Option<u16>,
    /// Priority of the port VLAN, 0 to 7; 0 is the default. With VLAN 0 the guest's frames get a tag that carries the
    /// priority alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "PRIORITY")]
    pub qos: Option<u8>,
    /// Protocol of the port VLAN: only 802.1Q, the default, because the card supports no other.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "PROTOCOL")]
    pub proto: Option<String>,
    /// VLANs that the guest may join: any (the default), or ids and ranges such as 10,20,100-199; "" for no VLAN.
    #[serde(skip_serializing_if = "Option::is_none", alias = "allowed_vlans")]
    #[arg(long, value_name = "LIST")]
    pub vlans: Option<String>,
    /// Drop frames with a source address or VLAN that is not the guest's; on by default.
    #[serde(skip_serializing_if = "Option::is_none", alias = "spoof_check")]
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub spoofchk: Option<bool>,
    /// Let the guest change a MAC address that the administrator has set; off by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub trust: Option<bool>,
    /// Let the guest use the MAC address of another VF that has this setting too; off by default. Addresses of virtual
    /// routers (VRRP) are shared without this setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "on|off", alias = "share_mac", value_parser = on_or_off)]
    pub share_mac: Option<bool>,
    /// IP addresses and prefixes that the guest may send from, in IP, ARP and neighbour discovery: any (the default), none, or
    /// at most 16 such as 10.0.0.5,fd00:1::/64. Frames of other protocols are dropped then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub ips: Option<Vec<String>>,
    /// Drop the guest's frames of a DHCP server; off by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "on|off", alias = "dhcp_guard", value_parser = on_or_off)]
    pub dhcp_guard: Option<bool>,
    /// Drop the guest's IPv6 router advertisements and redirects; off by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "on|off", alias = "router_guard", value_parser = on_or_off)]
    pub router_guard: Option<bool>,
    /// Let the guest send frames with a VLAN tag behind its port VLAN, which still replaces a first tag of 802.1Q; off by
    /// default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub qinq: Option<bool>,
    /// MAC addresses that other guests cannot take from the guest, besides its own; 1 is the default. The sum over the VFs of a
    /// port is limited by the card's table. Not available with family = "virtio".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "COUNT", alias = "min_mac_filters")]
    pub min_mac_filters: Option<u16>,
    /// Limit of the MAC addresses that the guest may add to its own, up to 19; with family = "avf" of all its addresses and
    /// groups, up to 128. 0, the default, is the card's limit; with "avf" 18, or 128 with trust. Not available with family =
    /// "virtio".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "COUNT", alias = "max_mac_filters")]
    pub max_mac_filters: Option<u16>,
    /// VLANs that the guest can join whatever other guests do; 2 is the default. The sum over the VFs of a port is limited by
    /// the card's table. Not available with family = "virtio".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "COUNT", alias = "min_vlan_filters")]
    pub min_vlan_filters: Option<u16>,
    /// Limit of the VLANs that the guest may join, up to 31, with family = "avf" up to 4095. 0, the default, is the card's
    /// limit; with "avf" 16, or 4095 with trust. Not available with family = "virtio".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "COUNT", alias = "max_vlan_filters")]
    pub max_vlan_filters: Option<u16>,
    /// Limit of the guest's transmit rate, Mb/s, up to the speed of the link: 1000, with family = "avf" 25000, with
    /// "virtio" 100000; 0, the default, is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "MBPS", alias = "max_tx_rate")]
    pub max_tx_rate: Option<u32>,
    /// Guaranteed transmit rate of the guest: only 0, because the card guarantees no rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "MBPS", alias = "min_tx_rate")]
    pub min_tx_rate: Option<u32>,
    /// Let the guest request all multicast frames; on by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub allmulti: Option<bool>,
    /// Limit of the packet length that the guest may request to receive, bytes: 68 to 9706, with family = "avf" 1496 to
    /// 9706; 0, the default, is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "BYTES", alias = "max_mtu", value_parser = mtu, allow_negative_numbers = true)]
    pub max_mtu: Option<u16>,
    /// Spread received frames over the guest's two queues by flow (RSS); off by default. The guest's driver has to use
    /// both queues, as DPDK's can and Linux igbvf does not; otherwise half of the flows are lost. Not available with
    /// family = "avf" or "virtio", whose guests decide it themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub rss: Option<bool>,
    /// Least rate of interrupts while events for the guest are pending, per second; 0, the default, leaves the rate to
    /// the guest. Not available with family = "avf" or "virtio".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "HERTZ", alias = "min_interrupts")]
    pub min_interrupts: Option<u32>,
    /// Highest rate of interrupts to the guest, per second, 123 to 1000000; 0, the default, leaves the rate to the
    /// guest. Not available with family = "avf" or "virtio".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "HERTZ", alias = "max_interrupts")]
    pub max_interrupts: Option<u32>,
    /// Choice of the interrupt rate within min_interrupts and max_interrupts: by the guest's driver (the default), or
    /// adaptive, by the host from the packet rate. Only guest is available with family = "avf" or "virtio".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_enum)]
    pub coalesce: Option<CoalesceMode>,
    /// Quarantine the VF, so that it moves no frame and sees no link, or release it; off by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub quarantine: Option<bool>,
}

/// Link that a VF sees, in iproute2's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LinkState {
    /// The VF sees the port's link.
    Auto,
    /// The VF sees its link up, even while the port's link is down.
    Enable,
    /// The VF sees its link down.
    Disable,
}

/// Choice of a guest's interrupt rate within its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum CoalesceMode {
    /// The guest's driver chooses the interrupt rate.
    Guest,
    /// The host chooses the lowest interrupt rate that the packet rate allows.
    Adaptive,
}

/// Only protocol of a port VLAN that the card supports.
const PROTOCOL: &str = "802.1Q";

impl SettingsGroup for VfSettings {
    fn depth(_field: &str) -> usize {
        0
    }
}

impl VfSettings {
    /// Creates settings of a VF that set only its link.
    #[must_use]
    pub fn link(state: LinkState) -> Self {
        Self { state: Some(state), ..Self::default() }
    }

    /// Completes the settings of a command: VLAN 0 also clears the priority, unless the command sets a priority.
    #[must_use]
    pub fn as_command(mut self) -> Self {
        if self.vlan == Some(0) {
            self.qos = self.qos.or(Some(0));
        }
        self
    }

    /// Creates the policy of a VF from these settings; `own` is the VF's address if none is set. [`VfPolicy::check`]
    /// checks the result.
    ///
    /// # Errors
    /// [`SettingError`].
    pub fn policy(&self, own: MacAddress) -> Result<VfPolicy, SettingError> {
        let default = VfPolicy::default();
        let (mac, admin_mac) = self.address(own)?;
        if self.min_tx_rate.is_some_and(|rate| rate > 0) {
            return Err(PolicyError::LeastRate.into());
        }
        let list = self.vlans.as_deref().map_or(Ok(default.vlans), vlans::parse);
        Ok(VfPolicy {
            mac: Some(mac),
            admin_mac,
            vlan: self.port_vlan()?,
            vlans: list.map_err(|problem| SettingError { key: "vlans", problem })?,
            spoofchk: self.spoofchk.unwrap_or(default.spoofchk),
            trust: self.trust.unwrap_or(default.trust),
            enabled: true,
            state: self.state.map_or(default.state, VfLinkPolicy::from),
            allmulti: self.allmulti.unwrap_or(default.allmulti),
            max_mtu: self.max_mtu.filter(|mtu| *mtu > 0),
            rss: self.rss.unwrap_or(default.rss),
            interrupts: InterruptBounds {
                min_interrupts: self.min_interrupts.unwrap_or(0),
                max_interrupts: self.max_interrupts.unwrap_or(0),
                adaptive: self.coalesce == Some(CoalesceMode::Adaptive),
            },
            max_tx_rate: self.max_tx_rate.unwrap_or(default.max_tx_rate),
            share_mac: self.share_mac.unwrap_or(default.share_mac),
            guards: FrameGuards {
                qinq: self.qinq.unwrap_or(false),
                dhcp_guard: self.dhcp_guard.unwrap_or(false),
                router_guard: self.router_guard.unwrap_or(false),
                ips: self.ips.as_deref().map_or(Ok(None), source_ips)?,
            },
            quotas: FilterQuotas {
                mac: filter_quota(self.min_mac_filters, self.max_mac_filters, default.quotas.mac),
                vlan: filter_quota(self.min_vlan_filters, self.max_vlan_filters, default.quotas.vlan),
            },
        })
    }

    /// Returns all settings of a VF from its policy and the administrator's `quarantine`.
    #[must_use]
    pub fn of(policy: &VfPolicy, quarantine: bool) -> Self {
        let fixed = policy.mac.filter(|_| policy.admin_mac);
        let chooser = if policy.interrupts.adaptive { CoalesceMode::Adaptive } else { CoalesceMode::Guest };
        Self {
            state: Some(policy.state.into()),
            mac: Some(fixed.unwrap_or(MacAddress::ZERO).to_string()),
            vlan: Some(policy.vlan.map_or(0, |vlan| vlan.id)),
            qos: Some(policy.vlan.map_or(0, |vlan| vlan.qos)),
            proto: Some(PROTOCOL.to_owned()),
            vlans: Some(vlans::print(policy.vlans.as_ref())),
            spoofchk: Some(policy.spoofchk),
            trust: Some(policy.trust),
            share_mac: Some(policy.share_mac),
            ips: Some(printed_ips(policy)),
            dhcp_guard: Some(policy.guards.dhcp_guard),
            router_guard: Some(policy.guards.router_guard),
            qinq: Some(policy.guards.qinq),
            min_mac_filters: Some(policy.quotas.mac.min),
            max_mac_filters: Some(policy.quotas.mac.max),
            min_vlan_filters: Some(policy.quotas.vlan.min),
            max_vlan_filters: Some(policy.quotas.vlan.max),
            max_tx_rate: Some(policy.max_tx_rate),
            min_tx_rate: Some(0),
            allmulti: Some(policy.allmulti),
            max_mtu: Some(policy.max_mtu.unwrap_or(0)),
            rss: Some(policy.rss),
            min_interrupts: Some(policy.interrupts.min_interrupts),
            max_interrupts: Some(policy.interrupts.max_interrupts),
            coalesce: Some(chooser),
            quarantine: Some(quarantine),
        }
    }

    /// Returns the VF's MAC address, and true if the administrator has chosen the address.
    fn address(&self, own: MacAddress) -> Result<(MacAddress, bool), SettingError> {
        let Some(text) = &self.mac else { return Ok((own, false)) };
        match text.parse::<MacAddress>() {
            Ok(MacAddress::ZERO) => Ok((own, false)),
            Ok(mac) => Ok((mac, true)),
            Err(error) => refuse("mac", format!("{text:?}: {error}")),
        }
    }

    fn port_vlan(&self) -> Result<Option<PortVlan>, SettingError> {
        if let Some(proto) = self.proto.as_ref().filter(|proto| !proto.eq_ignore_ascii_case(PROTOCOL)) {
            return refuse("proto", format!("{proto:?} is not supported; the card supports {PROTOCOL} only"));
        }
        match (self.vlan.unwrap_or(0), self.qos.unwrap_or(0)) {
            // VLAN 0 must be explicit: a priority without a VLAN is more often a forgotten VLAN.
            (0, 1..) if self.vlan.is_none() => {
                refuse("qos", "needs vlan too; vlan 0 stands for a tag with the priority alone")
            }
            (0, 0) => Ok(None),
            (id, qos) => Ok(Some(PortVlan { id, qos })),
        }
    }
}

/// Returns a quota of filters. A default guarantee does not exceed the limit.
fn filter_quota(min: Option<u16>, max: Option<u16>, default: FilterQuota) -> FilterQuota {
    let max = max.unwrap_or(default.max);
    let least = FilterQuota { max, ..default }.most(default.min);
    FilterQuota { min: min.unwrap_or(least), max }
}

impl From<LinkState> for VfLinkPolicy {
    fn from(state: LinkState) -> Self {
        match state {
            LinkState::Auto => Self::Auto,
            LinkState::Enable => Self::Enable,
            LinkState::Disable => Self::Disable,
        }
    }
}

impl From<VfLinkPolicy> for LinkState {
    fn from(link: VfLinkPolicy) -> Self {
        match link {
            VfLinkPolicy::Auto => Self::Auto,
            VfLinkPolicy::Enable => Self::Enable,
            VfLinkPolicy::Disable => Self::Disable,
        }
    }
}

#[cfg(test)]
mod tests;
