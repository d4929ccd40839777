//! Tests the PF driver against registers that only store values: its writes, and its handling of a broken card.
//! Conversations with the real card are in the backplane's tests.

mod addresses;
mod moderation;
mod policies;
mod quotas;
mod requests;
mod scaling;
mod work;

use super::{Pf, PfError};
use crate::conduct::{OffenceCounts, VfConductVerdict};
use crate::hal::Hal;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;
use i82576::PoolIndex;
use i82576::bits::{icr, p2v, status};
use i82576::mailbox::id;
use i82576::register as r;
use i82576::{MacAddress, Time, VfIndex};
use policy::{AddressOwner, Offence, OffenceAction, PolicyError, PortVlan, VfLinkPolicy, VfPolicy, VlanSet};

/// Registers of the PF that store values; CTRL.RST clears itself unless `stuck`, and bits of MBVFICR are cleared by
/// writing ones.
#[derive(Default)]
struct StoredRegisters {
    values: BTreeMap<u32, u32>,
    now: Time,
    stuck: bool,
    gone: bool,
    /// True if VF 0's events vanish from MBVFICR when the PF takes the buffer, as by a reset of the VF.
    race: bool,
    /// True if VF 0 holds the mailbox buffer, so that the PF cannot lock it.
    held: bool,
    /// Offsets of the registers that the PF has written, in order.
    log: Vec<u32>,
    /// Address that the switch gives to no VF.
    withheld: Option<MacAddress>,
    /// Address that a station uses too.
    shared: Option<MacAddress>,
}

impl Hal for StoredRegisters {
    fn read(&mut self, offset: u32) -> u32 {
        match self.values.get(&offset) {
            _ if self.gone => u32::MAX,
            _ if self.held && offset == r::p2v_mailbox(vf(0)) => p2v::VFU,
            value => value.copied().unwrap_or(0),
        }
    }
    fn write(&mut self, offset: u32, value: u32) {
        let value = match offset {
            r::CTRL if !self.stuck => value & !(1 << 26),
            r::MBVFICR => self.read(offset) & !value,
            _ => value,
        };
        self.values.insert(offset, value);
        self.log.push(offset);
        if self.race && offset == r::p2v_mailbox(vf(0)) {
            self.values.remove(&r::MBVFICR);
        }
    }
    fn now(&self) -> Time {
        self.now
    }
    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
    }
    fn may_have_address(&mut self, _: u8, address: MacAddress) -> bool {
        self.withheld != Some(address)
    }
    fn revoke_address(&mut self, _: u8, address: MacAddress) -> bool {
        self.shared == Some(address)
    }
}

impl StoredRegisters {
    /// Sets bits of MBVFICR, as VFs do.
    fn ring(&mut self, events: u32) {
        self.values.insert(r::MBVFICR, events);
    }
}

fn vf(n: u8) -> VfIndex {
    VfIndex::new(n).unwrap()
}

fn at_rate(max_tx_rate: u32) -> VfPolicy {
    VfPolicy { max_tx_rate, ..VfPolicy::default() }
}

fn with_mac(n: u8) -> VfPolicy {
    VfPolicy { mac: Some(MacAddress([2, 0, 0, 0, 0, n])), ..VfPolicy::default() }
}

#[test]
fn pf_configures_the_switch_and_leaves_vfs_disabled_at_probe() {
    let mut hal = StoredRegisters::default();
    hal.write(r::ral(0), 0x0000_0002);
    hal.write(r::rah(0), 0x8000_ff00);
    let mut pf = Pf::probe(&mut hal).unwrap();
    assert_eq!(pf.mac(), MacAddress([2, 0, 0, 0, 0, 0xff]));
    assert_eq!(hal.read(r::MRQC), 3);
    assert_eq!(hal.read(r::VT_CTL), 1 << 30 | 1 << 29, "replication, no default pool");
    assert_eq!(hal.read(r::DTXSWC), 0x8000_ffff, "loopback and both spoof checks");
    assert_eq!(hal.read(r::QDE), 0xffff);
    assert_eq!(hal.read(r::RCTL) & (1 << 18 | 1 << 1), 1 << 18 | 1 << 1, "VLAN filter, enabled");
    assert_eq!(hal.read(r::vlvf(0)), 0x8000_0000, "VLAN 0");
    assert_eq!(hal.read(r::vfta(0)), 1);
    pf.enable_vfs(&mut hal, 0).unwrap();
    assert_eq!(hal.read(r::CTRL_EXT) & 1 << 14, 0);
    pf.enable_vfs(&mut hal, 7).unwrap();
    assert_eq!(hal.read(r::CTRL_EXT) & 1 << 14, 1 << 14);
    assert_eq!((hal.read(r::VFRE), hal.read(r::VFTE)), (0, 0), "gates open with VF_RESET");
    assert_eq!(pf.enable_vfs(&mut hal, 9), Err(PfError::TooManyVfs(9)));
}

