//! Settings of one VF by the administrator.

use crate::error::PolicyError;
use crate::filters::FilterQuotas;
use crate::guards::FrameGuards;
use crate::limits::CardFamilyLimits;
use crate::quota;
use crate::vlan::{PRIORITIES, PortVlan, VLANS, VlanSet};
use core::ops::RangeInclusive;
use serde::{Deserialize, Serialize};
use units::MacAddress;

/// Link state of a VF, in iproute2's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "Link")]
pub enum VfLinkPolicy {
    /// The VF's link is up while the port's link is up.
    #[default]
    Auto,
    /// The VF's link is always up: VFs reach each other without the port's link.
    Enable,
    /// The VF's link is always down.
    Disable,
}

/// Settings of one VF by the administrator: its policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VfPolicy {
    /// Address assigned to the VF; without one the guest chooses.
    pub mac: Option<MacAddress>,
    /// True if the administrator has set the address: the VF may use no other, unless the VF is trusted.
    pub admin_mac: bool,
    /// Port VLAN of the VF; `None` lets the VF join VLANs by itself.
    pub vlan: Option<PortVlan>,
    /// VLANs that the VF may join; `None` permits any.
    pub vlans: Option<VlanSet>,
    /// True to drop the VF's frames with a source address or VLAN that is not the VF's.
    pub spoofchk: bool,
    /// True if the VF is trusted: it may change its address in spite of `admin_mac`, and use another function's.
    pub trust: bool,
    /// True if the VF may send and receive frames.
    pub enabled: bool,
    /// Link state that the VF's driver sees.
    pub state: VfLinkPolicy,
    /// True if the VF may request every multicast frame.
    pub allmulti: bool,
    /// Longest packet that the VF may request to receive, without Ethernet's header, bytes; `None` is the card's
    /// limit.
    pub max_mtu: Option<u16>,
    /// True for RSS, which spreads received frames over the VF's queues by flow. A driver that uses only the first
    /// queue loses the frames of the others.
    pub rss: bool,
    /// Lowest and highest rate of the VF's interrupts.
    pub interrupts: InterruptBounds,
    /// Highest rate of the VF's sent frames in Mb/s, frame check sequences included; 0 is no limit.
    pub max_tx_rate: u32,
    /// True if the VF may have the same address as another VF with this setting.
    pub share_mac: bool,
    /// Guards of the VF's frames.
    #[serde(skip)]
    pub guards: FrameGuards,
    /// Quotas of the filters that the VF's guest requests.
    #[serde(skip)]
    pub quotas: FilterQuotas,
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
            state: VfLinkPolicy::Auto,
            allmulti: true,
            max_mtu: None,
            rss: false,
            interrupts: InterruptBounds { min_interrupts: 0, max_interrupts: 0, adaptive: false },
            max_tx_rate: 0,
            share_mac: false,
            guards: FrameGuards::default(),
            quotas: FilterQuotas::default(),
        }
    }
}

