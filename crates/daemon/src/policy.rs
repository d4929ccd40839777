//! What an administrator may say of a VF, and of a port (`port`), in the configuration file and by command: the same
//! words with the same meaning, which are iproute2's where it has one. Left out: the rules that depend on the card
//! (`driver::pf`).

mod port;

pub use port::{Direction, Limit, MirrorRule, PortChange, Storm};

use crate::config::vlans;
use crate::control::status::LinkState;
use driver::pf::{InterruptBounds, Link, PolicyError, PortVlan, VfPolicy};
use i82576::MacAddress;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A change of a VF's policy. What is not given stays; if one part is refused, nothing is changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Change {
    /// Its link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<LinkState>,
    /// Its Ethernet address, which the guest may then not change; all zeros leave the choice to the guest again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Port VLAN, 1 to 4094; 0 is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Priority of the port VLAN, 0 to 7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qos: Option<u8>,
    /// Protocol of the port VLAN: 802.1Q is all that the card has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proto: Option<String>,
    /// The VLANs that the guest may join: "any", or ids and ranges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlans: Option<String>,
    /// Anti-spoofing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spoofchk: Option<bool>,
    /// The guest may change an administrator's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<bool>,
    /// The most that the guest may send, Mb/s; 0 lifts the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tx_rate: Option<u32>,
    /// The least that the guest may send: 0, because the card guarantees nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_tx_rate: Option<u32>,
    /// The guest may ask for every multicast frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allmulti: Option<bool>,
    /// The longest packet that the guest may ask to receive; 0 lifts the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_mtu: Option<u16>,
    /// What the guest receives is spread over its two queues; its driver has to use both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rss: Option<bool>,
    /// The guest is interrupted at least so often, a second, when there is something to say; 0 leaves it to the guest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_interrupts: Option<u32>,
    /// The guest is interrupted at most so often, a second; 0 leaves it to the guest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_interrupts: Option<u32>,
    /// Who chooses the guest's interrupt rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coalesce: Option<Coalesce>,
    /// Shuts the VF in, or lets it out; by command only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<bool>,
}

/// Who chooses a guest's interrupt rate, within its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coalesce {
    /// The guest's driver.
    Guest,
    /// The host: as few as the packet rate allows.
    Adaptive,
}

/// A part of a change that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{key}: {problem}")]
pub struct ChangeError {
    /// The part.
    pub key: &'static str,
    /// What is wrong, and what would be right.
    pub problem: String,
}

fn refuse<T>(key: &'static str, problem: impl Into<String>) -> Result<T, ChangeError> {
    Err(ChangeError { key, problem: problem.into() })
}

impl Change {
    /// A change of the link alone.
    #[must_use]
    pub fn link(state: LinkState) -> Self {
        Self { state: Some(state), ..Self::default() }
    }

