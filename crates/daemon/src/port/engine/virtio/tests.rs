//! Tests of a virtio port's card: link, conduct, and the state that outlives the process. The tests of `virtio-nic` cover
//! frames and rings.

use super::{PortCard, VirtioCard};
use crate::config::file::CardFamily;
use crate::config::{HostConfig, PortConfig};
use crate::confine::ThreadSandboxes;
use crate::port::engine::bus::GuestBus;
use crate::port::engine::error::InheritedStateError;
use crate::port::engine::workers::DivisibleCard;
use crate::state::port::ClientState;
use crate::state::{self, SavedStateError, VirtioPortState};
use i82576::{MacAddress, Time};
use pcie::{Function, VfIndex};
use plane::{PortIndex, UnpluggedWire};
use policy::{Offence, OffenceAction, OffenceThresholds, VfLinkPolicy, VfPolicy};
use std::path::Path;
use units::WorkCost;
use virtio_nic::{PausedPacket, VfRules};

const VFS: usize = 3;
const VF: VfIndex = VfIndex::of_field(1);
/// Transmit rate limit of a throttled VF in Mb/s.
const THROTTLED: u32 = 10;

fn seconds(s: u64) -> Time {
    Time::from_micros(s * 1_000_000)
}

/// Returns the configuration of a virtio port with the `lines` of TOML added.
fn config(lines: &str) -> PortConfig {
    let text = format!("[[port]]\nfamily = \"virtio\"\nvfs = {VFS}\n{lines}");
    let mut host = HostConfig::check(HostConfig::parse(&text).unwrap(), Path::new("/run/softiov")).unwrap();
    host.ports.remove(0)
}

/// Returns a bus without clients.
fn bus() -> GuestBus {
    let file = HostConfig::parse("").unwrap();
    let threads = ThreadSandboxes::prepare(&HostConfig::check(file, Path::new("/run")).unwrap()).unwrap();
    GuestBus::new(("pf0", &[CardFamily::Virtio; VFS]), 1 << 30, &threads.helper).unwrap()
}

fn rules(card: &VirtioCard) -> &VfRules {
    card.card.rules(VF.get()).unwrap()
}

/// Resets a VF twenty times in a second, against a threshold that throttles at ten.
fn misbehave(card: &mut VirtioCard, from: u64) -> Option<OffenceAction> {
    let threshold = OffenceThresholds { warn: 0, throttle: 10, quarantine: 0 };
    card.rules.policy.limits[Offence::Mailbox as usize] = threshold;
    card.watch(VF, 0, seconds(from));
    (0..20).for_each(|_| assert!(card.reset_function(VF.function())));
    card.watch(VF, 0, seconds(from + 1)).map(|verdict| verdict.action)
}

/// Returns the VFs that owe the port work, each with the cost.
fn settled(card: &mut VirtioCard) -> Vec<(u8, WorkCost)> {
    let mut costs = Vec::new();
    card.settle_work(&mut |vf, cost| costs.push((vf.get(), cost)));
    costs
}

#[test]
fn vfs_that_change_addresses_together_share_the_tables_cost() {
    let (mut bus, mut card) = (bus(), VirtioCard::new(&config(""), true));
    assert!(card.take_changed() && settled(&mut card).is_empty(), "no guest has changed anything");
    let addresses = card.card.address_count();
    let WorkCost(tables) = WorkCost::of_tables(addresses, addresses);
    card.card.reset(0);
    card.card.reset(2);
    assert!(card.take_changed() && !card.take_changed());
    let share = WorkCost(tables.div_ceil(2));
    assert_eq!(settled(&mut card), [(0, share), (2, share)]);
    // As if the guest's first frame had this source address.
    card.card.announce(1, MacAddress([2, 0, 0, 0, 0, 9]));
    card.card.visit_ready(&mut card.plane, 1, &mut bus, &mut UnpluggedWire);
    assert!(card.take_changed());
    assert_eq!(settled(&mut card), [(1, WorkCost(tables))]);
}

