//! The administrator's policy for a VF, and its way into registers.
//! Left out: requests of the VF (`messages`).

use super::counters::Refusal;
use super::moderate::CEILINGS_HZ;
use super::switch::update;
use super::{InterruptBounds, LAST_VLAN, Pf, PortVlan, VlanSet};
use crate::hal::Hal;
use core::fmt;
use i82576::bits::{dtxswc, rttbcnrc, vmolr, vmvir};
use i82576::ids::{FCS, LINK_SPEED, MAX_FRAME};
use i82576::register as r;
use i82576::{MacAddress, VfIndex};
use serde::{Deserialize, Serialize};

/// What a VF is shown of the link, in iproute2's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Link {
    /// The port's.
    #[default]
    Auto,
    /// Always up: VFs reach each other without the port's link.
    Enable,
    /// Always down.
    Disable,
}

/// The administrator's decisions for one VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VfPolicy {
    /// The address VF_RESET gives. `None` is refused, and the guest invents one.
    pub mac: Option<MacAddress>,
    /// The address is the administrator's: the VF may not change it, unless trusted.
    pub admin_mac: bool,
    /// Puts the VF on one VLAN; `None` lets it join VLANs itself.
    pub vlan: Option<PortVlan>,
    /// The VLANs that the VF may join; `None` is any.
    pub vlans: Option<VlanSet>,
    /// Drop frames with a source address or VLAN that is not the VF's.
    pub spoofchk: bool,
    /// The VF may change an address in spite of `admin_mac`, and use another function's.
    pub trust: bool,
    /// The VF may send and receive.
    pub enabled: bool,
    /// What the VF is shown of the link.
    pub state: Link,
    /// The VF may ask for every multicast frame.
    pub allmulti: bool,
    /// The longest packet that the VF may ask to receive, without Ethernet's header, [`LEAST_MTU`] to [`MOST_MTU`];
    /// `None` is as long as the card takes.
    pub max_mtu: Option<u16>,
    /// What the VF receives is spread over its two queues by flow. A driver that uses the first queue only loses what
    /// is for the second.
    pub rss: bool,
    /// How often its guest may be interrupted.
    pub interrupts: InterruptBounds,
    /// The most that it may send, Mb/s, frame check sequences counted; 0 is no limit.
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
            enabled: true,
            state: Link::Auto,
            allmulti: true,
            max_mtu: None,
            rss: false,
            interrupts: InterruptBounds { min_interrupts: 0, max_interrupts: 0, adaptive: false },
            max_tx_rate: 0,
            share_mac: false,
        }
    }
}

/// Why a policy makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// Zero or a group address.
    #[error("{0} is not a unicast address")]
    Mac(MacAddress),
    /// Whoever has another's address receives what is meant for it.
    #[error("{0} is the address of {1}; choose another")]
    MacInUse(MacAddress, AddressOwner),
    /// Not a VLAN id or priority.
    #[error(
        "port VLAN {} with priority {} is out of range (VLAN 1 to {LAST_VLAN}, or 0 for a priority alone; priority 0 to 7)",
        .0.id, .0.qos
    )]
    Vlan(PortVlan),
    /// The port VLAN is none of [`VfPolicy::vlans`].
    #[error("VLAN {0} is none of those that the VF may join; add it to them, or let them be any")]
    VlanNotAllowed(u16),
    /// All VLAN filters are in use.
    #[error("no VLAN filter is left")]
    NoVlanFilter,
    /// The rate is above the speed of the link, Mb/s.
    #[error("{0} Mb/s are more than the link's {LINK_SPEED}; 0 is no limit")]
    Rate(u32),
    /// A rate is a part of the link's, which has none while it is down.
    #[error("a rate can be set while the port has a link only")]
    NoLink,
    /// The card guarantees no rate.
    #[error("the card cannot guarantee a least rate: it must be 0")]
    LeastRate,
    /// Shorter than IPv4 allows, or longer than the card takes.
    #[error("an MTU of {0} is not possible ({LEAST_MTU} to {MOST_MTU})")]
    Mtu(u16),
    /// EITR has no interval that keeps to it.
    #[error("{0} interrupts a second are no ceiling that the card can hold ({least} to {most}); 0 is none", least = CEILINGS_HZ.start(), most = CEILINGS_HZ.end())]
    InterruptCeiling(u32),
    /// The first number is more than the second, the ceiling.
    #[error(
        "a floor of {0} interrupts a second is above the ceiling of {1}; lower the floor or raise the ceiling"
    )]
    InterruptFloor(u32, u32),
}

