//! Finds the ports whose frames are inspected, and inspects a frame by the guard of its sender.

use super::guards::{PortGuard, PortGuards};
use super::tables::{SwitchTables, TagInsertion};
use crate::contents::{ContentRules, GuardReason, has_tag, violation};
use crate::frame::{Frame, OuterTag};
use crate::tag::{BEHIND_OUTER, OUTERMOST};
use crate::{PortIndex, PortSet};
use units::MacAddress;

impl<const N: usize> SwitchTables<N> {
    /// Sets the guards, and finds the ports whose frames are inspected. Call it again when tags have changed.
    pub(crate) fn set_guards(&mut self, mut guards: PortGuards) {
        (guards.inspected, guards.plain) = (PortSet::NONE, PortSet::NONE);
        for (guard, n) in guards.ports.iter().flat_map(|ports| ports.iter()).take(N).zip(0..) {
            let port = PortIndex::of_field(n);
            let has_port_vlan = matches!(self.tags[port.index::<N>()], TagInsertion::Always(_));
            let plain = guard.dhcp_guard || guard.ips.is_some();
            if plain {
                guards.plain |= port.only();
            }
            if plain || guard.router_guard || has_port_vlan && !guard.double_tags {
                guards.inspected |= port.only();
            }
        }
        self.guards = guards;
    }

    /// Returns the reason of a port's guard to drop a frame of the port.
    #[cold]
    #[inline(never)]
    pub(crate) fn guard_violation(&self, port: PortIndex, frame: &mut Frame<'_>) -> Option<GuardReason> {
        let guard = self.guards.ports.as_ref()?.get(usize::from(port.get()))?;
        let (source, at) =
            (frame.ends().source(), if frame.outer == OuterTag::Present { BEHIND_OUTER } else { OUTERMOST });
        let bytes = frame.untagged();
        let has_port_vlan = matches!(self.tags[port.index::<N>()], TagInsertion::Always(_));
        if has_port_vlan && !guard.double_tags && has_tag(bytes, at) {
            return Some(GuardReason::DoubleTag);
        }
        let PortGuard { dhcp_guard, router_guard, ref ips, .. } = *guard;
        if !dhcp_guard && !router_guard && ips.is_none() {
            return None;
        }
        let owns = |mac: MacAddress| {
            let has = self.exact.is_of(mac, port) || mac == source && !self.check_source.has(port);
            has && !mac.is_group()
        };
        violation(bytes, at, ContentRules { dhcp_guard, router_guard, ips: ips.as_deref() }, owns)
    }
}