#[test]
fn pf_writes_a_vfs_policy_to_registers() {
    let mut hal = StoredRegisters::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    let vlan = Some(PortVlan { id: 100, qos: 3 });
    let policy = VfPolicy { vlan, spoofchk: false, ..with_mac(5) };
    pf.set_policy(&mut hal, vf(2), policy).unwrap();
    pf.enable_vfs(&mut hal, 4).unwrap();
    assert_eq!(hal.read(r::ral(21)), 0x0000_0002, "entry 23 - n");
    assert_eq!(hal.read(r::rah(21)), 0x8000_0500 | 1 << (18 + 2));
    assert_eq!(hal.read(r::vmvir(PoolIndex::EVERY[2])), 0x4000_0000 | 3 << 13 | 100);
    assert_eq!(hal.read(r::vlvf(1)), 0x8000_0000 | 1 << (12 + 2) | 100);
    assert_eq!(hal.read(r::vfta(3)), 1 << 4);
    assert_eq!(
        hal.read(r::vmolr(PoolIndex::EVERY[2])) & (1 << 24 | 1 << 30),
        1 << 30,
        "strip, and no untagged frames"
    );
    assert_eq!(hal.read(r::vmolr(PoolIndex::EVERY[1])) & (1 << 24 | 1 << 30), 1 << 24);
    assert_eq!(hal.read(r::DTXSWC) & 0xffff, 0xfbfb);

    pf.set_policy(&mut hal, vf(2), with_mac(6)).unwrap();
    assert_eq!(hal.read(r::rah(21)), 0x8000_0600 | 1 << (18 + 2));
    assert_eq!(
        (hal.read(r::vlvf(1)), hal.read(r::vfta(3)), hal.read(r::vmvir(PoolIndex::EVERY[2]))),
        (0, 0, 0)
    );
    assert_eq!(hal.read(r::DTXSWC) & 0xffff, 0xffff);
}

#[test]
fn invalid_policy_of_an_82576_vf_keeps_its_old_policy() {
    let mut hal = StoredRegisters::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    let group = VfPolicy { mac: Some(MacAddress::BROADCAST), ..VfPolicy::default() };
    assert_eq!(pf.set_policy(&mut hal, vf(0), group), Err(PolicyError::Mac(MacAddress::BROADCAST)));
    let beyond = VfPolicy { vlan: Some(PortVlan { id: 4096, qos: 0 }), ..VfPolicy::default() };
    assert_eq!(pf.set_policy(&mut hal, vf(0), beyond), Err(PolicyError::Vlan(4096)));
    assert_eq!(*pf.policy(vf(0)), VfPolicy::default());
    let last = VfPolicy { vlan: Some(PortVlan { id: 4095, qos: 7 }), ..VfPolicy::default() };
    assert_eq!(pf.set_policy(&mut hal, vf(0), last), Ok(()), "the highest valid values");
}

#[test]
fn port_vlan_0_inserts_a_priority_and_keeps_untagged_frames() {
    let mut hal = StoredRegisters::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    let (vlan, vlans) = (Some(PortVlan { id: 0, qos: 5 }), Some(VlanSet::untagged()));
    pf.set_policy(&mut hal, vf(2), VfPolicy { vlan, vlans, ..with_mac(5) }).unwrap();
    pf.enable_vfs(&mut hal, 4).unwrap();
    assert_eq!(hal.read(r::vmvir(PoolIndex::EVERY[2])), 0x4000_0000 | 5 << 13);
    assert_eq!(
        hal.read(r::vmolr(PoolIndex::EVERY[2])) & (1 << 24 | 1 << 30),
        1 << 24 | 1 << 30,
        "strip, and untagged"
    );
    assert_ne!(hal.read(r::vlvf(0)) & 1 << (12 + 2), 0, "a member of VLAN 0");
    pf.set_policy(&mut hal, vf(2), with_mac(5)).unwrap();
    assert_eq!(hal.read(r::vmvir(PoolIndex::EVERY[2])), 0);
    assert_eq!(hal.read(r::vmolr(PoolIndex::EVERY[2])) & (1 << 24 | 1 << 30), 1 << 24);
}