/// Who has an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressOwner {
    /// The port itself.
    Port,
    /// A VF, in use or by its policy.
    Vf(VfIndex),
}

impl fmt::Display for AddressOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port => f.write_str("the port itself"),
            Self::Vf(vf) => vf.fmt(f),
        }
    }
}

/// IPv4's least (RFC 791).
pub const LEAST_MTU: u16 = 68;
/// What is around the packet in a frame: addresses and type, a VLAN tag, the check sequence.
const AROUND: u16 = 14 + 4 + FCS as u16;
/// What the longest frame holds.
pub const MOST_MTU: u16 = MAX_FRAME as u16 - AROUND;
/// What a VF receives that asked for nothing, tag and check sequence included.
const STANDARD_FRAME: u32 = 1522;

/// A card that is looked at this late, milliseconds, still keeps every rate, up to what [`MOST_RATE_WINDOW`] holds:
/// eight at the link's speed. What is later is lost.
const LATENESS_MS: u32 = 10;
/// What a rate may make up for, KB: what Linux igb writes, which a card in silicon never needs, and all that
/// RTTBCNRM holds.
const LEAST_RATE_WINDOW: u32 = 0x14;
const MOST_RATE_WINDOW: u32 = 0x3ff;

impl VfPolicy {
    /// The longest frame that the VF may ask for, check sequence included.
    pub(super) fn longest_frame(&self) -> u32 {
        self.max_mtu.map_or(MAX_FRAME as u32, |mtu| u32::from(mtu + AROUND))
    }

    /// Whether the VF may join a VLAN.
    pub(super) fn allows_vlan(&self, vlan: u16) -> bool {
        self.vlans.is_none_or(|allowed| allowed.contains(vlan))
    }

    /// Whether the policy makes sense by itself.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn check(&self) -> Result<(), PolicyError> {
        if let Some(mac) = self.mac.filter(|mac| !mac.is_valid_unicast()) {
            return Err(PolicyError::Mac(mac));
        }
        if self.max_tx_rate > LINK_SPEED {
            return Err(PolicyError::Rate(self.max_tx_rate));
        }
        if let Some(mtu) = self.max_mtu.filter(|mtu| !(LEAST_MTU..=MOST_MTU).contains(mtu)) {
            return Err(PolicyError::Mtu(mtu));
        }
        self.interrupts.check()?;
        match self.vlan {
            Some(vlan) if !vlan.is_valid() => Err(PolicyError::Vlan(vlan)),
            Some(vlan) if vlan.id != 0 && !self.allows_vlan(vlan.id) => {
                Err(PolicyError::VlanNotAllowed(vlan.id))
            }
            _ => Ok(()),
        }
    }
}

impl Pf {
    /// The policy of a VF.
    #[must_use]
    pub fn policy(&self, vf: VfIndex) -> &VfPolicy {
        &self.state(vf).policy
    }

