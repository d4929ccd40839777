//! What the administrator decides for a VF, in iproute2's words, and which changes a running VF notices by a reset:
//! those that i40e resets a VF for, and those that its driver reads once. Left out: what the VF asks for itself.

use super::counters::Refusal;
use super::{Card, Pf};
use crate::pf::{LAST_VLAN, Link, PortVlan, VlanSet};
use ::avf::control::Order;
use ::avf::ids::{BASE_PAIRS, LINK_SPEED, MAX_FRAME, MAX_PAIRS};
use i82576::MacAddress;
use serde::{Deserialize, Serialize};

/// The administrator's decisions for one VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "AvfPolicy")]
pub struct VfPolicy {
    /// The address that the VF is given. Without one it makes one up.
    pub mac: Option<MacAddress>,
    /// The address is the administrator's: the VF may use no other, unless trusted.
    pub admin_mac: bool,
    /// Puts the VF on one VLAN; `None` lets it join VLANs itself.
    pub vlan: Option<PortVlan>,
    /// The VLANs that the VF may join; `None` is any.
    pub vlans: Option<VlanSet>,
    /// Frames with a source address or VLAN that is not the VF's are dropped.
    pub spoofchk: bool,
    /// The VF may change its address, use another function's, have many addresses and VLANs, and receive everything.
    pub trust: bool,
    /// The VF may receive every multicast, if it is trusted.
    pub allmulti: bool,
    /// The VF may send and receive.
    pub enabled: bool,
    /// What the VF is shown of the link.
    pub state: Link,
    /// The longest frame, tag and frame check sequence included.
    pub max_frame: u16,
    /// Queue pairs that a VF has that asks for no number.
    pub pairs: u16,
    /// Queue pairs that it may ask for.
    pub most_pairs: u16,
    /// The most that it may send, Mb/s; 0 is no limit.
    pub max_tx_rate: u32,
    /// The VF and others that may share addresses may have the same ones.
    pub share_mac: bool,
}

impl Default for VfPolicy {
    fn default() -> Self {
        Self {
            mac: None,
            admin_mac: false,
            vlan: None,
            vlans: None,
            spoofchk: true,
            trust: false,
            allmulti: true,
            enabled: true,
            state: Link::Auto,
            max_frame: MAX_FRAME as u16,
            pairs: BASE_PAIRS as u16,
            most_pairs: MAX_PAIRS as u16,
            max_tx_rate: 0,
            share_mac: false,
        }
    }
}

/// Why a policy makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// There is no such VF.
    #[error("the port has no VF {0}")]
    NoSuchVf(u8),
    /// Zero or a group address.
    #[error("{0} is not a unicast address")]
    Mac(MacAddress),
    /// Whoever has another's address receives what is meant for it.
    #[error("{0} is the address of vf{1}; choose another")]
    MacInUse(MacAddress, u8),
    /// Not a VLAN id or priority.
    #[error(
        "port VLAN {} with priority {} is out of range (VLAN 1 to {LAST_VLAN}, or 0 for a priority alone; priority 0 to 7)",
        .0.id, .0.qos
    )]
    Vlan(PortVlan),
    /// The port VLAN is none of [`VfPolicy::vlans`].
    #[error("VLAN {0} is none of those that the VF may join; add it to them, or let them be any")]
    VlanNotAllowed(u16),
    /// Shorter than every Ethernet carries, or longer than the card takes.
    #[error("frames of {0} bytes are not possible (1522 to {MAX_FRAME})")]
    Frame(u16),
    /// The rate is above the speed of the link, Mb/s.
    #[error("{0} Mb/s are more than the link's {LINK_SPEED}; 0 is no limit")]
    Rate(u32),
    /// None, or more than a VF can have.
    #[error("{0} of {1} queue pairs are not possible (1 to {MAX_PAIRS}, the first not above the second)")]
    Pairs(u16, u16),
}

/// Bytes of a VLAN tag.
const TAG: u16 = 4;
/// The longest frame that every Ethernet carries, tag and frame check sequence included.
const STANDARD_FRAME: u16 = 1522;

