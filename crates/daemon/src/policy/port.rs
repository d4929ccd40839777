//! What an administrator may say of a port, in the configuration file and by command: thresholds of conduct, storm
//! control, mirror rules. Left out: what the card makes of it (`driver::pf`).

use super::{ChangeError, refuse};
use crate::config::vlans;
use driver::pf::{Mirror, Offence, PortPolicy, PortPolicyError, StormControl, VlanSet};
use i82576::VfIndex;
use i82576::ids::MIRROR_RULES;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A change of a port's policy. What is not given stays; if one part is refused, nothing is changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortChange {
    /// Thresholds, by the kind of conduct.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, Limit>,
    /// Storm control.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storm: Option<Storm>,
    /// Mirror rules by number, "0" to "3"; none takes a rule away.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mirrors: BTreeMap<String, Option<MirrorRule>>,
}

/// Events a second from which on a VF is spoken of, slowed down, or shut in; 0 is never.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limit {
    /// It is said.
    pub warn: Option<u32>,
    /// The VF is slowed down for ten seconds.
    pub throttle: Option<u32>,
    /// The VF is shut in until it is let out by hand.
    pub quarantine: Option<u32>,
}

/// How much of broadcasts and multicasts the port's VFs get.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Storm {
    /// Broadcasts, Kb/s; 0 lifts the limit.
    pub broadcast: Option<u32>,
    /// Multicasts, Kb/s; 0 lifts the limit.
    pub multicast: Option<u32>,
    /// Over how many milliseconds they are counted, 1 to 1000. At the start: 100.
    pub interval: Option<u16>,
}

/// Which frames are copied to a VF; at least one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MirrorRule {
    /// The VF that gets the copies, by its number.
    pub to: u8,
    /// VFs, by their numbers: what they receive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vfs: Vec<u8>,
    /// What comes from the uplink, what goes there, or both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink: Option<Direction>,
    /// VLANs: "any", or ids and ranges. Frames of these, wherever they come from, while a VF is a member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlans: Option<String>,
}

/// A direction, in tc's words: ingress comes from the uplink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the uplink.
    Ingress,
    /// To the uplink.
    Egress,
    /// Either.
    Both,
}

impl PortChange {
    /// The policy that a port of so many VFs has after the change. What the card cannot do is left for it to refuse.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn apply(&self, mut policy: PortPolicy, vfs: usize) -> Result<PortPolicy, ChangeError> {
        for (kind, limit) in &self.limits {
            let Some(offence) = Offence::ALL.into_iter().find(|offence| offence.name() == kind) else {
                let kinds = Offence::ALL.map(Offence::name).join(", ");
                return refuse("limits", format!("{kind:?} is none of {kinds}"));
            };
            let thresholds = &mut policy.limits[offence as usize];
            thresholds.warn = limit.warn.unwrap_or(thresholds.warn);
            thresholds.throttle = limit.throttle.unwrap_or(thresholds.throttle);
            thresholds.quarantine = limit.quarantine.unwrap_or(thresholds.quarantine);
        }
        if let Some(storm) = self.storm {
            let before = policy.storm;
            policy.storm = StormControl {
                broadcast: storm.broadcast.unwrap_or(before.broadcast),
                multicast: storm.multicast.unwrap_or(before.multicast),
                window_ms: storm.interval.unwrap_or(before.window_ms),
            };
        }
        for (number, rule) in &self.mirrors {
            let place = number.parse().ok().and_then(|number: usize| policy.mirrors.get_mut(number));
            let Some(place) = place else {
                return refuse(
                    "mirror",
                    format!("the card has {MIRROR_RULES} rules, from 0; {number} is none"),
                );
            };
            *place = rule.as_ref().map(|rule| rule.resolve(vfs)).transpose()?;
        }
        Ok(policy)
    }
}

impl MirrorRule {
    fn resolve(&self, vfs: usize) -> Result<Mirror, ChangeError> {
        let known = |key, n: u8| match VfIndex::new(n).filter(|vf| vf.index() < vfs) {
            Some(vf) => Ok(vf),
            None => refuse(key, format!("{n} is beyond the port's {vfs} VFs")),
        };
        let mut watched = 0;
        for vf in &self.vfs {
            watched |= known("mirror.vfs", *vf)?.bit() as u8;
        }
        let on = |direction| self.uplink.is_some_and(|on| on == direction || on == Direction::Both);
        Ok(Mirror {
            to: known("mirror.to", self.to)?,
            vfs: watched,
            ingress: on(Direction::Ingress),
            egress: on(Direction::Egress),
            vlans: self.vlans.as_deref().map(named_vlans).transpose()?,
        })
    }
}

