//! Settings of a port: number of VFs, link-local frames, thresholds for offences of VFs, storm control, mirror rules (`policy`
//! checks the last three).

use super::setting::{SettingError, SettingsGroup, refuse};
use crate::config::vlans;
use clap::ValueEnum;
use pcie::{VfIndex, VfSet};
use policy::{
    MIRROR_RULES, Offence, OffenceThresholds, PortPolicy, StormControl, VLANS, VfMirrorRule, VlanSet,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Settings of a port. In a change, a missing setting keeps its value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PortSettings {
    /// Number of VFs that the port offers: 1 to 8, with family "avf" or "virtio" 1 to 64. Default: 7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vfs: Option<u8>,
    /// Policy for frames that a guest sends to 01:80:c2:00:00:00 to 0f (LLDP, LACP, EAPOL, spanning tree): "drop", or
    /// "forward", as a cable would; pause and MAC control frames are dropped in any case. Default: drop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_local: Option<LinkLocalPolicy>,
    /// Thresholds for offences of VFs, by kind: "mailbox", "spoofing", "storm", "interrupts", "invalid" or
    /// "dma-faults".
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, ConductThresholds>,
    /// Storm control: limits of broadcasts and multicasts to the VFs. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storm: Option<StormControlSettings>,
    /// Mirror rules by number, "0" to "3"; null removes a rule. Default: no rule.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mirror: BTreeMap<String, Option<MirrorRule>>,
}

/// Policy of a port for link-local frames of its guests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LinkLocalPolicy {
    /// Drops link-local frames of guests, and counts these frames. They are meant for the neighbour on a cable, and a
    /// guest is no neighbour of the switch.
    #[default]
    Drop,
    /// Forwards link-local frames like other multicast frames, for labs that run LACP or LLDP over VFs.
    Forward,
}

/// Thresholds for one kind of offence of a VF, in events per second; 0 means that the threshold is never reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[serde(default, deny_unknown_fields)]
#[group(id = "limit", required = true, multiple = true)]
pub struct ConductThresholds {
    /// Events per second from which the host logs a warning; 0 for no warning. Default: mailbox 200, storm 10000,
    /// interrupts 200000, other kinds 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "N")]
    pub warn: Option<u32>,
    /// Events per second from which the VF is throttled until ten seconds after its last offence; 0 for no throttling.
    /// Default: mailbox 1000, other kinds 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "N")]
    pub throttle: Option<u32>,
    /// Events per second from which the VF is quarantined, until an administrator releases the VF; 0, the default, for
    /// no quarantine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "N")]
    pub quarantine: Option<u32>,
}

/// Storm control of a port: limits of broadcasts and multicasts to each VF.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[serde(default, deny_unknown_fields)]
#[group(id = "change", required = true, multiple = true)]
pub struct StormControlSettings {
    /// Limit of broadcasts to the VFs, Kb/s; 0, the default, is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long = "storm-broadcast", value_name = "KBPS")]
    pub broadcast: Option<u32>,
    /// Limit of multicasts to the VFs, Kb/s; 0, the default, is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long = "storm-multicast", value_name = "KBPS")]
    pub multicast: Option<u32>,
    /// Interval in which storm control counts frames, milliseconds, 1 to 1000; 100 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long = "storm-interval", value_name = "MS")]
    pub interval: Option<u16>,
}

/// Mirror rule of a port: frames that are copied to a VF. At least one of `vfs`, `uplink` and `vlans` selects frames.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MirrorRule {
    /// Index of the VF that receives the copies.
    pub to: u8,
    /// Indices of the VFs whose received frames are copied. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vfs: Vec<u8>,
    /// Frames at the uplink to copy: "ingress" (from the uplink), "egress" (to the uplink) or "both". Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink: Option<UplinkDirection>,
    /// VLANs whose frames are copied while a VF is a member: "any", or ids and ranges such as "10,20-29". Default:
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlans: Option<String>,
}

/// Direction of frames at the uplink, in the words of tc(8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum UplinkDirection {
    /// Frames from the uplink to the port.
    Ingress,
    /// Frames from the port to the uplink.
    Egress,
    /// Frames in both directions.
    Both,
}

impl SettingsGroup for PortSettings {
    fn depth(field: &str) -> usize {
        match field {
            "limits" => 2,
            "storm" | "mirror" => 1,
            _ => 0,
        }
    }
}

