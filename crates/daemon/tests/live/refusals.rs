//! Tests of requests that the PF refuses a guest on a live host, by Linux igb's rules and by policy, each with its
//! reason in `vf show`. The reason `no-address` cannot occur: every VF of a live host has an address.

use crate::support::eventually;
use crate::support::guest::VfGuest;
use crate::support::http;
use crate::support::live::LiveHost;
use crate::support::machine::VmWithPciFunction;
use crate::support::qemu::{self, QemuClient};
use daemon::control::status::FilterQuotaStatus;
use daemon::settings::{PortSettings, VfSettings};
use driver::Hal;
use driver::vf::{MailboxError, Vf, VfError};
use i82576::MacAddress;
use i82576::register::vf::{V2PMAILBOX, VMBMEM};

const OTHER: MacAddress = MacAddress([2, 5, 5, 5, 5, 5]);

type MailboxResult = Result<(), VfError>;

/// Starts a host, changes the settings of VF 0, and boots a guest on VF 0.
fn guest(change: VfSettings) -> (LiveHost, VfGuest<QemuClient>) {
    let live = LiveHost::start();
    live.change(0, change);
    let guest = VfGuest::under_qemu(&live, 0);
    (live, guest)
}

/// Sends a mailbox request by `ask`. Checks that the PF refuses it, and that the VF's status counts one refusal, for
/// the reason `why`.
#[track_caller]
fn assert_refused(
    world: &mut (LiveHost, VfGuest<QemuClient>),
    why: &str,
    ask: impl FnOnce(&mut Vf, &mut VmWithPciFunction<QemuClient>) -> MailboxResult,
) {
    let (live, guest) = world;
    let asked = ask(&mut guest.vf, &mut guest.machine);
    assert!(matches!(asked, Err(VfError::Mailbox(MailboxError::Refused(_)))), "{asked:?}");
    let refused = live.show(0).mailbox.refused;
    assert_eq!(refused.into_iter().collect::<Vec<_>>(), [(why.to_owned(), 1)]);
}

/// Writes a message to the VF's mailbox registers and signals the PF, without the mailbox protocol of a driver.
fn raw(machine: &mut VmWithPciFunction<QemuClient>, words: &[u32]) {
    machine.write(V2PMAILBOX, 4);
    for (word, at) in words.iter().zip((VMBMEM..).step_by(4)) {
        machine.write(at, *word);
    }
    machine.write(V2PMAILBOX, 1);
}

#[track_caller]
fn is_counted(live: &LiveHost, why: &str) {
    eventually(why, || live.show(0).mailbox.refused.get(why) == Some(&1));
}

#[test]
fn mailbox_request_before_the_vf_reset_is_refused_as_not_ready() {
    let live = LiveHost::start();
    // The connection stays open, because its end would remove the request.
    let mut qemu = qemu::boot(&live.socket(0));
    raw(&mut qemu, &[2, 3, 4]);
    is_counted(&live, "not-ready");
}

#[test]
fn guest_cannot_change_a_mac_address_set_by_the_administrator() {
    let mut world = guest(VfSettings { mac: Some("02:00:00:00:00:77".into()), ..VfSettings::default() });
    assert_refused(&mut world, "address-fixed", |vf, hal| vf.set_mac(hal, OTHER));
    world.0.change(0, VfSettings { trust: Some(true), ..VfSettings::default() });
    world.1.vf.set_mac(&mut world.1.machine, OTHER).expect("a trusted guest may change it");
}

#[test]
fn multicast_mac_address_is_refused_as_invalid() {
    let mut world = guest(VfSettings::default());
    assert_refused(&mut world, "address-invalid", |vf, hal| vf.set_mac(hal, MacAddress::BROADCAST));
}