#[test]
fn vf_with_its_link_down_by_policy_or_port_moves_no_frame() {
    let mut bus = bus();
    let mut card = VirtioCard::new(&config(""), true);
    let policies = |state| vec![VfPolicy { state, ..VfPolicy::default() }; VFS];
    for (state, port, expected) in [
        (VfLinkPolicy::Auto, true, true),
        (VfLinkPolicy::Auto, false, false),
        (VfLinkPolicy::Enable, false, true),
        (VfLinkPolicy::Disable, true, false),
    ] {
        let port_policy = card.rules.policy;
        card.apply_policies(&port_policy, &policies(state), &mut bus, Time::ZERO).unwrap();
        card.set_link(port);
        let link = card.vf_status(VF).unwrap().link;
        assert_eq!((link, rules(&card).enabled), (expected, expected), "{state:?}, port {port}");
        assert_eq!(card.is_disconnected(VF), state == VfLinkPolicy::Disable);
    }
}

#[test]
fn vf_whose_client_is_being_disconnected_moves_no_frame() {
    let (mut bus, mut card) = (bus(), VirtioCard::new(&config(""), true));
    for (hidden, expected) in [(true, false), (false, true)] {
        card.show_link(VF, hidden, &mut bus, Time::ZERO).unwrap();
        assert_eq!(rules(&card).enabled, expected);
    }
}

#[test]
fn vfs_that_the_port_does_not_offer_move_no_frame() {
    let card = VirtioCard::new(&config(""), true);
    let enabled: Vec<u8> = (0..64).filter(|vf| card.card.rules(*vf).unwrap().enabled).collect();
    assert_eq!(enabled, [0, 1, 2]);
}

#[test]
fn reset_of_a_vf_keeps_its_policy() {
    let mut card = VirtioCard::new(&config("vf = [{ index = 1, vlan = 7 }]"), true);
    let before = rules(&card).clone();
    assert!(card.reset_function(VF.function()) && !card.reset_function(Function::Pf));
    assert_eq!(*rules(&card), before);
    assert_eq!(card.driver_state(VF).unwrap().resets, 1);
}

#[test]
fn throttled_vf_sends_slowly_for_ten_seconds() {
    let mut card = VirtioCard::new(&config("vf = [{ index = 1, max_tx_rate = 100 }]"), true);
    assert_eq!(misbehave(&mut card, 1), Some(OffenceAction::Throttle));
    assert_eq!(rules(&card).max_tx_rate, THROTTLED);
    assert_eq!(card.end_throttles(seconds(3)), Some(seconds(12)));
    assert_eq!(rules(&card).max_tx_rate, THROTTLED);
    assert_eq!(card.end_throttles(seconds(12)), None);
    assert_eq!(rules(&card).max_tx_rate, 100);
}

#[test]
fn quarantined_vf_has_no_link_until_its_release() {
    let (mut bus, mut card) = (bus(), VirtioCard::new(&config(""), true));
    card.quarantine(VF, true, &mut bus, Time::ZERO);
    assert_eq!(card.vf_status(VF).unwrap().settings.quarantine, Some(true));
    assert!(!rules(&card).enabled && card.is_disconnected(VF));
    card.quarantine(VF, false, &mut bus, Time::ZERO);
    assert!(rules(&card).enabled && card.vf_status(VF).unwrap().conduct.quarantine.is_none());
    let configured = VirtioCard::new(&config("vf = [{ index = 1, quarantine = true }]"), true);
    assert!(!rules(&configured).enabled, "the file demands it");
}

#[test]
fn next_process_keeps_vf_policies_throttles_and_quarantines() {
    let (file, mut bus) = (config(""), bus());
    let mut card = VirtioCard::new(&file, true);
    let mut policies: Vec<_> = file.vfs.iter().map(|vf| vf.policy).collect();
    policies[1].max_tx_rate = 50;
    card.apply_policies(&file.policy, &policies, &mut bus, Time::ZERO).unwrap();
    misbehave(&mut card, 1);
    card.quarantine(VfIndex::of_field(2), true, &mut bus, Time::ZERO);
    let drivers = card.save_drivers().unwrap();
    let all = card.save_all(seconds(2), vec![ClientState::default(); VFS], &mut bus, seconds(2)).unwrap();
    // The state file has the changes.
    let mut kept = file.clone();
    kept.vfs.iter_mut().zip(policies).for_each(|(vf, policy)| vf.policy = policy);
    kept.vfs[2].quarantine = true;
    let resumed = VirtioCard::resume(&kept, &all).unwrap();
    assert_eq!((resumed.watched, resumed.functions.len()), (seconds(2), VFS));
    let mut cards = [VirtioCard::by_software(&kept, true, &drivers).unwrap(), VirtioCard::new(&file, true)];
    for (card, throttled, rate) in [(0, true, 50), (1, false, 0)] {
        let card = &mut cards[card];
        let status = card.vf_status(VF).unwrap();
        assert_eq!((status.conduct.throttled, status.settings.max_tx_rate), (throttled, Some(rate)));
        card.end_throttles(seconds(60));
        assert_eq!(rules(card).max_tx_rate, rate, "the throttle ends in the next process, too");
    }
    let quarantine = resumed.card.vf_status(VfIndex::of_field(2)).unwrap().conduct.quarantine;
    assert_eq!(quarantine.as_deref(), Some("administrator"));
}