impl PortSettings {
    /// Creates the policy of a port from these settings, for this number of VFs. [`PortPolicy::check`] checks the
    /// result.
    ///
    /// # Errors
    /// [`SettingError`].
    pub fn policy(&self, vfs: usize) -> Result<PortPolicy, SettingError> {
        let mut policy = PortPolicy::default();
        for (kind, limit) in &self.limits {
            let Some(offence) = Offence::ALL.into_iter().find(|offence| offence.name() == kind) else {
                let kinds = Offence::ALL.map(Offence::name).join(", ");
                return refuse("limits", format!("{kind:?} is unknown; the kinds are {kinds}"));
            };
            let thresholds = &mut policy.limits[offence as usize];
            thresholds.warn = limit.warn.unwrap_or(thresholds.warn);
            thresholds.throttle = limit.throttle.unwrap_or(thresholds.throttle);
            thresholds.quarantine = limit.quarantine.unwrap_or(thresholds.quarantine);
        }
        let storm = self.storm.unwrap_or_default();
        policy.storm = StormControl {
            broadcast: storm.broadcast.unwrap_or(policy.storm.broadcast),
            multicast: storm.multicast.unwrap_or(policy.storm.multicast),
            window_ms: storm.interval.unwrap_or(policy.storm.window_ms),
        };
        for (number, rule) in &self.mirror {
            let place = number.parse().ok().and_then(|number: usize| policy.mirrors.get_mut(number));
            let Some(place) = place else {
                return refuse("mirror", format!("rule {number} is out of range (0-{})", MIRROR_RULES - 1));
            };
            *place = rule.as_ref().map(|rule| rule.resolve(vfs)).transpose()?;
        }
        Ok(policy)
    }

    /// Returns every setting of a port with these policies and this number of VFs. Unused mirror rules are left out.
    #[must_use]
    pub fn of(policy: &PortPolicy, link_local: LinkLocalPolicy, vfs: usize) -> Self {
        let limit = |limit: &OffenceThresholds| ConductThresholds {
            warn: Some(limit.warn),
            throttle: Some(limit.throttle),
            quarantine: Some(limit.quarantine),
        };
        let limits = Offence::ALL.into_iter().zip(&policy.limits);
        let rules = policy.mirrors.iter().enumerate();
        let rules = rules.filter_map(|(n, rule)| Some((n.to_string(), MirrorRule::from(rule.as_ref()?))));
        Self {
            vfs: u8::try_from(vfs).ok(),
            link_local: Some(link_local),
            limits: limits.map(|(offence, set)| (offence.name().to_owned(), limit(set))).collect(),
            storm: Some(StormControlSettings {
                broadcast: Some(policy.storm.broadcast),
                multicast: Some(policy.storm.multicast),
                interval: Some(policy.storm.window_ms),
            }),
            mirror: rules.map(|(number, rule)| (number, Some(rule))).collect(),
        }
    }
}

impl MirrorRule {
    fn resolve(&self, vfs: usize) -> Result<VfMirrorRule, SettingError> {
        let known = |key, n: u8| match VfIndex::new(n).filter(|vf| vf.index() < vfs) {
            Some(vf) => Ok(vf),
            None => refuse(key, format!("VF {n} is out of range: the port has {vfs} VFs, counted from 0")),
        };
        let watched: Result<VfSet, _> = self.vfs.iter().map(|vf| known("mirror.vfs", *vf)).collect();
        let on = |direction| self.uplink.is_some_and(|on| on == direction || on == UplinkDirection::Both);
        Ok(VfMirrorRule {
            to: known("mirror.to", self.to)?,
            vfs: watched?,
            ingress: on(UplinkDirection::Ingress),
            egress: on(UplinkDirection::Egress),
            vlans: self.vlans.as_deref().map(named_vlans).transpose()?,
        })
    }
}

/// Parses the VLANs of a mirror rule. "any" has to become a list, because a rule without VLANs copies none.
fn named_vlans(list: &str) -> Result<VlanSet, SettingError> {
    match vlans::parse(list) {
        Ok(set) => Ok(set.unwrap_or_else(|| VLANS.collect())),
        Err(problem) => refuse("mirror.vlans", problem),
    }
}

