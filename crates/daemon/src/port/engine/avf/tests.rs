//! Tests of what an AVF card charges to its VFs.

use super::AvfCard;
use crate::config::file::CardFamily;
use crate::config::{HostConfig, PortConfig};
use crate::confine::ThreadSandboxes;
use crate::port::engine::bus::GuestBus;
use crate::port::engine::family::PortCard;
use crate::port::engine::workers::DivisibleCard;
use avf::control::{CardCommand, CardControl};
use i82576::Time;
use pcie::{VfIndex, VfSet};
use plane::UnpluggedWire;
use plane::guard::{GuardedPlane, PortGuard};
use plane::switch::PortMirrorRules;
use std::path::Path;
use units::WorkCost;

/// Returns a new AVF card with its configuration, and a bus without clients.
fn card() -> (AvfCard, GuestBus, PortConfig) {
    let text = "[[port]]\nfamily = \"avf\"\nvfs = 2\n";
    let mut config = HostConfig::check(HostConfig::parse(text).unwrap(), Path::new("/run/softiov")).unwrap();
    let threads = ThreadSandboxes::prepare(&config).unwrap();
    let mut bus = GuestBus::new(("pf0", &[CardFamily::Avf; 2]), 1 << 30, &threads.helper).unwrap();
    let config = config.ports.remove(0);
    let mut card = AvfCard::new(&config, true, &mut bus, Time::ZERO).unwrap();
    card.take_changed(0, VfSet::NONE);
    settled(&mut card);
    (card, bus, config)
}

/// Returns the VFs that owe the port work, each with the cost.
fn settled(card: &mut AvfCard) -> Vec<(u8, WorkCost)> {
    let mut costs = Vec::new();
    card.settle_work(&mut |vf, cost| costs.push((vf.get(), cost)));
    costs
}

/// Has each of these VFs change its filters by the PF driver.
fn change(card: &mut AvfCard, bus: &mut GuestBus, vfs: &[u8]) {
    card.with_pf(bus, Time::ZERO, |_, hal| {
        hal.charges = true;
        vfs.iter()
            .for_each(|vf| hal.order(*vf, CardCommand::Promiscuity { unicast: false, multicast: false }));
    });
}

#[test]
fn changed_tables_cost_by_the_filters_of_all_vfs() {
    let (mut card, mut bus, _) = card();
    let costs = [0, 16].map(|groups| {
        card.with_pf(&mut bus, Time::ZERO, |_, hal| {
            for (vf, group) in
                VfIndex::first(64).flat_map(|vf| (0..groups).map(move |group| (vf.get(), group)))
            {
                hal.order(vf, CardCommand::Address { mac: [1, 0, 0x5e, 0, vf, group], on: true });
                hal.order(vf, CardCommand::Vlan { vlan: 1 + u16::from(group), on: true });
            }
        });
        change(&mut card, &mut bus, &[0]);
        assert!(card.take_changed(0, VfSet::NONE));
        settled(&mut card)
    });
    let (addresses, vlans) = card.card.nic.table_size();
    let [few, many] =
        [(addresses - 64 * 16, vlans - 64 * 16), (addresses, vlans)].map(|(a, v)| WorkCost::of_tables(a, v));
    assert_eq!(costs, [few, many].map(|tables| vec![(0, WorkCost::ACCESS + tables)]));
    assert!(many.0 > few.0 + 128);
}

#[test]
fn changed_tables_cost_by_the_addresses_that_vfs_hold() {
    let (mut card, mut bus, _) = card();
    let guard = PortGuard { checks_claims: true, ..PortGuard::default() };
    card.guards_mut().set_guards(&vec![guard; 64], &[], 0);
    for vf in 0..64 {
        card.with_pf(&mut bus, Time::ZERO, |_, hal| {
            (0..18).for_each(|n| hal.order(vf, CardCommand::Address { mac: [2, 7, 0, 0, vf, n], on: true }));
        });
    }
    card.card.nic.apply_policy(&mut card.plane, &PortMirrorRules::NONE);
    (0..64).for_each(|vf| card.card.nic.function_level_reset(vf));
    card.card.nic.apply_policy(&mut card.plane, &PortMirrorRules::NONE);
    let held = card.plane.absent_addresses();
    assert!(held >= 64 * 18);
    let (addresses, vlans) = card.card.nic.table_size();
    change(&mut card, &mut bus, &[0]);
    card.take_changed(0, VfSet::NONE);
    let tables = WorkCost::of_tables(addresses + held, vlans);
    assert_eq!(settled(&mut card), [(0, WorkCost::ACCESS + tables)]);
}

#[test]
fn comparisons_of_addresses_cost_their_vf_and_change_no_tables() {
    let (mut card, mut bus, _) = card();
    card.with_pf(&mut bus, Time::ZERO, |_, hal| {
        hal.charges = true;
        hal.charge_comparisons(1, 18 * 64 * 18);
    });
    assert!(!card.take_changed(0, VfSet::NONE));
    assert_eq!(settled(&mut card), [(1, WorkCost::of_comparisons(18 * 64 * 18))]);
}

#[test]
fn vfs_that_change_tables_in_one_round_share_the_cost() {
    let (mut card, mut bus, _) = card();
    let (addresses, vlans) = card.card.nic.table_size();
    change(&mut card, &mut bus, &[0, 1]);
    assert!(card.take_changed(8_000, VfSet::NONE));
    let tables = WorkCost::of_tables(addresses + 8_000, vlans);
    let share = WorkCost::ACCESS + WorkCost(tables.0.div_ceil(2));
    assert_eq!(settled(&mut card), [(0, share), (1, share)]);
}

#[test]
fn reset_that_waits_for_credit_keeps_the_port_whole() {
    let (mut card, mut bus, _) = card();
    let vf = VfIndex::of_field(0);
    let only: VfSet = [vf].into_iter().collect();
    assert!(!card.has_changed());
    card.asking = only;
    card.hold_requests(only);
    assert!(card.reset_function(vf.function()));
    card.visit(&mut bus, Time::ZERO);
    assert!(card.pending_requests(Time::ZERO).is_empty(), "the reset has voided them");
    assert!(card.has_changed());
    card.hold_requests(VfSet::NONE);
    card.visit(&mut bus, Time::ZERO);
    card.take_changed(0, VfSet::NONE);
    assert!(!card.has_changed());
}

#[test]
fn part_of_an_avf_card_reports_its_visit_to_each_bus_master() {
    let (mut card, mut bus, _) = card();
    let mut visits = 0;
    card.card.nic.set_bus_master(1, true);
    card.card.move_frames(&mut card.plane, &mut bus, &mut UnpluggedWire, || visits += 1);
    assert_eq!(visits, 1);
}