impl VfPolicy {
    /// Checks that the policy is consistent, and that a family supports it.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn check(&self, limits: &CardFamilyLimits) -> Result<(), PolicyError> {
        if let Some(mac) = self.mac.filter(|mac| !mac.is_valid_unicast()) {
            return Err(PolicyError::Mac(mac));
        }
        if self.max_tx_rate > limits.link_speed {
            return Err(PolicyError::Rate(self.max_tx_rate, limits.link_speed));
        }
        if let Some(mtu) = self.max_mtu.filter(|mtu| !limits.mtu.contains(mtu)) {
            return Err(PolicyError::Mtu(mtu, *limits.mtu.start(), *limits.mtu.end()));
        }
        if self.rss {
            limits.rss.map_err(|why| PolicyError::Unsupported("rss", why))?;
        }
        self.interrupts.check(&limits.interrupts)?;
        quota::check(&self.quotas, &limits.filters)?;
        self.vlan.map_or(Ok(()), |vlan| self.check_vlan(vlan))
    }

    /// Returns true if the VF may have the administrator's address alone, beside groups.
    #[must_use]
    pub const fn has_fixed_mac(&self) -> bool {
        self.admin_mac && !self.trust
    }

    fn check_vlan(&self, PortVlan { id, qos }: PortVlan) -> Result<(), PolicyError> {
        if !PRIORITIES.contains(&qos) {
            return Err(PolicyError::Priority(qos));
        }
        match id {
            0 if qos > 0 => Ok(()),
            id if !VLANS.contains(&id) => Err(PolicyError::Vlan(id)),
            id if !self.allows_vlan(id) => Err(PolicyError::VlanNotAllowed(id)),
            _ => Ok(()),
        }
    }

    /// Returns true if the VF may join a VLAN.
    #[must_use]
    pub fn allows_vlan(&self, vlan: u16) -> bool {
        self.vlans.is_none_or(|allowed| allowed.contains(vlan))
    }

    /// Returns true if a family treats both policies alike; policies with different MTUs may have the same longest
    /// frame.
    #[must_use]
    pub fn is_alike(&self, other: &Self, limits: &CardFamilyLimits) -> bool {
        let without_mtu = |policy: &Self| Self { max_mtu: None, ..*policy };
        without_mtu(self) == without_mtu(other) && self.longest_frame(limits) == other.longest_frame(limits)
    }

    /// Returns the longest frame that the VF may request, frame check sequence included, bytes.
    #[must_use]
    pub fn longest_frame(&self, limits: &CardFamilyLimits) -> u16 {
        let frame = |mtu: u16| mtu.saturating_add(limits.frame_overhead).min(limits.max_frame);
        self.max_mtu.map_or(limits.max_frame, frame)
    }
}

/// Lowest and highest rate of a VF's interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InterruptBounds {
    /// Fewest interrupts per second while events are pending, so that a guest does not wait longer; 0 leaves it to the
    /// guest.
    pub min_interrupts: u32,
    /// Most interrupts per second; 0 leaves it to the guest.
    pub max_interrupts: u32,
    /// True to let the host choose the lowest rate that the packet rate allows: IF = max(pps * r / bufs, lif), with
    /// bufs the descriptors of the VF's receive ring, r 1.2, and lif `min_interrupts`, or 1,000.
    pub adaptive: bool,
}

impl InterruptBounds {
    /// Checks that the family can meet these interrupt bounds, or that no bound is set if the family supports none.
    fn check(self, ceilings: &Result<RangeInclusive<u32>, &'static str>) -> Result<(), PolicyError> {
        let ceilings = match ceilings {
            Ok(ceilings) => ceilings,
            Err(why) => return self.set().map_or(Ok(()), |key| Err(PolicyError::Unsupported(key, why))),
        };
        let (least, most) = (*ceilings.start(), *ceilings.end());
        let ceiling = if self.max_interrupts == 0 { most } else { self.max_interrupts };
        if !ceilings.contains(&ceiling) {
            return Err(PolicyError::InterruptCeiling(ceiling, least, most));
        }
        if self.min_interrupts > ceiling {
            return Err(PolicyError::InterruptFloor(self.min_interrupts, ceiling));
        }
        Ok(())
    }

