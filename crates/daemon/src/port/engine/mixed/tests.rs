//! Tests of a mixed port's card: policies of both families, and the state that outlives the process. Live tests cover
//! frames.

use super::{MixedCard, PortCard};
use crate::config::file::CardFamily;
use crate::config::{HostConfig, PortConfig};
use crate::confine::ThreadSandboxes;
use crate::port::engine::bus::GuestBus;
use crate::port::engine::error::InheritedStateError;
use crate::port::engine::uplink::PortUplink;
use crate::port::engine::uplink::test_support::with_resources;
use crate::state::SavedStateError;
use crate::state::port::ClientState;
use i82576::{MacAddress, Time};
use pcie::{Function, VfIndex};
use plane::{PortIndex, UnpluggedWire};
use policy::{PolicyError, VfLinkPolicy, VfPolicy};
use std::path::Path;
use units::WorkCost;
use units::work::FRAME_QUANTUM;
use vfio_user::wire::pci_region::BAR0;

const VFS: usize = 4;
/// VFs of the family AVF, and of the family virtio.
const AVF: VfIndex = VfIndex::of_field(0);
const VIRTIO: VfIndex = VfIndex::of_field(2);
const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

/// Returns the configuration of an AVF port whose VFs 2 and 3 are of the family virtio.
fn config(lines: &str) -> PortConfig {
    let virtio = [2, 3].map(|vf| format!("[[port.vf]]\nindex = {vf}\nfamily = \"virtio\"\n")).concat();
    let text = format!("[[port]]\nfamily = \"avf\"\nvfs = {VFS}\n{lines}\n{virtio}");
    let mut host = HostConfig::check(HostConfig::parse(&text).unwrap(), Path::new("/run/softiov")).unwrap();
    host.ports.remove(0)
}

/// Returns a bus without clients.
fn bus(config: &PortConfig) -> GuestBus {
    let file = HostConfig::parse("").unwrap();
    let threads = ThreadSandboxes::prepare(&HostConfig::check(file, Path::new("/run")).unwrap()).unwrap();
    let families: Vec<_> = config.vfs.iter().map(|vf| vf.family).collect();
    GuestBus::new(("pf0", &families), 1 << 30, &threads.helper).unwrap()
}

fn policies(config: &PortConfig) -> Vec<VfPolicy> {
    config.vfs.iter().map(|vf| vf.policy).collect()
}

#[test]
fn each_vf_is_a_device_of_its_family() {
    let config = config("");
    let mut bus = bus(&config);
    let card = MixedCard::new(&config, true, &mut bus, Time::ZERO).unwrap();
    let families = [CardFamily::Avf, CardFamily::Avf, CardFamily::Virtio, CardFamily::Virtio];
    for (vf, family) in VfIndex::first(VFS).zip(families) {
        let function = vf.function();
        assert_eq!((card.vf_family(vf), card.is_virtio(function)), (family, family == CardFamily::Virtio));
        assert_eq!(card.region(function, BAR0) > 0, family == CardFamily::Avf);
        assert_eq!(card.rid(vf).is_some(), family == CardFamily::Avf);
        assert_eq!(card.mappable(vf).is_empty(), family == CardFamily::Virtio);
    }
    assert!(!card.is_virtio(Function::Pf) && card.is_hosted());
}

#[test]
fn next_process_keeps_the_policies_of_both_families() {
    let config = config("");
    let mut bus = bus(&config);
    let mut card = MixedCard::new(&config, true, &mut bus, Time::ZERO).unwrap();
    let mut wanted = policies(&config);
    (wanted[0].max_tx_rate, wanted[2].max_tx_rate) = (20, 50);
    card.apply_policies(&config.policy, &wanted, &mut bus, Time::ZERO).unwrap();
    card.quarantine(VfIndex::of_field(3), true, &mut bus, Time::ZERO);
    let drivers = card.save_drivers().unwrap();
    let clients = vec![ClientState::default(); VFS];
    let all = card.save_all(Time::from_micros(5), clients, &mut bus, Time::ZERO).unwrap();
    // The state file has the changes.
    let mut config = config;
    config.vfs.iter_mut().zip(wanted).for_each(|(vf, policy)| vf.policy = policy);
    config.vfs[3].quarantine = true;
    let resumed = MixedCard::resume(&config, &all, &mut bus, Time::ZERO).unwrap();
    assert_eq!((resumed.watched, resumed.functions.len()), (Time::from_micros(5), VFS));
    let software = (&drivers[..], Vec::new());
    let anew = MixedCard::by_software(&config, true, software, &mut bus, Time::ZERO).unwrap();
    for card in [&*resumed.card, &anew] {
        let rates = [AVF, VIRTIO].map(|vf| card.vf_status(vf).unwrap().settings.max_tx_rate);
        assert_eq!(rates, [Some(20), Some(50)]);
        assert!(card.vf_status(VfIndex::of_field(3)).unwrap().conduct.quarantine.is_some());
    }
}

