//! Configures the VFs as ports of the forwarding plane (port n is VF n): turns their rules into switch tables and rate
//! factors.

use crate::card::Nic;
use crate::device::VirtioDevice;
use crate::limits::{LONGEST_FRAME, MAX_VFS};
use crate::rules::VlanMembership;
use plane::pacing::LatenessLimit;
use plane::switch::{MaxFrameLength, PortMirrorRules, SwitchTables, TagInsertion};
use plane::tag::ID_MASK;
use plane::{ForwardingPlane, PortIndex, PortSet};
use units::{FCS, VlanIds};

/// Maximum lateness of a poll for which a rate-limited VF may catch up: 10 ms in nanoseconds. Bandwidth lost by later
/// polls is not made up.
const LATENESS: LatenessLimit = LatenessLimit::Time(10_000_000);
/// Number of VLAN ids (IEEE 802.1Q); id 0 stands for untagged frames.
const VLAN_IDS: u16 = 4096;

impl Nic {
    /// Computes the switch's tables from the VFs' rules and addresses.
    #[must_use]
    pub fn tables(&self) -> SwitchTables<MAX_VFS> {
        let mut tables = SwitchTables::closed(self.address_count());
        (tables.shared, tables.replicate, tables.loopback) = (true, true, true);
        // The switch accepts every VLAN. The rules of each VF decide which VFs get a frame.
        tables.filter_vlans = true;
        tables.vlans.accept(VlanIds::all());
        let all = self.ports().fold(PortSet::NONE, |all, (_, port)| all | port.only());
        (tables.all, tables.guests, tables.broadcast) = (all, all, all);
        tables.set_fits([MaxFrameLength::whole(LONGEST_FRAME + FCS); MAX_VFS]);
        tables.set_longest(LONGEST_FRAME);
        self.add_ports(&mut tables, all);
        tables
    }

    /// Adds the rules and addresses of some VFs to the tables of a switch, which may have ports of other families' cards.
    pub fn add_ports(&self, tables: &mut SwitchTables<MAX_VFS>, vfs: PortSet) {
        let mut any = PortSet::NONE;
        for (device, port) in self.ports().filter(|(_, port)| vfs.has(*port)) {
            add_device(tables, device, port);
            let longest = device.rules.longest_frame.min(LONGEST_FRAME);
            tables.set_fit(port, MaxFrameLength::whole(longest + FCS));
            if device.rules.vlans == VlanMembership::Any {
                any |= port.only();
            }
        }
        tables.untagged |= any;
        (0..VLAN_IDS).for_each(|vlan| tables.vlans.add(vlan, any, false));
    }

    /// Returns the number of addresses for which the switch's tables need room, at most.
    #[must_use]
    pub fn address_count(&self) -> usize {
        self.devices.iter().map(|device| device.rules.addresses.len().max(1)).sum()
    }

    /// Sets the plane's switch tables, rates and mirror rules. Call this method when [`Nic::take_changed`] returns
    /// `Some`.
    pub fn apply_policy(&self, plane: &mut ForwardingPlane<MAX_VFS>, mirrors: &PortMirrorRules) {
        let mut tables = self.tables();
        tables.mirrors = mirrors.clone();
        plane.set_tables(tables);
        self.set_rates(plane, PortSet::new(u64::MAX));
    }

    /// Sets the transmit rates of some VFs on the plane.
    pub fn set_rates(&self, plane: &mut ForwardingPlane<MAX_VFS>, vfs: PortSet) {
        plane.pacing.set_lateness(LATENESS);
        for (device, port) in self.ports().filter(|(_, port)| vfs.has(*port)) {
            plane.pacing.set_rate(port, factor(device.rules.max_tx_rate));
        }
    }

    /// Returns each device with its port of the plane.
    fn ports(&self) -> impl Iterator<Item = (&VirtioDevice, PortIndex)> {
        self.devices.iter().zip(0..).map(|(device, n)| (device, PortIndex::of_field(n)))
    }
}

/// Returns the plane's rate factor for a rate in Mb/s: 1,000 divided by the rate, with 14 fraction bits. Returns `None`
/// for 0, no limit.
fn factor(mbps: u32) -> Option<u32> {
    (mbps != 0).then(|| u32::try_from(((1000_u64 << 14) / u64::from(mbps)).max(1)).unwrap_or(u32::MAX))
}

/// Adds the rules of one VF to the tables, except its length limit and a membership in every VLAN.
fn add_device(tables: &mut SwitchTables<MAX_VFS>, device: &VirtioDevice, port: PortIndex) {
    let (rules, only) = (&device.rules, port.only());
    let addresses = rules.addresses.iter().copied();
    let learned = device.learned.filter(|_| rules.addresses.is_empty());
    addresses.chain(learned).for_each(|mac| tables.exact.add(mac, only));
    match &rules.vlans {
        VlanMembership::Port(tag) => {
            tables.vlans.add(*tag, only, false);
            tables.tags[port.index::<MAX_VFS>()] = TagInsertion::Always(*tag);
            tables.strips |= only;
            // The tag has a priority alone: frames without a tag are the VLAN's too.
            if tag & ID_MASK == 0 {
                tables.untagged |= only;
            }
        }
        VlanMembership::Guest(ids) => {
            ids.iter().for_each(|vlan| tables.vlans.add(vlan, only, false));
            if ids.contains(0) {
                tables.untagged |= only;
            }
        }
        VlanMembership::Any => {}
    }
    for (on, set) in [
        (rules.all_multicast, &mut tables.every_multicast),
        (rules.promiscuous, &mut tables.default_ports),
        (rules.spoof_check, &mut tables.check_source),
        (rules.spoof_check, &mut tables.check_vlan),
        // A VF without a receive ring counts its frames as dropped. So rings do not change the tables.
        (rules.enabled, &mut tables.enabled),
    ] {
        if on {
            *set |= only;
        }
    }
}
