//! Errors for a refused policy: each names its setting, the value and the remedy.

use crate::filters::FilterKind;
use crate::limits::WINDOWS_MS;
use crate::vlan::{PRIORITIES, VLANS};
use core::fmt;
use pcie::VfIndex;
use units::MacAddress;

/// Reason to refuse a policy: it is invalid, the family does not support it, or the card cannot follow it now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The policy names a VF with a number that the port does not have.
    #[error("the port has no VF {0}")]
    NoSuchVf(u8),
    /// The VF's address is zero or a group address.
    #[error(
        "{0} is not a unicast MAC address: the first byte must be even, and the address must not be zero"
    )]
    Mac(MacAddress),
    /// Another function has the VF's address, and would receive frames for this VF.
    #[error("MAC address {0} is in use by {1}; choose another address")]
    MacInUse(MacAddress, AddressOwner),
    /// The port VLAN's id is out of range, or is 0 without a priority.
    #[error("VLAN {0} is out of range ({first} to {last}, or 0 for none)", first = VLANS.start(), last = VLANS.end())]
    Vlan(u16),
    /// The port VLAN's priority is out of range.
    #[error("VLAN priority {0} is out of range ({first} to {last})", first = PRIORITIES.start(), last = PRIORITIES.end())]
    Priority(u8),
    /// The port VLAN is not in [`VfPolicy::vlans`](crate::VfPolicy::vlans).
    #[error("VLAN {0} is not among the VF's allowed VLANs; add it to vlans, or set vlans = \"any\"")]
    VlanNotAllowed(u16),
    /// All VLAN filters of the card are in use.
    #[error("all VLAN filters of the card are in use; remove VLANs from other VFs")]
    NoVlanFilter,
    /// The number of filters of a quota, the first one, exceeds the family's limit, the second.
    #[error("{0} = {1} is out of range (0 to {2})")]
    FilterQuota(&'static str, u16, u16),
    /// The guaranteed number of filters, the first one, is above the limit, the second.
    #[error(
        "{setting} = {1} is above {limit} = {2}; lower {setting} or raise {limit}",
        setting = .0.min_setting(), limit = .0.max_setting()
    )]
    FilterQuotas(FilterKind, u16, u16),
    /// The filters that are guaranteed to the port's VFs, the first number, exceed those of the card, the second. The VF has
    /// the largest share.
    #[error(
        "the {0} filters guaranteed to the port's VFs ({setting}), with those of port VLANs, are {1}, and the card has \
         {2} for them; lower {setting} of some VFs: VF {vf} has the most",
        setting = .0.min_setting(), vf = .3.get()
    )]
    Guarantees(FilterKind, usize, usize, VfIndex),
    /// The transmit rate is above the speed of the link, both in Mb/s.
    #[error("transmit rate {0} Mb/s exceeds the link's {1} Mb/s; 0 is no limit")]
    Rate(u32, u32),
    /// The policy asks for a minimum transmit rate, which no family guarantees.
    #[error("the minimum transmit rate must be 0, because no card guarantees a rate")]
    LeastRate,
    /// The VF's MTU is outside the family's range.
    #[error("MTU {0} is out of range ({1} to {2}, or 0 for no limit)")]
    Mtu(u16, u16, u16),
    /// The interrupt ceiling is outside the family's range.
    #[error("interrupt ceiling {0} per second is out of range ({1} to {2}, or 0 for no ceiling)")]
    InterruptCeiling(u32, u32, u32),
    /// The interrupt floor, the first number, is above the ceiling, the second; both are per second.
    #[error("interrupt floor {0} per second is above the ceiling {1}; lower the floor or raise the ceiling")]
    InterruptFloor(u32, u32),
    /// The family of cards does not have this setting.
    #[error("{1}")]
    Unsupported(&'static str, &'static str),
    /// The mirror rule names no traffic.
    #[error("mirror rule {0} names no traffic to copy; name VFs, the uplink or VLANs")]
    EmptyMirror(usize),
    /// The mirror rule copies only traffic that its watching VF receives anyway.
    #[error("mirror rule {0} copies only its watcher's own traffic; name other VFs, the uplink or VLANs")]
    OwnMirror(usize),
    /// The mirror rule names a VF that the family does not have.
    #[error("a mirror rule names a VF above {1}, the last VF of family = \"{0}\"; name other VFs")]
    MirrorVf(&'static str, usize),
    /// The window of storm control is out of range.
    #[error("storm-control interval {0} ms is out of range ({least} to {most})", least = WINDOWS_MS.start(), most = WINDOWS_MS.end())]
    Window(u16),
    /// The threshold of storm control is more than the card can count in a window.
    #[error(
        "storm threshold {0} Kb/s exceeds the {2} Kb/s that the card counts in {1} ms: lower it, or shorten \
         the interval"
    )]
    StormRate(u32, u16, u32),
    /// The threshold of storm control is less than one block per window.
    #[error(
        "storm threshold {0} Kb/s is below the {2} Kb/s that the card counts in {1} ms: raise it, or \
         lengthen the interval; 0 is no limit"
    )]
    SmallStormRate(u32, u16, u32),
}

impl PolicyError {
    /// Returns the name of the setting that is refused.
    #[must_use]
    pub const fn setting(&self) -> &'static str {
        match self {
            Self::NoSuchVf(_) => "vfs",
            Self::Mac(_) | Self::MacInUse(..) => "mac",
            Self::Vlan(_) | Self::VlanNotAllowed(_) | Self::NoVlanFilter => "vlan",
            Self::Priority(_) => "qos",
            Self::FilterQuota(setting, ..) => setting,
            Self::FilterQuotas(kind, ..) | Self::Guarantees(kind, ..) => kind.min_setting(),
            Self::Rate(..) => "max_tx_rate",
            Self::LeastRate => "min_tx_rate",
            Self::Mtu(..) => "max_mtu",
            Self::InterruptCeiling(..) => "max_interrupts",
            Self::InterruptFloor(..) => "min_interrupts",
            Self::Unsupported(setting, _) => setting,
            Self::EmptyMirror(_) | Self::OwnMirror(_) | Self::MirrorVf(..) => "mirror",
            Self::Window(_) => "storm.interval",
            Self::StormRate(..) | Self::SmallStormRate(..) => "storm",
        }
    }
}

/// A VF whose policy is refused, with the reason for the refusal.
pub type RefusedVf = (VfIndex, PolicyError);

/// Port or VF that has the address which a policy requests for another VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressOwner {
    /// The port itself has the requested address.
    Port,
    /// A VF uses the requested address, or has it by its policy.
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