/// `transmit_account_is_ahead_by_one_frame_at_most` of the plane bounds what the next process forgives.
#[test]
fn next_process_forgives_a_vf_its_last_frame() {
    // The factor of 1 Mb/s.
    let (mut bus, port, rate) = (bus(), PortIndex::of_field(1), Some(1_000 << 14));
    let mut card = VirtioCard::new(&config(""), true);
    card.plane.pacing.set_rate(port, rate);
    card.plane.pacing.visit(port, seconds(5));
    assert_eq!(card.plane.pacing.due(port), seconds(5));
    let all = card.save_all(seconds(2), vec![ClientState::default(); VFS], &mut bus, seconds(2)).unwrap();
    let mut resumed = VirtioCard::resume(&config(""), &all).unwrap().card;
    resumed.plane.pacing.set_rate(port, rate);
    assert_eq!(resumed.plane.pacing.due(port), Time::ZERO);
}

#[test]
fn changed_configuration_replaces_the_predecessors_policy() {
    let (file, mut bus) = (config(""), bus());
    let mut card = VirtioCard::new(&file, true);
    let mut policies: Vec<_> = file.vfs.iter().map(|vf| vf.policy).collect();
    policies[1].max_tx_rate = 50;
    card.apply_policies(&file.policy, &policies, &mut bus, Time::ZERO).unwrap();
    let drivers = card.save_drivers().unwrap();
    let changed = config("vf = [{ index = 1, max_tx_rate = 70 }]");
    let card = VirtioCard::by_software(&changed, true, &drivers).unwrap();
    assert_eq!(rules(&card).max_tx_rate, 70);
}

#[test]
fn saved_state_with_an_invalid_policy_is_refused() {
    let file = config("");
    let drivers = VirtioCard::new(&file, true).save_drivers().unwrap();
    assert!(matches!(
        VirtioCard::resume(&file, &drivers),
        Err(InheritedStateError::State(SavedStateError::Body))
    ));
    let mut state: VirtioPortState = state::read(&drivers).unwrap();
    state.policies[0].mac = Some(MacAddress([1, 0, 0, 0, 0, 1]));
    let refused = VirtioCard::by_software(&file, true, &state::write(&state).unwrap());
    assert!(matches!(refused, Err(InheritedStateError::State(SavedStateError::Body))));
}

#[test]
fn saved_state_of_another_number_of_vfs_is_refused() {
    let (file, mut bus) = (config(""), bus());
    let mut card = VirtioCard::new(&file, true);
    let all = card.save_all(Time::ZERO, vec![ClientState::default(); 2], &mut bus, Time::ZERO).unwrap();
    assert!(matches!(VirtioCard::resume(&file, &all), Err(InheritedStateError::Functions)));
}

/// The state of a hand-over has the counters as of the last round.
#[test]
fn packet_dropped_after_the_last_round_is_counted() {
    let mut card = VirtioCard::new(&config(""), true);
    let packet = PausedPacket { queue: 0, sent: 1, segment_size: 0, bytes: Vec::new() };
    assert!(!card.card.continue_packet(VF.get(), &packet));
    assert_eq!(card.counters(VF.function()).tx_unclaimed, 1);
    let mut bus = bus();
    card.card.visit_ready(&mut card.plane, 1, &mut bus, &mut UnpluggedWire);
    assert_eq!(card.counters(VF.function()).tx_unclaimed, 1, "the packet is counted once");
}

#[test]
fn part_of_a_card_reports_its_visit_to_each_vf() {
    let (mut bus, mut card, mut visits) = (bus(), VirtioCard::new(&config(""), true), 0);
    let mut part = virtio_nic::Nic::new_part();
    part.move_frames(&mut card.plane, &mut bus, &mut UnpluggedWire, || visits += 1);
    assert_eq!(visits, virtio_nic::MAX_VFS);
}