    /// Sets the policy of a VF, whether enabled yet or not. A changed address reaches a running guest only
    /// when it resets the VF; everything else holds at once.
    ///
    /// # Errors
    /// [`PolicyError`]: nothing is changed.
    pub fn set_policy<H: Hal>(
        &mut self,
        hal: &mut H,
        vf: VfIndex,
        policy: VfPolicy,
    ) -> Result<(), PolicyError> {
        self.admit(vf, &policy, |_| false)?;
        let old = self.state(vf).policy;
        self.state_mut(vf).policy = policy;
        if vf.get() >= self.enabled {
            return Ok(());
        }
        if old.mac != policy.mac || old.admin_mac != policy.admin_mac {
            self.use_mac(hal, vf, policy.mac);
        }
        if (old.vlan, old.vlans) != (policy.vlan, policy.vlans) {
            self.follow_vlan_policy(hal, vf, &old);
        }
        if old.max_mtu != policy.max_mtu {
            self.apply_length(hal, vf, self.state(vf).asked_length);
        }
        if (old.allmulti, old.trust) != (policy.allmulti, policy.trust) {
            let state = self.state_mut(vf);
            state.all_multicast &= policy.allmulti;
            state.overflow &= policy.allmulti;
            self.apply_groups(hal, vf);
        }
        if old.rss != policy.rss {
            self.apply_scaling(hal, vf);
        }
        self.apply_spoof_check(hal, vf);
        self.apply_enable(hal, vf);
        self.apply_rate(hal, vf);
        if old.state != policy.state {
            self.notify(hal, vf);
        }
        self.follow_vlans(hal);
        Ok(())
    }

    /// Whether a VF can have a policy now, where VFs that `leaves` names give up the address that they have.
    pub(super) fn admit(
        &self,
        vf: VfIndex,
        policy: &VfPolicy,
        leaves: impl Fn(VfIndex) -> bool,
    ) -> Result<(), PolicyError> {
        policy.check()?;
        let old = &self.state(vf).policy;
        // What is not changed was granted before, or a trusted VF has come to use it since.
        if let Some(mac) = policy.mac.filter(|_| old.mac != policy.mac)
            && let Some(owner) = self.owner_of(mac, vf)
            && !matches!(owner, AddressOwner::Vf(owner) if leaves(owner) && self.is_own_mac(owner, mac))
        {
            return Err(PolicyError::MacInUse(mac, owner));
        }
        if policy.vlan.is_some_and(|vlan| !self.vlans.has_room(vf, vlan.id)) {
            return Err(PolicyError::NoVlanFilter);
        }
        if old.max_tx_rate != policy.max_tx_rate && !self.wire_up {
            return Err(PolicyError::NoLink);
        }
        Ok(())
    }

    /// Whether a VF has an address as its first, which it gives up when it gets another.
    fn is_own_mac(&self, vf: VfIndex, mac: MacAddress) -> bool {
        let state = self.state(vf);
        state.policy.mac == Some(mac) || state.mac == Some(mac)
    }

    /// Returns the function other than the VF that has an address: it receives by it, or will when it is reset.
    fn owner_of(&self, mac: MacAddress, other_than: VfIndex) -> Option<AddressOwner> {
        if mac == self.mac {
            return Some(AddressOwner::Port);
        }
        self.owners(mac, other_than).next().map(AddressOwner::Vf)
    }

    /// Returns the VFs other than this one that have an address.
    fn owners(&self, mac: MacAddress, other_than: VfIndex) -> impl Iterator<Item = VfIndex> {
        let has = move |vf: &VfIndex| self.filters.has(*vf, mac) || self.state(*vf).policy.mac == Some(mac);
        VfIndex::all().filter(move |vf| *vf != other_than).filter(has)
    }

    /// Checks that a VF may receive by an address, whoever has it. A trusted VF may by any, and all may by a virtual router's.
    pub(super) fn may_use(&self, vf: VfIndex, mac: MacAddress) -> Result<(), Refusal> {
        let VfPolicy { trust, share_mac, .. } = self.state(vf).policy;
        let shares = |owner| share_mac && self.state(owner).policy.share_mac;
        let free = || mac != self.mac && (mac.is_virtual_router() || self.owners(mac, vf).all(shares));
        if trust || free() { Ok(()) } else { Err(Refusal::AddressInUse) }
    }

    /// Limits what a VF may send, by igb's rules: while there is a link, up to its speed, and with no guaranteed
    /// rate. 0 lifts the limit.
    ///
    /// # Errors
    /// [`PolicyError::Rate`], [`PolicyError::NoLink`], [`PolicyError::LeastRate`]: nothing is changed.
    pub fn set_vf_rate<H: Hal>(
        &mut self,
        hal: &mut H,
        vf: VfIndex,
        min_tx_rate: u32,
        max_tx_rate: u32,
    ) -> Result<(), PolicyError> {
        if min_tx_rate > 0 {
            return Err(PolicyError::LeastRate);
        }
        if !self.wire_up {
            return Err(PolicyError::NoLink);
        }
        let policy = VfPolicy { max_tx_rate, ..self.state(vf).policy };
        self.set_policy(hal, vf, policy)
    }