fn named_vlans(list: &str) -> Result<VlanSet, ChangeError> {
    match vlans::parse(list) {
        Ok(set) => Ok(set.unwrap_or_else(|| (vlans::FIRST..=vlans::LAST).collect())),
        Err(problem) => refuse("mirror.vlans", problem),
    }
}

impl From<&Mirror> for MirrorRule {
    fn from(mirror: &Mirror) -> Self {
        let uplink = match (mirror.ingress, mirror.egress) {
            (true, true) => Some(Direction::Both),
            (true, false) => Some(Direction::Ingress),
            (false, true) => Some(Direction::Egress),
            (false, false) => None,
        };
        let vfs = VfIndex::all().filter(|vf| u32::from(mirror.vfs) & vf.bit() != 0);
        Self {
            to: mirror.to.get(),
            vfs: vfs.map(VfIndex::get).collect(),
            uplink,
            vlans: mirror.vlans.as_ref().map(|set| vlans::print(Some(set))),
        }
    }
}

/// The key that the card has refused.
impl From<PortPolicyError> for ChangeError {
    fn from(error: PortPolicyError) -> Self {
        let key = match error {
            PortPolicyError::EmptyMirror(_) | PortPolicyError::OwnMirror(_) => "mirror",
            PortPolicyError::Window(_) => "storm.interval",
            PortPolicyError::StormRate(..) | PortPolicyError::SmallStormRate(..) => "storm",
        };
        Self { key, problem: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Direction, Limit, MirrorRule, PortChange, Storm};
    use driver::pf::{Offence, PortPolicy};
    use std::collections::BTreeMap;

    const RULE: MirrorRule = MirrorRule { to: 1, vfs: Vec::new(), uplink: None, vlans: None };

    fn refused(change: &PortChange) -> &'static str {
        change.apply(PortPolicy::default(), 4).expect_err("is refused").key
    }

    fn mirror(number: u8, rule: MirrorRule) -> PortChange {
        PortChange { mirrors: BTreeMap::from([(number.to_string(), Some(rule))]), ..PortChange::default() }
    }

    #[test]
    fn what_is_not_given_stays() {
        assert_eq!(PortChange::default().apply(PortPolicy::default(), 4), Ok(PortPolicy::default()));
        let limit = Limit { throttle: Some(7), ..Limit::default() };
        let limits = BTreeMap::from([("mailbox".to_owned(), limit)]);
        let storm = Some(Storm { multicast: Some(5), ..Storm::default() });
        let changed = PortChange { limits, storm, ..PortChange::default() };
        let policy = changed.apply(PortPolicy::default(), 4).unwrap();
        let mailbox = policy.limits[Offence::Mailbox as usize];
        assert_eq!((mailbox.warn, mailbox.throttle, mailbox.quarantine), (200, 7, 0));
        assert_eq!((policy.storm.broadcast, policy.storm.multicast, policy.storm.window_ms), (0, 5, 100));
    }

    #[test]
    fn a_rule_is_told_as_it_was_given() {
        let vlans = Some("10,20-29".to_owned());
        for uplink in [None, Some(Direction::Ingress), Some(Direction::Egress), Some(Direction::Both)] {
            let rule = MirrorRule { vfs: vec![0, 3], uplink, vlans: vlans.clone(), ..RULE };
            let policy = mirror(2, rule.clone()).apply(PortPolicy::default(), 4).unwrap();
            assert_eq!(policy.mirrors[2].as_ref().map(MirrorRule::from), Some(rule));
            let gone =
                PortChange { mirrors: BTreeMap::from([("2".to_owned(), None)]), ..PortChange::default() };
            assert_eq!(gone.apply(policy, 4), Ok(PortPolicy::default()));
        }
    }

    #[test]
    fn each_refusal_names_its_key() {
        assert_eq!(refused(&mirror(4, RULE)), "mirror");
        assert_eq!(refused(&mirror(0, MirrorRule { to: 4, ..RULE })), "mirror.to");
        assert_eq!(refused(&mirror(0, MirrorRule { vfs: vec![9], ..RULE })), "mirror.vfs");
        assert_eq!(refused(&mirror(0, MirrorRule { vlans: Some("x".into()), ..RULE })), "mirror.vlans");
        let limits = BTreeMap::from([("noise".to_owned(), Limit::default())]);
        assert_eq!(refused(&PortChange { limits, ..PortChange::default() }), "limits");
    }
}
