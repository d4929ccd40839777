//! The card's VFs as ports of the forwarding plane: port n is VF n. What the PF driver has said of addresses, VLANs, tags,
//! checks and rates becomes tables and prices.
//!
//! A VF in unicast promiscuous mode gets the frames from the uplink whose destination no other VF has a filter for. That is
//! how i40e sets the switch up unless it is told otherwise.
//!
//! Left out: frames of these ports (`work`).

use crate::card::Card;
use crate::function::Function;
use avf::control::Tags;
use avf::ids::{LONGEST, MAX_FRAME, MAX_VFS};
use plane::pacing::Lateness;
use plane::switch::{Fit, Ids, Mirrors, PortTag, Tables};
use plane::{Plane, Port, Ports};
use units::MacAddress;

/// A port whose rate is limited keeps it while the card is polled this late. What is later is lost. As the 82576's PF driver
/// sets its card.
const LATENESS: Lateness = Lateness::Time(10_000_000);

impl Card {
    /// What the plane asks about frames: to be made anew after a visit of the PF driver.
    #[must_use]
    pub fn tables(&self) -> Tables<MAX_VFS> {
        let addresses = self.functions.iter().map(|function| function.filters.addresses.len()).sum();
        let mut tables = Tables::closed(addresses);
        (tables.shared, tables.replicate, tables.loopback) = (true, true, true);
        // Frames of every VLAN are switched: which VFs get one is up to the filters of each VF.
        tables.filter_vlans = true;
        tables.vlans.accept(Ids::from_words(|_| u32::MAX));
        let everybody =
            Ports::new(if self.functions.len() < 64 { (1 << self.functions.len()) - 1 } else { u64::MAX });
        (tables.all, tables.guests, tables.broadcast) = (everybody, everybody, everybody);
        for (function, n) in self.functions.iter().zip(0..) {
            let port = Port::of_field(n);
            add_filters(&mut tables, function, port.only());
            tables.tags[port.index::<MAX_VFS>()] =
                function.filters.tags.port_vlan.map_or(PortTag::Asked, PortTag::Always);
            if strips_tags(function.filters.tags) {
                tables.strips |= port.only();
            }
        }
        tables.set_fits([Fit::whole(MAX_FRAME); MAX_VFS]);
        tables.set_longest(LONGEST);
        tables
    }

    /// Gives the plane the switch tables and rates that the PF driver has set, and the mirror rules. To be called after each
    /// visit of the PF driver.
    pub fn apply_policy(&self, plane: &mut Plane<MAX_VFS>, mirrors: &Mirrors) {
        let mut tables = self.tables();
        tables.mirrors = mirrors.clone();
        plane.set_tables(tables);
        plane.pacing.set_lateness(LATENESS);
        for (function, n) in self.functions.iter().zip(0..) {
            plane.pacing.set_rate(Port::of_field(n), factor(function.filters.rate));
        }
    }
}

/// What a rate in Mb/s is to the plane: 1 Gb/s over it, with 14 binary places. 0 is no limit.
pub(crate) fn factor(mbps: u32) -> Option<u32> {
    (mbps != 0).then(|| ((1000_u64 << 14) / u64::from(mbps)).max(1) as u32)
}

/// What one VF receives by and is held to.
fn add_filters(tables: &mut Tables<MAX_VFS>, function: &Function, only: Ports) {
    let filters = &function.filters;
    filters.addresses.iter().for_each(|mac| tables.exact.add(MacAddress(*mac), only));
    for vlan in &filters.vlans {
        if *vlan == 0 {
            tables.untagged |= only;
        }
        tables.vlans.add(*vlan, only, false);
    }
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

/// Returns the tag that the descriptor has of a frame whose tag was taken out. The tag of the port's VLAN is not told.
#[inline(always)]
pub(crate) fn told_of_tag(tags: Tags, tag: Option<u16>) -> Option<u16> {
    tag.filter(|_| tags.strip && tags.port_vlan.is_none())
}

/// Whether the VF's frames are delivered without their tag: the VF asked for it, or the PF has put it on a port VLAN.
#[inline(always)]
pub(crate) fn strips_tags(tags: Tags) -> bool {
    tags.strip || tags.port_vlan.is_some()
}