/// Tests that a VF cannot get the address of another function, whose frames it would receive.
#[test]
fn mac_address_in_use_by_a_vf_or_the_port_is_refused() {
    let mut hal = StoredRegisters::default();
    hal.write(r::ral(0), 0x0000_0002);
    hal.write(r::rah(0), 0x8000_ff00);
    let mut pf = Pf::probe(&mut hal).unwrap();
    let in_use = |n, owner| Err(PolicyError::MacInUse(with_mac(n).mac.unwrap(), owner));
    pf.set_policy(&mut hal, vf(0), with_mac(1)).unwrap();
    let ones = in_use(1, AddressOwner::Vf(vf(0).into()));
    assert_eq!(pf.set_policy(&mut hal, vf(1), with_mac(1)), ones, "no VF is enabled yet");
    pf.enable_vfs(&mut hal, 2).unwrap();
    assert_eq!(pf.set_policy(&mut hal, vf(1), with_mac(1)), ones);
    assert_eq!(pf.set_policy(&mut hal, vf(1), with_mac(0xff)), in_use(0xff, AddressOwner::Port));
    assert_eq!(pf.policy(vf(1)).mac, None, "nothing is changed");
    assert_eq!(
        pf.set_policy(&mut hal, vf(0), VfPolicy { trust: true, ..with_mac(1) }),
        Ok(()),
        "its own address"
    );
    pf.set_policy(&mut hal, vf(0), with_mac(2)).unwrap();
    assert_eq!(pf.set_policy(&mut hal, vf(1), with_mac(1)), Ok(()), "the address is free again");
}

#[test]
fn rttbcnrc_rate_factor_has_14_fractional_bits() {
    let mut hal = StoredRegisters::default();
    hal.write(r::STATUS, 2);
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 4).unwrap();
    for (mbps, factor) in [(1_000, 1 << 14), (1, 1_000 << 14), (300, 3 << 14 | 5_461)] {
        pf.set_policy(&mut hal, vf(2), at_rate(mbps)).unwrap();
        assert_eq!(hal.read(r::RTTDQSEL), 2);
        assert_eq!(hal.read(r::RTTBCNRC), 1 << 31 | factor, "{mbps}");
    }
    pf.set_policy(&mut hal, vf(2), at_rate(0)).unwrap();
    assert_eq!(hal.read(r::RTTBCNRC), 0);
}

#[test]
fn rttbcnrm_window_is_ten_ms_of_the_highest_vf_rate_limit() {
    let mut hal = StoredRegisters::default();
    hal.write(r::STATUS, 2);
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 4).unwrap();
    for (n, mbps, kilobytes) in [(2, 10, 0x14), (1, 200, 245), (2, 20, 245), (3, 1_000, 0x3ff), (3, 0, 245)] {
        pf.set_policy(&mut hal, vf(n), at_rate(mbps)).unwrap();
        assert_eq!(hal.read(r::RTTBCNRM), kilobytes, "{mbps} for VF {n}");
    }
}

#[test]
fn transmit_rate_limit_is_at_most_the_links_speed() {
    let mut hal = StoredRegisters::default();
    hal.write(r::STATUS, 2);
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 1).unwrap();
    assert_eq!(pf.set_policy(&mut hal, vf(0), at_rate(1_001)), Err(PolicyError::Rate(1_001, 1_000)));
    assert_eq!(pf.policy(vf(0)).max_tx_rate, 0);
}

#[test]
fn transmit_rate_limit_is_set_without_a_link() {
    let mut hal = StoredRegisters::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 1).unwrap();
    assert_eq!(pf.set_policy(&mut hal, vf(0), at_rate(1)), Ok(()));
    assert_eq!(hal.read(r::RTTBCNRC), 1 << 31 | 1_000 << 14);
    assert_eq!(pf.set_policies(&mut hal, &[at_rate(0)]), Ok(()));
    assert_eq!(hal.read(r::RTTBCNRC), 0);
}

