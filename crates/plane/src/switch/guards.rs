//! Guards of the ports' frames, as the switch's tables have them: one bit of a port tells that its frames are inspected.

use crate::{PortIndex, PortSet};
use alloc::boxed::Box;
use alloc::sync::Arc;
use units::{IpPrefix, MacAddress};

/// Guard of one port. The default checks no claim and no contents, and drops frames with a tag behind the port VLAN.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PortGuard {
    /// Address that policy gives to the port, or proposes to it. The plane never refuses it to the port.
    pub assigned: Option<MacAddress>,
    /// True to refuse the port every address of a station beyond the uplink or of the host.
    pub checks_claims: bool,
    /// True to forward frames that have a VLAN tag of their own behind the port VLAN.
    pub double_tags: bool,
    /// True to drop the frames of DHCP servers.
    pub dhcp_guard: bool,
    /// True to drop router advertisements and redirects.
    pub router_guard: bool,
    /// IP addresses that the port may send from; `None` for any.
    pub ips: Option<Box<[IpPrefix]>>,
}

/// Guards of all ports, and the ports to which they apply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PortGuards {
    /// Guards by number of the port; `None` if no port is guarded.
    pub(super) ports: Option<Arc<[PortGuard]>>,
    /// Ports whose frames are inspected.
    pub(super) inspected: PortSet,
    /// Ports whose plain frames are inspected, so that none of them leaves in a burst.
    pub(super) plain: PortSet,
}

impl PortGuards {
    pub(crate) fn new(guards: &[PortGuard]) -> Self {
        Self { ports: Some(guards.into()), ..Self::default() }
    }

    /// Returns `true` if the frames of a port are inspected.
    #[inline]
    pub(crate) fn inspect(&self, port: PortIndex) -> bool {
        self.inspected.has(port)
    }

    /// Returns `true` if plain frames of a port are inspected: UDP and TCP over IPv4, without tags of their own.
    #[inline]
    pub(crate) fn inspect_plain(&self, port: PortIndex) -> bool {
        self.plain.has(port)
    }
}