    /// The policy that a VF has after the change; `own` is the address it has if the administrator sets none.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn apply(&self, policy: VfPolicy, own: MacAddress) -> Result<VfPolicy, ChangeError> {
        let (mac, admin_mac) = self.address(&policy, own)?;
        let changed = VfPolicy {
            mac,
            admin_mac,
            vlan: self.port_vlan(policy.vlan)?,
            spoof_check: self.spoofchk.unwrap_or(policy.spoof_check),
            trust: self.trust.unwrap_or(policy.trust),
            link: self.state.map_or(policy.link, Link::from),
            all_multicast: self.allmulti.unwrap_or(policy.all_multicast),
            rss: self.rss.unwrap_or(policy.rss),
            interrupts: self.interrupts(policy.interrupts),
            max_tx_rate: self.max_tx_rate.unwrap_or(policy.max_tx_rate),
            max_mtu: self.max_mtu.map_or(policy.max_mtu, |mtu| Some(mtu).filter(|mtu| *mtu > 0)),
            ..policy
        };
        let changed = self.limits(changed)?;
        changed.check()?;
        Ok(changed)
    }

    fn address(&self, policy: &VfPolicy, own: MacAddress) -> Result<(Option<MacAddress>, bool), ChangeError> {
        let Some(text) = &self.mac else { return Ok((policy.mac, policy.admin_mac)) };
        match text.parse::<MacAddress>() {
            Ok(MacAddress::ZERO) => Ok((Some(own), false)),
            Ok(mac) if mac.is_valid_unicast() => Ok((Some(mac), true)),
            Ok(mac) => {
                refuse("mac", format!("{mac} is no station's own address: the first byte must be even"))
            }
            Err(error) => refuse("mac", format!("{text:?}: {error}")),
        }
    }

    fn port_vlan(&self, before: Option<PortVlan>) -> Result<Option<PortVlan>, ChangeError> {
        if let Some(proto) = self.proto.as_ref().filter(|proto| !proto.eq_ignore_ascii_case("802.1Q")) {
            return refuse("proto", format!("{proto:?} is not 802.1Q, the only one that the card has"));
        }
        let vlan = match (self.vlan, self.qos) {
            (Some(0), _) => None,
            (Some(id), qos) => Some(PortVlan { id, qos: qos.unwrap_or(0) }),
            (None, Some(qos)) => before.map(|vlan| PortVlan { qos, ..vlan }),
            (None, None) => before,
        };
        match (vlan, self.qos) {
            (_, Some(qos)) if qos > 7 => refuse("qos", format!("{qos} is not 0 to 7")),
            (Some(PortVlan { id, .. }), _) if id > 4094 => {
                refuse("vlan", format!("{id} is not 1 to 4094, or 0 for none"))
            }
            (None, Some(_)) if self.vlan.is_none() => refuse("qos", "needs a vlan beside it"),
            _ => Ok(vlan),
        }
    }

    fn interrupts(&self, before: InterruptBounds) -> InterruptBounds {
        InterruptBounds {
            least_hz: self.min_interrupts.unwrap_or(before.least_hz),
            most_hz: self.max_interrupts.unwrap_or(before.most_hz),
            adaptive: self.coalesce.map_or(before.adaptive, |who| who == Coalesce::Adaptive),
        }
    }

    fn limits(&self, mut policy: VfPolicy) -> Result<VfPolicy, ChangeError> {
        if let Some(list) = &self.vlans {
            let parsed = vlans::parse(list);
            policy.vlans = parsed.map_err(|problem| ChangeError { key: "vlans", problem })?;
        }
        if self.min_tx_rate.is_some_and(|rate| rate > 0) {
            return refuse("min_tx_rate", "the card cannot guarantee a least rate: it must be 0");
        }
        Ok(policy)
    }
}

/// The key that the PF driver has refused.
impl From<PolicyError> for ChangeError {
    fn from(error: PolicyError) -> Self {
        let key = match error {
            PolicyError::Mac(_) | PolicyError::MacInUse(..) => "mac",
            PolicyError::Vlan(_) | PolicyError::VlanNotAllowed(_) | PolicyError::NoVlanFilter => "vlan",
            PolicyError::Rate(_) | PolicyError::NoLink => "max_tx_rate",
            PolicyError::LeastRate => "min_tx_rate",
            PolicyError::Mtu(_) => "max_mtu",
            PolicyError::InterruptCeiling(_) => "max_interrupts",
            PolicyError::InterruptFloor(..) => "min_interrupts",
        };
        Self { key, problem: error.to_string() }
    }
}

impl From<LinkState> for Link {
    fn from(state: LinkState) -> Self {
        match state {
            LinkState::Auto => Self::Auto,
            LinkState::Enable => Self::Enable,
            LinkState::Disable => Self::Disable,
        }
    }
}

