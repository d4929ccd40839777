//! Tests of configuration files that are applied to a running host: guests whose VFs stay are not disturbed.

use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::raw::RawVfioUserConnection;
use daemon::control::client::ask;
use daemon::control::protocol::{
    ApplyRequest, ConfigChangeKind, ControlAnswer, ControlRequest, SettingsCommand,
};
use daemon::settings::{PortSettings, VfSettings};
use i82576::MacAddress;

/// Applies a configuration file to the host. Returns the names of the changed ports and VFs with the kind of
/// change, or the error.
fn apply(live: &LiveHost, text: &str) -> Result<Vec<(String, ConfigChangeKind)>, String> {
    let file = ApplyRequest { name: "test.toml".into(), text: text.into(), ..ApplyRequest::default() };
    match ask(&live.control_socket(), ControlRequest::Apply(file)) {
        Ok(ControlAnswer::Difference(told)) => {
            Ok(told.changes.into_iter().map(|c| (c.name, c.what)).collect())
        }
        Ok(other) => panic!("unexpected answer to apply: {other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

fn vfs(count: u8) -> PortSettings {
    PortSettings { vfs: Some(count), ..PortSettings::default() }
}

#[test]
fn vfs_are_added_and_removed_while_others_exchange_frames() {
    let live = LiveHost::with("[[port]]\nvfs = 2\n");
    let (mut one, mut other) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    let resets = |vf| live.show(vf).mailbox.resets;
    let before = (resets(0), resets(1));
    exchange(&mut one, &mut other, 10);
    live.change_port(vfs(8)).unwrap();
    exchange(&mut one, &mut other, 10);
    let mut new = VfGuest::under_qemu(&live, 7);
    exchange(&mut one, &mut new, 10);
    live.change_port(vfs(2)).unwrap();
    exchange(&mut one, &mut other, 10);
    assert_eq!((resets(0), resets(1)), before, "a remaining VF was reset");
    assert_eq!(live.port().vfs.len(), 2);
    drop(new);
    live.change_port(vfs(8)).unwrap();
    let mut again = VfGuest::under_qemu(&live, 7);
    exchange(&mut one, &mut again, 10);
}

#[test]
fn port_is_added_and_removed_beside_a_running_port() {
    let live = LiveHost::keeping("[[port]]\n");
    let (mut one, mut other) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    let added = apply(&live, "[[port]]\n[[port]]\nvfs = 1\n").unwrap();
    assert_eq!(
        added,
        [("pf1".to_owned(), ConfigChangeKind::Added), ("pf1vf0".to_owned(), ConfigChangeKind::Added)]
    );
    exchange(&mut one, &mut other, 10);
    let removed = apply(&live, "[[port]]\n").unwrap();
    assert_eq!(
        removed,
        [("pf1".to_owned(), ConfigChangeKind::Removed), ("pf1vf0".to_owned(), ConfigChangeKind::Removed)]
    );
    exchange(&mut one, &mut other, 10);
    assert!(live.is_whole(), "the host counts the removed port as failed");
}

#[test]
fn refused_file_leaves_nothing_of_the_ports_that_it_adds() {
    let live = LiveHost::keeping("[[port]]\n");
    let missing = "[[port]]\n[[port]]\nvfs = 1\n[[port]]\nuplink = { replay = \"/missing.pcap\" }\n";
    let refused = apply(&live, missing).unwrap_err();
    assert!(refused.contains("pf2"), "{refused}");
    assert!(live.keeps("pf0.journal") && !live.keeps("pf1.journal"));
    apply(&live, "[[port]]\n[[port]]\nvfs = 1\n").unwrap();
    assert!(live.keeps("pf1.journal"));
}

/// Tests keys that have an effect only at the start of a process.
#[test]
fn apply_refuses_changes_of_keys_of_the_hosts_start() {
    let live = LiveHost::keeping("[[port]]\n");
    for (key, line) in [
        ("client_memory", "client_memory = \"1G\""),
        ("confine.user", "confine = { user = \"0\" }"),
        ("confine.seccomp", "confine = { seccomp = \"log\" }"),
        ("confine.landlock", "confine = { landlock = false }"),
    ] {
        let refused = apply(&live, &format!("{line}\n[[port]]\n")).unwrap_err();
        assert!(refused.contains(key) && refused.contains("restart the host"), "{refused}");
    }
}

/// Tests two applies of a script: the port's end takes longer than the time between them.
#[test]
fn port_added_again_at_once_has_its_sockets_and_no_client() {
    let (both, one) = ("[[port]]\n[[port]]\nvfs = 1\n", "[[port]]\n");
    let live = LiveHost::keeping(both);
    let socket = live.socket_of("pf1vf0");
    for wait in ["mapped", "sleep"] {
        let mut former = RawVfioUserConnection::greet(&socket);
        apply(&live, one).unwrap();
        apply(&live, &format!("{both}wait = \"{wait}\"\n")).unwrap();
        former.wait_for_end();
        assert!(live.show_port("pf1").vfs[0].function.peer.is_none(), "the new port has a former client");
        assert!(live.keeps("pf1.journal") && live.keeps("pf1.listen.pf1vf0"), "a crash loses new clients");
        drop(RawVfioUserConnection::greet(&socket));
    }
}

/// A port that comes back has other guests.
#[test]
fn port_without_a_place_in_the_successors_file_ends() {
    let (both, one) = ("[[port]]\nvfs = 2\n[[port]]\nvfs = 1\n", "[[port]]\nvfs = 2\n");
    let mut live = LiveHost::with(both);
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    let mut lost = RawVfioUserConnection::greet(&live.socket_of("pf1vf0"));
    let quarantine = VfSettings { quarantine: Some(true), ..VfSettings::default() };
    let change = SettingsCommand::volatile(quarantine);
    ask(&live.control_socket(), ControlRequest::VfSet { vf: "pf1vf0".into(), change }).unwrap();
    let clients =
        |live: &LiveHost| live.show_port("pf1").vfs.iter().filter(|vf| vf.function.peer.is_some()).count();
    live.refuse_hand_over(one);
    assert_eq!(clients(&live), 1, "the host that continues keeps its clients");
    live.hand_over(one);
    lost.wait_for_end();
    assert!(!live.socket_of("pf1vf0").exists(), "the port that is gone leaves its socket file");
    exchange(&mut a, &mut b, 10);
    live.hand_over(both);
    assert_eq!(clients(&live), 0);
    let quarantine = &live.show_port("pf1").vfs[0].conduct.quarantine;
    assert_eq!(*quarantine, None, "the change of the former port is in force");
    drop(RawVfioUserConnection::greet(&live.socket_of("pf1vf0")));
    exchange(&mut a, &mut b, 10);
}

/// Tests the check of MAC addresses across ports: a port checks its own guests' addresses, and the management
/// those of other ports' guests.
#[test]
fn mac_address_of_a_guest_on_another_port_is_refused() {
    let live = LiveHost::with("[[port]]\nvfs = 1\n[[port]]\nvfs = 1\n");
    let mut guest = VfGuest::under_qemu(&live, 0);
    let chosen = MacAddress([2, 7, 7, 7, 7, 7]);
    guest.vf.set_mac(&mut guest.machine, chosen).unwrap();
    let set = VfSettings { mac: Some(chosen.to_string()), ..VfSettings::default() };
    let request = ControlRequest::VfSet { vf: "pf1vf0".into(), change: SettingsCommand::volatile(set) };
    let refused = ask(&live.control_socket(), request).expect_err("the host refuses the change").to_string();
    assert!(refused.contains("pf1vf0.mac") && refused.contains("used by pf0vf0"), "{refused}");
}