    /// The VF's own VLANs go; what remains is the port VLAN, or untagged traffic.
    pub(super) fn apply_vlan<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) {
        let vlan = self.state(vf).policy.vlan;
        self.vlans.leave_all(hal, vf);
        // Room was checked when the policy was set, and entry 0 always exists.
        let _ = self.vlans.join(hal, vf, vlan.map_or(0, |v| v.id));
        let insert = vlan.map_or(0, |vlan| vmvir::DEFAULT | u32::from(vlan.tag()));
        hal.write(r::vmvir(vf.pool()), insert);
        self.apply_pool(hal, vf, vlan);
    }

    /// The longest frame: what the VF asked for, as far as it may, else what every Ethernet carries.
    pub(super) fn apply_length<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, asked: Option<u32>) {
        let state = self.state_mut(vf);
        state.asked_length = asked;
        let limited = state.policy.max_mtu.is_some();
        let longest = asked.unwrap_or(STANDARD_FRAME).min(state.policy.longest_frame());
        let length = if asked.is_some() || limited { vmolr::LPE | longest } else { MAX_FRAME as u32 };
        let fixed = vmolr::STRCRC | vmolr::BAM;
        update(hal, r::vmolr(vf.pool()), vmolr::LPE | vmolr::RLPML_MASK, fixed | length);
    }

    pub(super) fn apply_spoof_check<H: Hal>(&self, hal: &mut H, vf: VfIndex) {
        let bits = vf.bit() << dtxswc::MAC_SPOOF_SHIFT | vf.bit() << dtxswc::VLAN_SPOOF_SHIFT;
        let others = hal.read(r::DTXSWC) & !bits;
        hal.write(r::DTXSWC, if self.state(vf).policy.spoofchk { others | bits } else { others });
    }

    pub(super) fn apply_rate<H: Hal>(&self, hal: &mut H, vf: VfIndex) {
        let fastest = VfIndex::all().map(|vf| self.rate(vf)).max().unwrap_or(0);
        hal.write(r::RTTDQSEL, vf.get().into());
        hal.write(r::RTTBCNRM, rate_window(fastest));
        hal.write(r::RTTBCNRC, rate_factor(self.rate(vf)));
    }

    /// The most that a VF may send now, Mb/s; 0 is no limit.
    fn rate(&self, vf: VfIndex) -> u32 {
        self.conduct(vf).rate(self.state(vf).policy.max_tx_rate)
    }

    /// Opens the gates of a VF that may move frames and whose driver has introduced itself; closes all others.
    pub(super) fn apply_enable<H: Hal>(&self, hal: &mut H, vf: VfIndex) {
        let state = self.state(vf);
        let open = state.clear_to_send && state.policy.enabled && state.monitor.quarantined().is_none();
        for register in [r::VFTE, r::VFRE] {
            let others = hal.read(register) & !vf.bit();
            hal.write(register, if open { others | vf.bit() } else { others });
        }
    }
}

/// RTTBCNRM, which all VFs share, where the fastest limit is so many Mb/s.
fn rate_window(mbps: u32) -> u32 {
    (mbps * LATENESS_MS * 1_000 / 8).div_ceil(1_024).clamp(LEAST_RATE_WINDOW, MOST_RATE_WINDOW)
}

/// RTTBCNRC for so many Mb/s: the link's speed over it, with 14 binary places.
fn rate_factor(mbps: u32) -> u32 {
    match (LINK_SPEED << rttbcnrc::INTEGER_SHIFT).checked_div(mbps) {
        Some(factor) => rttbcnrc::RS_ENA | factor & rttbcnrc::FACTOR,
        None => 0,
    }
}