#[test]
fn state_of_vfs_with_other_families_is_refused() {
    let mixed = config("");
    let mut bus = bus(&mixed);
    let drivers = MixedCard::new(&mixed, true, &mut bus, Time::ZERO).unwrap().save_drivers().unwrap();
    let mut other = mixed;
    (other.vfs[1].family, other.vfs[2].family) = (CardFamily::Virtio, CardFamily::Avf);
    let software = (&drivers[..], Vec::new());
    let refused = MixedCard::by_software(&other, true, software, &mut bus, Time::ZERO);
    assert!(matches!(refused, Err(InheritedStateError::State(SavedStateError::Body))), "{refused:?}");
}

#[test]
fn address_of_a_vf_is_not_given_to_a_vf_of_the_other_family() {
    let config = config("");
    let mut bus = bus(&config);
    let mut card = MixedCard::new(&config, true, &mut bus, Time::ZERO).unwrap();
    // As if the virtio guest's first frame had this source address.
    card.virtio.card.announce(VIRTIO.get(), MAC);
    card.follow_changes();
    let virtio = &mut card.virtio;
    virtio.card.visit_ready(&mut virtio.plane, 1, &mut bus, &mut UnpluggedWire);
    card.settle_work(&mut |vf, _| panic!("{vf:?} has changed nothing"));
    card.follow_changes();
    let mut payers = Vec::new();
    card.settle_work(&mut |vf, cost| payers.push((vf, cost > WorkCost(40))));
    assert_eq!(payers, [(VIRTIO, true)], "the tables with the learned address");
    assert_eq!(card.vf_status(VIRTIO).unwrap().mac, Some(MAC));
    let mut wanted = policies(&config);
    (wanted[0].mac, wanted[0].admin_mac) = (Some(MAC), true);
    let refused = card.apply_policies(&config.policy, &wanted, &mut bus, Time::ZERO);
    assert!(matches!(refused, Err((Some(AVF), PolicyError::MacInUse(MAC, _)))), "{refused:?}");
    // Both addresses may change at once.
    (wanted[2].mac, wanted[2].admin_mac) = (Some(MacAddress([2, 0, 0, 0, 0, 10])), true);
    assert_eq!(card.apply_policies(&config.policy, &wanted, &mut bus, Time::ZERO), Ok(()));
    card.follow_changes();
    let addresses = [AVF, VIRTIO].map(|vf| card.vf_status(vf).unwrap().mac);
    assert_eq!(addresses, [wanted[0].mac, wanted[2].mac]);
}

#[test]
fn link_and_policy_reach_the_vfs_of_both_families() {
    let config = config("");
    let mut bus = bus(&config);
    let mut card = MixedCard::new(&config, true, &mut bus, Time::ZERO).unwrap();
    let links = |card: &MixedCard| [AVF, VIRTIO].map(|vf| card.vf_status(vf).unwrap().link);
    assert_eq!(links(&card), [true; 2]);
    card.set_link(false);
    card.visit(&mut bus, Time::ZERO);
    assert_eq!((links(&card), card.link()), ([false; 2], false));
    card.set_link(true);
    card.visit(&mut bus, Time::ZERO);
    let mut wanted = policies(&config);
    wanted.iter_mut().for_each(|policy| policy.state = VfLinkPolicy::Disable);
    card.apply_policies(&config.policy, &wanted, &mut bus, Time::ZERO).unwrap();
    assert_eq!((links(&card), card.is_disconnected(VIRTIO)), ([false; 2], true));
    assert!(!card.is_disconnected(AVF), "the client of an AVF VF stays");
}

/// Returns the uplink of a port without one.
fn no_uplink(config: &PortConfig) -> PortUplink {
    with_resources(|resources| PortUplink::open(config, resources).unwrap())
}

#[test]
fn poll_of_both_cards_credits_each_vf_with_one_share() {
    let config = config("");
    let (mut bus, mut uplink) = (bus(&config), no_uplink(&config));
    let mut card = MixedCard::new(&config, true, &mut bus, Time::ZERO).unwrap();
    card.poll(Time::ZERO, &mut bus, &mut uplink);
    let ports = [AVF, VIRTIO].map(|vf| PortIndex::of_field(vf.get().into()));
    // Each VF has one share now, so it owes one share, which the next poll pays.
    ports.iter().for_each(|port| card.virtio.plane.shares.charge(*port, FRAME_QUANTUM + FRAME_QUANTUM));
    let mut have_credit = || {
        card.poll(Time::ZERO, &mut bus, &mut uplink);
        ports.map(|port| card.virtio.plane.shares.have_credit(port))
    };
    assert_eq!((have_credit(), have_credit()), ([false; 2], [true; 2]));
}