#[test]
fn resets_of_a_vf_count_as_mailbox_requests() {
    let mut hal = StoredRegisters::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 1).unwrap();
    assert_eq!(pf.watch(&mut hal, vf(0), OffenceCounts::default()), None);
    hal.write(r::VFLRE, 1);
    (0..300).for_each(|_| _ = pf.visit(&mut hal));
    hal.wait(Duration::from_secs(1));
    let verdict = pf.watch(&mut hal, vf(0), OffenceCounts::default()).unwrap();
    assert_eq!(
        verdict,
        VfConductVerdict { offence: Offence::Mailbox, rate: 300, action: OffenceAction::Warn }
    );
}

#[test]
fn pf_probe_of_a_broken_card_fails_within_100_ms() {
    let mut hal = StoredRegisters { stuck: true, ..StoredRegisters::default() };
    assert_eq!(Pf::probe(&mut hal).unwrap_err(), PfError::ResetStuck);
    assert!(hal.now < Time::from_micros(100_000));
    let mut hal = StoredRegisters { gone: true, ..StoredRegisters::default() };
    assert_eq!(Pf::probe(&mut hal).unwrap_err(), PfError::Gone);
}

#[test]
fn pf_driver_polls_serve_every_vf_in_rotating_order() {
    let mut hal = StoredRegisters::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 8).unwrap();
    let mailboxes = [0, 1, 2, 3, 4, 5, 6, 7].map(|n| r::p2v_mailbox(vf(n)));
    for first in (0..8).chain(0..2) {
        mailboxes.iter().for_each(|mailbox| hal.write(*mailbox, 0));
        VfIndex::all().for_each(|vf| hal.write(r::vmbmem(vf, 0), id::VF_RESET));
        hal.ring(0xff);
        hal.log.clear();
        assert_eq!(pf.visit(&mut hal).served, 0xff);
        let asked = hal.log.iter().find(|offset| mailboxes.contains(offset));
        assert_eq!(asked, Some(&r::p2v_mailbox(vf(first))));
    }
}

#[test]
fn pf_reports_spoofing_and_link_change_by_interrupt_cause_only() {
    let mut hal = StoredRegisters::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 3).unwrap();
    hal.write(r::STATUS, status::LU);
    hal.write(r::WVBR, 1 | 1 << 9);
    let visit = pf.visit(&mut hal);
    assert_eq!((visit.link_changed, visit.spoofed), (false, 0));
    hal.write(r::ICR, icr::DOUTSYNC);
    let visit = pf.visit(&mut hal);
    assert_eq!((visit.link_changed, visit.spoofed), (false, 0b11), "queue 9 is VF 1's second");
    assert_eq!([0, 1, 2].map(|n| pf.counters(vf(n)).spoofed), [1, 1, 0]);
    hal.write(r::ICR, icr::LSC);
    assert!(pf.visit(&mut hal).link_changed);
}

#[test]
fn reset_of_a_disabled_vf_sets_no_pool_options() {
    let mut hal = StoredRegisters::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 2).unwrap();
    hal.write(r::VFLRE, 0b100);
    assert_eq!(pf.visit(&mut hal).resets, 0b100);
    assert_eq!(hal.read(r::vmolr(PoolIndex::EVERY[2])), 0);
}

#[test]
fn pf_driver_poll_of_a_removed_card_has_no_effect() {
    let mut hal = StoredRegisters::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 8).unwrap();
    hal.gone = true;
    assert_eq!(pf.visit(&mut hal), super::PfServiceResults::default());
}

#[test]
fn vf_link_is_down_if_its_policy_or_the_ports_link_is() {
    let mut hal = StoredRegisters::default();
    hal.write(r::STATUS, 2);
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 2).unwrap();
    assert!(pf.link_state(vf(0)));
    pf.set_vf_link(&mut hal, vf(0), VfLinkPolicy::Disable);
    assert_eq!((pf.link_state(vf(0)), pf.link_state(vf(1))), (false, true));
    pf.set_port_link(&mut hal, false);
    assert!(!pf.link_state(vf(1)));
    pf.set_port_link(&mut hal, true);
    hal.write(r::STATUS, 0);
    hal.write(r::ICR, 1 << 2);
    assert!(pf.visit(&mut hal).link_changed);
    assert!(!pf.link_state(vf(1)));
}