    /// Returns the name of the first interrupt setting that is not its default.
    fn set(self) -> Option<&'static str> {
        match self {
            Self { min_interrupts: 1.., .. } => Some("min_interrupts"),
            Self { max_interrupts: 1.., .. } => Some("max_interrupts"),
            Self { adaptive, .. } => adaptive.then_some("coalesce"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{InterruptBounds, VfPolicy};
    use crate::limits::{CardFamilyLimits, TOY};
    use crate::{PolicyError, PortVlan, VlanSet};

    /// Limits of an imaginary family of cards for tests: it supports neither interrupt bounds nor a switch for RSS.
    const FEW: CardFamilyLimits = CardFamilyLimits {
        mtu: 1_496..=9_706,
        frame_overhead: 26,
        interrupts: Err("no bounds"),
        rss: Err("no switch"),
        ..TOY
    };

    fn refused(policy: VfPolicy, limits: &CardFamilyLimits) -> Result<(), (&'static str, PolicyError)> {
        policy.check(limits).map_err(|error| (error.setting(), error))
    }

    fn bounds(min_interrupts: u32, max_interrupts: u32, adaptive: bool) -> VfPolicy {
        let interrupts = InterruptBounds { min_interrupts, max_interrupts, adaptive };
        VfPolicy { interrupts, ..VfPolicy::default() }
    }

    fn mtu(mtu: u16) -> VfPolicy {
        VfPolicy { max_mtu: Some(mtu), ..VfPolicy::default() }
    }

    #[test]
    fn interrupt_bounds_out_of_range_are_refused() {
        let check = |min, max| bounds(min, max, false).check(&TOY);
        assert_eq!(check(2_000, 1_000), Err(PolicyError::InterruptFloor(2_000, 1_000)));
        assert_eq!(check(1_000_001, 0), Err(PolicyError::InterruptFloor(1_000_001, 1_000_000)));
        let ceiling = |hz| Err(PolicyError::InterruptCeiling(hz, 123, 1_000_000));
        assert_eq!((check(0, 1_000_001), check(0, 122)), (ceiling(1_000_001), ceiling(122)));
        assert_eq!((check(0, 123), check(5, 5_000), check(0, 0)), (Ok(()), Ok(()), Ok(())));
    }

    #[test]
    fn settings_that_the_device_family_lacks_are_refused_by_name() {
        for (policy, setting) in [
            (bounds(1, 0, false), "min_interrupts"),
            (bounds(0, 5_000, false), "max_interrupts"),
            (bounds(0, 0, true), "coalesce"),
        ] {
            assert_eq!(refused(policy, &FEW), Err((setting, PolicyError::Unsupported(setting, "no bounds"))));
            assert_eq!(policy.check(&TOY), Ok(()));
        }
        let rss = VfPolicy { rss: true, ..VfPolicy::default() };
        assert_eq!(refused(rss, &FEW), Err(("rss", PolicyError::Unsupported("rss", "no switch"))));
        assert_eq!((rss.check(&TOY), VfPolicy::default().check(&FEW)), (Ok(()), Ok(())));
    }

    #[test]
    fn longest_allowed_mtu_fits_the_cards_longest_frame() {
        for (limits, shortest, frame) in [(&TOY, 68, 90), (&FEW, 1_496, 1_522)] {
            assert_eq!(mtu(shortest - 1).check(limits), Err(PolicyError::Mtu(shortest - 1, shortest, 9_706)));
            assert_eq!((mtu(shortest).check(limits), mtu(shortest).longest_frame(limits)), (Ok(()), frame));
            assert_eq!((mtu(9_706).check(limits), mtu(9_706).longest_frame(limits)), (Ok(()), 9_728));
            assert_eq!(mtu(9_707).check(limits), Err(PolicyError::Mtu(9_707, shortest, 9_706)));
            assert_eq!(VfPolicy::default().longest_frame(limits), 9_728);
        }
        assert_eq!(mtu(1_500).longest_frame(&FEW), 1_526, "Linux takes 26 off");
    }

    #[test]
    fn port_vlan_out_of_range_or_not_allowed_is_refused() {
        let check = |id, qos, vlans: Option<VlanSet>| {
            let policy = VfPolicy { vlan: Some(PortVlan { id, qos }), vlans, ..VfPolicy::default() };
            refused(policy, &TOY)
        };
        assert_eq!(check(4_095, 7, None), Ok(()));
        assert_eq!(check(4_096, 0, None), Err(("vlan", PolicyError::Vlan(4_096))));
        assert_eq!(check(1, 8, None), Err(("qos", PolicyError::Priority(8))));
        assert_eq!((check(0, 0, None), check(0, 5, None)), (Err(("vlan", PolicyError::Vlan(0))), Ok(())));
        let some = Some((10..20).collect());
        assert_eq!(check(20, 0, some), Err(("vlan", PolicyError::VlanNotAllowed(20))));
        assert_eq!((check(19, 0, some), check(0, 5, some)), (Ok(()), Ok(())));
    }
}
