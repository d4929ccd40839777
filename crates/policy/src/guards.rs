//! Guards of a VF's frames by the administrator.

use units::IpPrefix;

/// Most IP addresses and prefixes of a VF's source guard.
pub const MOST_IPS: usize = 16;

/// IP addresses and prefixes that a VF may send from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceIps([Option<IpPrefix>; MOST_IPS]);

impl SourceIps {
    /// Returns the list of these addresses, or `None` if they are more than [`MOST_IPS`].
    #[must_use]
    pub fn of(ips: &[IpPrefix]) -> Option<Self> {
        let mut list = [None; MOST_IPS];
        list.get_mut(..ips.len())?.iter_mut().zip(ips).for_each(|(place, ip)| *place = Some(*ip));
        Some(Self(list))
    }

    /// Iterates over the addresses and prefixes.
    pub fn iter(&self) -> impl Iterator<Item = IpPrefix> + '_ {
        self.0.iter().flatten().copied()
    }
}

/// Guards of a VF's frames. Saved states do not have them: the configuration sets them in each process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameGuards {
    /// True if the VF may send frames with a tag of their own behind its port VLAN.
    pub qinq: bool,
    /// True to drop the VF's frames of a DHCP server.
    pub dhcp_guard: bool,
    /// True to drop the VF's router advertisements and redirects.
    pub router_guard: bool,
    /// IP addresses that the VF may send from; `None` for any.
    pub ips: Option<SourceIps>,
}