#[test]
fn mac_address_in_use_by_another_vf_is_refused() {
    let mut world = guest(VfSettings::default());
    let neighbour = VfGuest::under_qemu(&world.0, 1);
    assert_refused(&mut world, "address-in-use", |vf, hal| vf.set_mac(hal, neighbour.vf.mac()));
    for vf in [0, 1] {
        world.0.change(vf, VfSettings { share_mac: Some(true), ..VfSettings::default() });
    }
    world
        .1
        .vf
        .set_mac(&mut world.1.machine, neighbour.vf.mac())
        .expect("two VFs with share_mac may have the same address");
}

/// Tests that a VF's own address stays reserved while its guest uses another one, because the VF has it again after a
/// reset.
#[test]
fn mac_assigned_to_another_vf_is_refused_even_if_unused() {
    let mut world = guest(VfSettings::default());
    let mut neighbour = VfGuest::under_qemu(&world.0, 1);
    let own = neighbour.vf.mac();
    neighbour.vf.set_mac(&mut neighbour.machine, OTHER).unwrap();
    assert_refused(&mut world, "address-in-use", |vf, hal| vf.set_mac(hal, own));
}

/// Tests that two functions cannot be given the same MAC address, so that no guest receives frames of another guest.
#[test]
fn administrator_cannot_assign_a_mac_address_twice() {
    let (live, mut sender) = guest(VfSettings::default());
    let mut neighbour = VfGuest::under_qemu(&live, 1);
    let (before, port) = (live.show(2), live.port().mac);
    let set = |mac: &str| VfSettings { mac: Some(mac.into()), trust: Some(true), ..VfSettings::default() };
    for (mac, owner) in [(neighbour.vf.mac().to_string(), "pf0vf1.mac"), (port, "pf0.mac")] {
        let refusal = live.refusal(2, set(&mac));
        assert!(refusal.contains(&format!("{mac} is also given to {owner}")), "{refusal}");
    }
    assert_eq!(live.show(2), before, "a refused change has changed something");
    let other = OTHER.to_string();
    neighbour.vf.set_mac(&mut neighbour.machine, OTHER).unwrap();
    assert!(
        live.refusal(2, set(&other)).contains("is in use by vf1"),
        "the address that the neighbour chose is free"
    );
    assert!(sender.send(OTHER, &[1; 60]));
    assert_eq!(neighbour.receive(), [[1; 60]]);
}

#[test]
fn mac_filters_guaranteed_to_other_vfs_are_refused() {
    let mut world = guest(VfSettings::default());
    let address = |n| MacAddress([2, 7, 7, 7, 7, n]);
    for n in 0..7 {
        world.1.vf.add_mac(&mut world.1.machine, address(n)).unwrap();
    }
    assert_refused(&mut world, "no-filter", |vf, hal| vf.add_mac(hal, address(13)));
}

#[test]
fn vlan_filter_is_refused_to_a_guest_on_a_port_vlan() {
    let mut world = guest(VfSettings { vlan: Some(100), ..VfSettings::default() });
    assert_refused(&mut world, "vlan-fixed", |vf, hal| vf.set_vlan(hal, 5, true));
}

#[test]
fn vlan_outside_the_administrators_list_is_refused() {
    let mut world = guest(VfSettings { vlans: Some("10".into()), ..VfSettings::default() });
    assert_refused(&mut world, "vlan-not-allowed", |vf, hal| vf.set_vlan(hal, 5, true));
}

#[test]
fn vlan_filters_guaranteed_to_other_vfs_are_refused() {
    let mut world = guest(VfSettings::default());
    for vlan in 1..20 {
        world.1.vf.set_vlan(&mut world.1.machine, vlan, true).unwrap();
    }
    assert_refused(&mut world, "no-vlan-filter", |vf, hal| vf.set_vlan(hal, 32, true));
}