impl From<Link> for LinkState {
    fn from(link: Link) -> Self {
        match link {
            Link::Auto => Self::Auto,
            Link::Enable => Self::Enable,
            Link::Disable => Self::Disable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Change;
    use crate::control::status::LinkState;
    use driver::pf::{Link, PortVlan, VfPolicy};
    use i82576::MacAddress;

    const OWN: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

    fn refused(change: &Change) -> &'static str {
        change.apply(VfPolicy::default(), OWN).expect_err("is refused").key
    }

    #[test]
    fn what_is_not_given_stays() {
        let policy =
            VfPolicy { trust: true, max_mtu: Some(1500), link: Link::Disable, ..VfPolicy::default() };
        assert_eq!(Change::default().apply(policy, OWN), Ok(policy));
        let linked = Change::link(LinkState::Enable).apply(policy, OWN);
        assert_eq!(linked, Ok(VfPolicy { link: Link::Enable, ..policy }));
    }

    #[test]
    fn an_address_of_zeros_leaves_the_choice_to_the_guest() {
        let set =
            |mac: &str, policy| Change { mac: Some(mac.into()), ..Change::default() }.apply(policy, OWN);
        let fixed = set("02:00:00:00:00:09", VfPolicy::default()).unwrap();
        assert_eq!((fixed.mac, fixed.admin_mac), (Some(MacAddress([2, 0, 0, 0, 0, 9])), true));
        let free = set("00:00:00:00:00:00", fixed).unwrap();
        assert_eq!((free.mac, free.admin_mac), (Some(OWN), false));
    }

    #[test]
    fn a_port_vlan_is_set_kept_and_cleared_as_iproute2_does() {
        let vlan = |vlan, qos| Change { vlan, qos, ..Change::default() };
        let on = vlan(Some(100), Some(3)).apply(VfPolicy::default(), OWN).unwrap();
        assert_eq!(on.vlan, Some(PortVlan { id: 100, qos: 3 }));
        assert_eq!(vlan(None, Some(5)).apply(on, OWN).unwrap().vlan, Some(PortVlan { id: 100, qos: 5 }));
        assert_eq!(vlan(Some(7), None).apply(on, OWN).unwrap().vlan, Some(PortVlan { id: 7, qos: 0 }));
        assert_eq!(vlan(Some(0), Some(0)).apply(on, OWN).unwrap().vlan, None);
    }

    #[test]
    fn each_refusal_names_its_key() {
        let change = Change::default;
        assert_eq!(refused(&Change { mac: Some("01:00:5e:00:00:01".into()), ..change() }), "mac");
        assert_eq!(refused(&Change { mac: Some("x".into()), ..change() }), "mac");
        assert_eq!(refused(&Change { vlan: Some(4095), ..change() }), "vlan");
        assert_eq!(refused(&Change { vlan: Some(1), qos: Some(8), ..change() }), "qos");
        assert_eq!(refused(&Change { qos: Some(1), ..change() }), "qos");
        assert_eq!(refused(&Change { proto: Some("802.1ad".into()), ..change() }), "proto");
        assert_eq!(refused(&Change { vlans: Some("0".into()), ..change() }), "vlans");
        assert_eq!(refused(&Change { max_tx_rate: Some(1001), ..change() }), "max_tx_rate");
        assert_eq!(refused(&Change { min_tx_rate: Some(1), ..change() }), "min_tx_rate");
        assert_eq!(refused(&Change { max_mtu: Some(67), ..change() }), "max_mtu");
        assert_eq!(refused(&Change { max_mtu: Some(9707), ..change() }), "max_mtu");
        assert_eq!(refused(&Change { max_interrupts: Some(100), ..change() }), "max_interrupts");
        let bounds = Change { min_interrupts: Some(2_000), max_interrupts: Some(1_000), ..change() };
        assert_eq!(refused(&bounds), "min_interrupts");
        assert_eq!(refused(&Change { vlan: Some(9), vlans: Some("10".into()), ..change() }), "vlan");
        assert!(Change { proto: Some("802.1q".into()), ..change() }.apply(VfPolicy::default(), OWN).is_ok());
    }
}
