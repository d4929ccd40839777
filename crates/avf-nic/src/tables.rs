//! Makes the VFs ports of the forwarding plane: port n is VF n. Addresses, VLANs, tags, checks and rates that the PF
//! driver has set become switch tables and rate factors. `rounds` visits the queues.
//!
//! A VF in unicast promiscuous mode gets the frames from the uplink that no other VF has a filter for, which is
//! i40e's default.

use crate::card::Nic;
use crate::function::VfHardware;
use avf::control::VlanTagHandling;
use avf::ids::{LONGEST, MAX_FRAME, MAX_VFS};
use plane::pacing::LatenessLimit;
use plane::switch::{MaxFrameLength, PortMirrorRules, SwitchTables, TagInsertion};
use plane::{ForwardingPlane, PortIndex, PortSet};
use units::{MacAddress, VlanIds};

/// Longest delay of a poll for which a rate-limited port may catch up: 10 ms, in nanoseconds. A longer delay loses
/// bandwidth.
const LATENESS: LatenessLimit = LatenessLimit::Time(10_000_000);

impl Nic {
    /// Makes the plane's switch tables from the VFs' present filters, with room for `more` addresses of VFs that belong to
    /// cards of other families.
    #[must_use]
    pub fn tables(&self, more: usize) -> SwitchTables<MAX_VFS> {
        let addresses: usize = self.functions.iter().map(|function| function.filters.addresses.len()).sum();
        let mut tables = SwitchTables::closed(addresses + more);
        tables.resets = self.scratch.resets;
        (tables.shared, tables.replicate, tables.loopback) = (true, true, true);
        // The switch accepts every VLAN. The filters of each VF decide which VFs get a frame.
        tables.filter_vlans = true;
        tables.vlans.accept(VlanIds::all());
        let everybody =
            PortSet::new(if self.functions.len() < 64 { (1 << self.functions.len()) - 1 } else { u64::MAX });
        (tables.all, tables.guests, tables.broadcast) = (everybody, everybody, everybody);
        for (function, port) in self.own_ports() {
            add_filters(&mut tables, function, port.only());
            tables.tags[port.index::<MAX_VFS>()] =
                function.filters.tags.port_vlan.map_or(TagInsertion::Asked, TagInsertion::Always);
            if strips_tags(function.filters.tags) {
                tables.strips |= port.only();
            }
        }
        tables.set_fits([MaxFrameLength::whole(MAX_FRAME); MAX_VFS]);
        tables.set_longest(LONGEST);
        tables
    }

    /// Returns the number of addresses and of VLANs in the switch tables, as sums over all VFs.
    #[must_use]
    pub fn table_size(&self) -> (usize, usize) {
        let sizes = self
            .functions
            .iter()
            .map(|VfHardware { filters, .. }| (filters.addresses.len(), filters.vlans.len()));
        sizes.fold((0, 0), |sum, (addresses, vlans)| (sum.0 + addresses, sum.1 + vlans))
    }

    /// Copies the VFs' switch tables and transmit rates, and the mirror rules, into the forwarding plane. Call it when
    /// the PF driver has changed filters or rates.
    pub fn apply_policy(&self, plane: &mut ForwardingPlane<MAX_VFS>, mirrors: &PortMirrorRules) {
        let mut tables = self.tables(0);
        tables.mirrors = mirrors.clone();
        plane.set_tables(tables);
        self.set_rates(plane);
    }

    /// Copies the VFs' transmit rates into the forwarding plane.
    pub fn set_rates(&self, plane: &mut ForwardingPlane<MAX_VFS>) {
        plane.pacing.set_lateness(LATENESS);
        for (function, port) in self.own_ports() {
            plane.pacing.set_rate(port, factor(function.filters.rate));
        }
    }

    /// Returns the unicast addresses by which a VF receives.
    pub fn addresses(&self, vf: u8) -> impl Iterator<Item = MacAddress> {
        let filters = self.functions.get(usize::from(vf)).map(|function| &function.filters.addresses);
        filters.into_iter().flatten().map(|mac| MacAddress(*mac)).filter(|mac| !mac.is_group())
    }

    /// Returns each VF that this card serves, with its port of the plane.
    fn own_ports(&self) -> impl Iterator<Item = (&VfHardware, PortIndex)> {
        let ports = self.functions.iter().zip(0..).map(|(function, n)| (function, PortIndex::of_field(n)));
        ports.filter(|(_, port)| !self.scratch.away.have(*port))
    }
}

/// Returns the forwarding plane's rate factor: 1 Gb/s divided by the rate `mbps`, with 14 binary places; `None` for the
/// rate 0, no limit.
pub(crate) fn factor(mbps: u32) -> Option<u32> {
    (mbps != 0).then(|| ((1000_u64 << 14) / u64::from(mbps)).max(1) as u32)
}

/// Adds the filters and checks of one VF to the switch tables.
fn add_filters(tables: &mut SwitchTables<MAX_VFS>, function: &VfHardware, only: PortSet) {
    let filters = &function.filters;
    filters.addresses.iter().for_each(|mac| tables.exact.add(MacAddress(*mac), only));
    if filters.vlans.contains(0) {
        tables.untagged |= only;
    }
    filters.vlans.iter().for_each(|vlan| tables.vlans.add(vlan, only, false));
    if filters.multicast {
        tables.every_multicast |= only;
    }
    if filters.unicast {
        tables.default_ports |= only;
    }
    if filters.spoof_check {
        tables.check_source |= only;
        tables.check_vlan |= only;
    }
    if function.rx.iter().any(|queue| queue.running) {
        tables.enabled |= only;
    }
}

/// Returns the stripped VLAN tag that the receive descriptor reports to the guest. A guest does not see the tag of its
/// port VLAN.
#[inline(always)]
pub(crate) fn told_of_tag(tags: VlanTagHandling, tag: Option<u16>) -> Option<u16> {
    tag.filter(|_| tags.strip && tags.port_vlan.is_none())
}

/// Returns `true` if the VF's frames are delivered without their tag: the VF requested stripping, or it is on a port VLAN.
#[inline(always)]
pub(crate) fn strips_tags(tags: VlanTagHandling) -> bool {
    tags.strip || tags.port_vlan.is_some()
}