impl From<&VfMirrorRule> for MirrorRule {
    fn from(mirror: &VfMirrorRule) -> Self {
        let uplink = match (mirror.ingress, mirror.egress) {
            (true, true) => Some(UplinkDirection::Both),
            (true, false) => Some(UplinkDirection::Ingress),
            (false, true) => Some(UplinkDirection::Egress),
            (false, false) => None,
        };
        Self {
            to: mirror.to.get(),
            vfs: mirror.vfs.iter().map(VfIndex::get).collect(),
            uplink,
            vlans: mirror.vlans.as_ref().map(|set| vlans::print(Some(set))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        ConductThresholds, LinkLocalPolicy, MirrorRule, PortSettings, StormControlSettings, UplinkDirection,
    };
    use crate::settings::{SettingLayers, SettingsGroup};
    use policy::{Offence, PortPolicy};
    use std::collections::BTreeMap;

    const RULE: MirrorRule = MirrorRule { to: 1, vfs: Vec::new(), uplink: None, vlans: None };

    fn refused(settings: &PortSettings) -> &'static str {
        settings.policy(4).expect_err("is refused").key
    }

    fn mirror(number: u8, rule: Option<MirrorRule>) -> PortSettings {
        PortSettings { mirror: BTreeMap::from([(number.to_string(), rule)]), ..PortSettings::default() }
    }

    #[test]
    fn unset_port_settings_have_their_defaults() {
        assert_eq!(PortSettings::default().policy(4), Ok(PortPolicy::default()));
        let limit = ConductThresholds { throttle: Some(7), ..ConductThresholds::default() };
        let limits = BTreeMap::from([("mailbox".to_owned(), limit)]);
        let storm = Some(StormControlSettings { multicast: Some(5000), ..StormControlSettings::default() });
        let policy = PortSettings { limits, storm, ..PortSettings::default() }.policy(4).unwrap();
        let mailbox = policy.limits[Offence::Mailbox as usize];
        assert_eq!((mailbox.warn, mailbox.throttle, mailbox.quarantine), (200, 7, 0));
        assert_eq!((policy.storm.broadcast, policy.storm.multicast, policy.storm.window_ms), (0, 5000, 100));
    }

    #[test]
    fn settings_change_merges_storm_limits_and_replaces_mirrors() {
        let mut layers = SettingLayers::default();
        let storm = |storm| PortSettings { storm: Some(storm), ..PortSettings::default() }.leaves();
        layers.change(
            storm(StormControlSettings { broadcast: Some(1000), ..StormControlSettings::default() }),
            false,
        );
        layers.change(
            storm(StormControlSettings { interval: Some(50), ..StormControlSettings::default() }),
            true,
        );
        let both = MirrorRule { vfs: vec![0], uplink: Some(UplinkDirection::Both), ..RULE };
        layers.change(mirror(2, Some(both)).leaves(), false);
        let egress = MirrorRule { uplink: Some(UplinkDirection::Egress), ..RULE };
        layers.change(mirror(2, Some(egress.clone())).leaves(), false);
        let names: Vec<_> = layers.origins().into_keys().collect();
        assert_eq!(names, ["mirror.2", "storm.broadcast", "storm.interval"]);
        let policy = layers.effective::<PortSettings>().unwrap().policy(4).unwrap();
        let told = PortSettings::of(&policy, LinkLocalPolicy::Forward, 4);
        assert_eq!(told.link_local, Some(LinkLocalPolicy::Forward));
        assert_eq!(
            told.storm,
            Some(StormControlSettings { broadcast: Some(1000), multicast: Some(0), interval: Some(50) })
        );
        assert_eq!(told.mirror, BTreeMap::from([("2".to_owned(), Some(egress))]));
        assert_eq!(PortSettings::from_leaves(&told.leaves()).unwrap(), told);
        layers.change(mirror(2, None).leaves(), true);
        assert_eq!(layers.effective::<PortSettings>().unwrap().policy(4).unwrap().mirrors, [None; 4]);
    }

    #[test]
    fn mirror_rule_survives_conversion_to_settings_and_back() {
        let vlans = Some("10,20-29".to_owned());
        for uplink in
            [None, Some(UplinkDirection::Ingress), Some(UplinkDirection::Egress), Some(UplinkDirection::Both)]
        {
            let rule = MirrorRule { vfs: vec![0, 3], uplink, vlans: vlans.clone(), ..RULE };
            let policy = mirror(2, Some(rule.clone())).policy(4).unwrap();
            assert_eq!(policy.mirrors[2].as_ref().map(MirrorRule::from), Some(rule));
        }
    }

    #[test]
    fn refused_port_setting_is_named_in_the_error() {
        assert_eq!(refused(&mirror(4, Some(RULE))), "mirror");
        assert_eq!(refused(&mirror(0, Some(MirrorRule { to: 4, ..RULE }))), "mirror.to");
        assert_eq!(refused(&mirror(0, Some(MirrorRule { vfs: vec![9], ..RULE }))), "mirror.vfs");
        assert_eq!(refused(&mirror(0, Some(MirrorRule { vlans: Some("x".into()), ..RULE }))), "mirror.vlans");
        let limits = BTreeMap::from([("noise".to_owned(), ConductThresholds::default())]);
        assert_eq!(refused(&PortSettings { limits, ..PortSettings::default() }), "limits");
    }
}