/// Tests the whole way of a quota: settings, requests of two guests, a reset, the status and the metrics.
#[test]
fn guaranteed_filters_stay_free_and_a_lost_client_returns_them() {
    let (live, mut greedy) = guest(VfSettings { max_mac_filters: Some(4), ..VfSettings::default() });
    let address = |n| MacAddress([2, 7, 7, 7, 7, n]);
    let granted = |vf: &mut VfGuest<QemuClient>, first: u16| {
        let ids = first..first + 100;
        ids.take_while(|vlan| vf.vf.set_vlan(&mut vf.machine, *vlan, true).is_ok()).count()
    };
    let macs = (0..9).take_while(|n| greedy.vf.add_mac(&mut greedy.machine, address(*n)).is_ok()).count();
    assert_eq!((macs, granted(&mut greedy, 1)), (4, 19));
    let quotas = live.show(0).quotas.expect("an 82576 VF has quotas");
    let triple = |of: FilterQuotaStatus| (of.used, of.guaranteed, of.most);
    assert_eq!((triple(quotas.mac), triple(quotas.vlan)), ((4, 1, 4), (19, 2, 31)));
    let metrics = http::ask(&live.control_socket(), "GET", "/metrics", "").body;
    assert!(metrics.contains(r#"softiov_vf_filters{kind="vlan",pf="pf0",vf="0"} 19"#), "{metrics}");
    let mut neighbour = VfGuest::under_qemu(&live, 1);
    assert_eq!(granted(&mut neighbour, 1_000), 2, "what is guaranteed, and nothing is left");
    drop(greedy);
    eventually("the filters of the lost client are free", || live.show(0).quotas.unwrap().vlan.used == 0);
    eventually("the refused VLAN is joined", || live.show(1).vlans.contains(&1_002));
}

#[test]
fn guarantees_of_more_filters_than_the_card_has_are_refused() {
    let live = guest(VfSettings::default()).0;
    let refusal = live.refusal(0, VfSettings { min_vlan_filters: Some(20), ..VfSettings::default() });
    assert!(
        refusal.contains("min_vlan_filters") && refusal.contains("are 32, and the card has 31"),
        "{refusal}"
    );
    live.change(0, VfSettings { min_vlan_filters: Some(19), ..VfSettings::default() });
    assert_eq!(live.show(0).settings.min_vlan_filters, Some(19));
}

#[test]
fn number_of_vfs_changes_if_the_guarantees_fit_afterwards() {
    let live = LiveHost::start();
    let min = |min| VfSettings { min_vlan_filters: Some(min), ..VfSettings::default() };
    let count = |vfs| live.change_port(PortSettings { vfs: Some(vfs), ..PortSettings::default() });
    count(3).unwrap();
    live.change(2, min(0));
    live.change(0, min(29));
    assert_eq!(count(2).unwrap().vfs.len(), 2, "the VF that goes has no guarantee");
    let refusal = count(7).unwrap_err().to_string();
    assert!(refusal.contains("the card has 31"), "{refusal}");
    assert_eq!((live.show_port("pf0").vfs.len(), live.show(0).settings.min_vlan_filters), (2, Some(29)));
    live.change(0, min(19));
    assert_eq!(count(7).unwrap().vfs.len(), 7);
}

#[test]
fn frame_length_beyond_the_cards_limit_is_refused() {
    let (live, mut guest) = guest(VfSettings::default());
    raw(&mut guest.machine, &[5, 9729]);
    is_counted(&live, "frame-length");
}

#[test]
fn mtu_above_the_administrators_limit_is_refused() {
    let mut world = guest(VfSettings { max_mtu: Some(1500), ..VfSettings::default() });
    assert_refused(&mut world, "mtu-limit", |vf, hal| vf.set_max_frame(hal, 4_000));
}

#[test]
fn multicast_promiscuity_is_refused_without_allmulti() {
    let mut world = guest(VfSettings { allmulti: Some(false), ..VfSettings::default() });
    assert_refused(&mut world, "multicast-promiscuity", |vf, hal| vf.set_all_multicast(hal, true));
}

#[test]
fn unicast_promiscuity_is_never_allowed() {
    let mut world = guest(VfSettings::default());
    assert_refused(&mut world, "unicast-promiscuity", |vf, hal| vf.set_promiscuous(hal));
}

#[test]
fn unknown_mailbox_message_is_refused() {
    let (live, mut guest) = guest(VfSettings::default());
    raw(&mut guest.machine, &[0x77]);
    is_counted(&live, "unknown");
}