impl VfPolicy {
    /// Whether the policy makes sense by itself.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn check(&self) -> Result<(), PolicyError> {
        if let Some(mac) = self.mac.filter(|mac| !mac.is_valid_unicast()) {
            return Err(PolicyError::Mac(mac));
        }
        if !(STANDARD_FRAME..=MAX_FRAME as u16).contains(&self.max_frame) {
            return Err(PolicyError::Frame(self.max_frame));
        }
        if self.max_tx_rate > LINK_SPEED {
            return Err(PolicyError::Rate(self.max_tx_rate));
        }
        if self.pairs == 0 || self.pairs > self.most_pairs || usize::from(self.most_pairs) > MAX_PAIRS {
            return Err(PolicyError::Pairs(self.pairs, self.most_pairs));
        }
        match self.vlan {
            Some(vlan) if !vlan.is_valid() => Err(PolicyError::Vlan(vlan)),
            Some(vlan) if vlan.id != 0 && !self.allows_vlan(vlan.id) => {
                Err(PolicyError::VlanNotAllowed(vlan.id))
            }
            _ => Ok(()),
        }
    }

    /// Returns the longest frame for the VF's driver. A port VLAN's tag, which the driver never sees, has to fit as well.
    pub(super) fn longest_frame(&self) -> u16 {
        self.max_frame.min(MAX_FRAME as u16 - if self.vlan.is_some() { TAG } else { 0 })
    }

    /// Whether the VF may join a VLAN.
    pub(super) fn allows_vlan(&self, vlan: u16) -> bool {
        self.vlans.is_none_or(|allowed| allowed.contains(vlan))
    }

    /// Whether a running VF must start anew to notice the difference.
    fn differs_beyond_notice(&self, old: &Self) -> bool {
        (self.mac, self.admin_mac, self.vlan) != (old.mac, old.admin_mac, old.vlan)
            || (self.trust, self.enabled, self.max_frame) != (old.trust, old.enabled, old.max_frame)
            || (self.pairs, self.most_pairs) != (old.pairs, old.most_pairs)
            || self.allmulti != old.allmulti
    }
}

impl Pf {
    /// The policy of a VF.
    #[must_use]
    pub fn policy(&self, vf: u8) -> Option<&VfPolicy> {
        self.vfs.get(usize::from(vf)).map(|state| &state.policy)
    }

    /// Whether a VF could have a policy now. Answers the one that it has.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn check_policy(&self, vf: u8, policy: &VfPolicy) -> Result<VfPolicy, PolicyError> {
        policy.check()?;
        let old = *self.policy(vf).ok_or(PolicyError::NoSuchVf(vf))?;
        let new = policy.mac.filter(|mac| Some(*mac) != old.mac);
        match new.and_then(|mac| Some((mac, self.owners(mac, vf).next()?))) {
            Some((mac, owner)) => Err(PolicyError::MacInUse(mac, owner)),
            None => Ok(old),
        }
    }

    /// Sets the policy of a VF. Link, spoof check, rate, allowed VLANs and sharing of addresses change at once. For anything
    /// else a running VF is reset, and told so before.
    ///
    /// # Errors
    /// [`PolicyError`]: nothing is changed.
    pub fn set_policy<H: Card>(&mut self, hal: &mut H, vf: u8, policy: VfPolicy) -> Result<(), PolicyError> {
        let old = self.check_policy(vf, &policy)?;
        let state = self.state_mut(vf);
        if (policy.pairs, policy.most_pairs) != (old.pairs, old.most_pairs) {
            state.pairs = policy.pairs;
        }
        if policy.mac != old.mac {
            state.mac = policy.mac;
        }
        state.policy = policy;
        if policy.differs_beyond_notice(&old) {
            self.reset_with_notice(hal, vf);
            return Ok(());
        }
        hal.order(vf, Order::SpoofCheck(policy.spoofchk));
        self.hold_back(hal, vf);
        self.follow_vlan_policy(hal, vf);
        if policy.state != old.state {
            self.tell_link(hal, vf);
        }
        Ok(())
    }

    /// Returns the VFs other than this one that have an address: they receive by it, or are promised it.
    fn owners(&self, mac: MacAddress, other_than: u8) -> impl Iterator<Item = u8> {
        let has = move |vf: &u8| {
            let state = self.state(*vf);
            state.policy.mac == Some(mac) || state.mac == Some(mac) || state.addresses.contains(&mac)
        };
        self.vfs().filter(move |vf| *vf != other_than).filter(has)
    }

    /// Checks that a VF may receive by an address, whoever has it. A trusted VF may by any, and all may by a virtual router's.
    pub(super) fn may_use(&self, vf: u8, mac: MacAddress) -> Result<(), Refusal> {
        let VfPolicy { trust, share_mac, .. } = self.state(vf).policy;
        let shares = |owner| share_mac && self.state(owner).policy.share_mac;
        let free = || mac.is_virtual_router() || self.owners(mac, vf).all(shares);
        if trust || free() { Ok(()) } else { Err(Refusal::AddressInUse) }
    }
}
