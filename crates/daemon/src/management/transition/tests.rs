//! Tests of a change of the configuration during which a port's thread panics, or which is refused.

use super::super::{HostManager, RunningPorts};
use super::PreparedConfigChange;
use crate::config::HostConfig;
use crate::control::problem::ProblemKind;
use crate::control::protocol::ControlRequest;
use crate::control::status::PortStatus;
use crate::port::PortThreadCommand;
use crate::settings::LinkLocalPolicy;
use crate::{ReadyHost, RunningHost};
use avf::virtchnl::{EncodedMessageList, EtherAddress, EtherAddressType, VirtchnlRequest};
use driver::avf::vf::AvfDriver;
use host::poll::ThreadWaker;
use i82576::MacAddress;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use vfio_client::VfioUserHal;

fn config(text: &str, folder: &Path) -> HostConfig {
    HostConfig::check(HostConfig::parse(text).unwrap(), folder).unwrap()
}

fn status(ports: &RunningPorts) -> Option<PortStatus> {
    ports.ask("pf0", PortThreadCommand::Status).ok()
}

/// Waits until the port's status fulfils `done`. Port and reviver are other threads.
#[track_caller]
fn wait_until(ports: &RunningPorts, done: impl Fn(&PortStatus) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !status(ports).is_some_and(|status| done(&status)) {
        assert!(Instant::now() < deadline, "the port does not have the settings");
    }
}

/// Changes a port from the settings `before` to `after`, and has the port panic in between: after it has applied the change, and
/// before the host has stored the change for a port that is opened again. Waits until the port's status fulfils `done`.
#[track_caller]
fn panic_during_a_change(before: &str, after: &str, done: impl Fn(&PortStatus) -> bool) {
    let folder = tempfile::tempdir().unwrap();
    let (before, next) = (config(before, folder.path()), config(after, folder.path()));
    let socket = before.ports[0].vfs[0].socket.clone();
    let host = RunningHost::start(before.clone()).unwrap();
    let inode = || std::fs::metadata(&socket).unwrap().ino();
    let (ports, file) = (host.ports(), inode());
    let orders = (mpsc::channel().0, ThreadWaker::new().unwrap());
    let mut manager = HostManager::new(before, ports.clone(), orders);
    let changed = manager.changed(&next, None);
    let mut prepared: PreparedConfigChange = manager.prepare(&next).unwrap();
    manager.put_to_work(&next, &changed, &mut prepared).unwrap();
    wait_until(ports, &done);
    ports.tell("pf0", PortThreadCommand::Panic).unwrap();
    // The port that was opened again answers.
    wait_until(ports, |_| true);
    manager.conclude(next);
    wait_until(ports, &done);
    // Nor does a later death bring the former settings back.
    ports.tell("pf0", PortThreadCommand::Panic).unwrap();
    wait_until(ports, |_| true);
    wait_until(ports, &done);
    // VMMs that connect meanwhile wait at the same socket.
    assert_eq!(inode(), file);
    assert!(host.is_whole());
    host.stop();
}

#[test]
fn port_that_dies_during_a_change_keeps_the_new_policies() {
    panic_during_a_change("[[port]]", "[[port]]\nvf = [{ index = 0, vlan = 8 }]", |port| {
        port.vfs[0].settings.vlan == Some(8)
    });
}

#[test]
fn port_that_dies_in_a_change_keeps_the_new_link_local_policy() {
    panic_during_a_change("[[port]]", "[[port]]\nlink_local = \"forward\"", |port| {
        port.settings.as_ref().unwrap().link_local == Some(LinkLocalPolicy::Forward)
    });
}

#[test]
fn port_that_dies_during_a_change_keeps_its_new_number_of_vfs() {
    panic_during_a_change("[[port]]\nvfs = 2", "[[port]]\nvfs = 4", |port| port.vfs.len() == 4);
    panic_during_a_change("[[port]]\nvfs = 4", "[[port]]\nvfs = 2", |port| port.vfs.len() == 2);
}

/// Tests a port that panics after the host has opened the socket of its new VF. It is opened again by the former configuration,
/// which does not have this VF.
#[test]
fn socket_of_a_vf_added_after_a_panic_is_kept_for_a_successor() {
    let folder = tempfile::tempdir().unwrap();
    let [before, next] = ["[[port]]\nvfs = 2", "[[port]]\nvfs = 3"].map(|text| config(text, folder.path()));
    let host = RunningHost::start(before.clone()).unwrap();
    let ports = host.ports();
    let orders = (mpsc::channel().0, ThreadWaker::new().unwrap());
    let mut manager = HostManager::new(before, ports.clone(), orders);
    let changed = manager.changed(&next, None);
    let mut prepared: PreparedConfigChange = manager.prepare(&next).unwrap();
    ports.tell("pf0", PortThreadCommand::Panic).unwrap();
    // The port that was opened again answers.
    wait_until(ports, |_| true);
    manager.put_to_work(&next, &changed, &mut prepared).unwrap();
    manager.conclude(next.clone());
    wait_until(ports, |port| port.vfs.len() == 3);
    assert!(host.pause(Duration::from_secs(60)));
    if let Err(error) = ReadyHost::open(next, host.vault()) {
        panic!("the successor refuses: {error}");
    }
    host.resume();
    host.stop();
}

#[test]
fn refused_change_leaves_no_socket_of_its_new_vfs() {
    let folder = tempfile::tempdir().unwrap();
    let missing = "[[port]]\nvfs = 3\n[[port]]\nuplink = { replay = \"/missing.pcap\" }";
    let [before, next, invalid] =
        ["[[port]]\nvfs = 2", "[[port]]\nvfs = 3", missing].map(|text| config(text, folder.path()));
    let host = RunningHost::start(before.clone()).unwrap();
    let orders = (mpsc::channel().0, ThreadWaker::new().unwrap());
    let mut manager = HostManager::new(before, host.ports().clone(), orders);
    let socket = next.ports[0].vfs[2].socket.clone();
    let is_kept = || host.vault().copy("pf0.listen.pf0vf2").is_some();
    let prepared = manager.prepare(&next).unwrap();
    assert!(is_kept() && socket.exists());
    manager.discard(prepared, &next);
    assert!(!is_kept() && !socket.exists());
    assert!(manager.transition_to(invalid, None).is_err());
    assert!(!is_kept() && !socket.exists());
    host.stop();
}

/// A thread of the refused port's uplink may still hold its tap or its listening socket, and a second attempt would find them busy.
#[test]
fn refusal_waits_for_the_uplink_threads_of_its_new_ports() {
    let folder = tempfile::tempdir().unwrap();
    let [before, next] = ["[[port]]", "[[port]]\n[[port]]"].map(|text| config(text, folder.path()));
    let host = RunningHost::start(before.clone()).unwrap();
    let orders = || (mpsc::channel().0, ThreadWaker::new().unwrap());
    let mut impatient = host.ports().clone();
    impatient.patience = Duration::ZERO;
    let impatient = HostManager::new(before.clone(), impatient, orders());
    let manager = HostManager::new(before, host.ports().clone(), orders());
    let prepared = |manager: &HostManager| {
        let prepared = manager.prepare(&next).unwrap();
        let (_, (_, _, handle)) = &prepared.ports[0];
        let device = handle.uplink_threads().devices.enter();
        (prepared, device)
    };
    let (refused, device) = prepared(&manager);
    let threads = refused.ports[0].1.2.uplink_threads().clone();
    let closing = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        drop(device);
    });
    manager.discard(refused, &next);
    assert!(threads.devices.have_ended(), "the answer precedes the end of the uplink's thread");
    closing.join().unwrap();
    // The wait has a bound.
    let (refused, device) = prepared(&impatient);
    impatient.discard(refused, &next);
    drop(device);
    host.stop();
}

/// Configuration of the host in the next test, and one that changes both ports. A guest may have taken the address before the
/// second port makes its part of the change.
const BEFORE: &str = "[[port]]\nvfs = 2\n[[port]]\nfamily = \"avf\"\nvfs = 2\n";
const NEXT: &str = "[[port]]\nvfs = 3\nvf = [{ index = 0, vlan = 8 }]\n\
    [[port]]\nfamily = \"avf\"\nvfs = 2\nvf = [{ index = 1, mac = \"02:00:00:00:00:77\" }]\n";
const TAKEN: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x77]);

#[test]
fn change_refused_after_its_check_leaves_ports_and_clients() {
    let folder = tempfile::tempdir().unwrap();
    let [before, next] = [BEFORE, NEXT].map(|text| {
        let mut file = HostConfig::parse(text).unwrap();
        file.state_dir = Some(folder.path().join("state"));
        HostConfig::check(file, folder.path()).unwrap()
    });
    let host = RunningHost::start(before.clone()).unwrap();
    let ports = host.ports();
    let orders = (mpsc::channel().0, ThreadWaker::new().unwrap());
    let mut manager = HostManager::new(before.clone(), ports.clone(), orders);
    let mut clients =
        [0, 1].map(|port| VfioUserHal::attach(&before.ports[port].vfs[0].socket, 8 << 20).unwrap());
    let mut driver = AvfDriver::probe(&mut clients[1], MacAddress([2, 0, 0, 0, 0, 1])).unwrap();
    driver.start(&mut clients[1]).unwrap();
    let both = || ["pf0", "pf1"].map(|name| ports.ask(name, PortThreadCommand::Status).unwrap());
    let policies = || both().map(|port| port.vfs.into_iter().map(|vf| vf.settings).collect::<Vec<_>>());
    let former = policies();
    let changed = manager.check_change(&next, None).unwrap();
    assert_eq!(changed.len(), 2, "both ports change");
    let taken = [EtherAddress { mac: TAKEN.0, usage: EtherAddressType::Extra }];
    let taken = EncodedMessageList::new(&taken);
    driver.ask(&mut clients[1], VirtchnlRequest::Addresses(true, 1, taken.list())).unwrap();
    let failure = manager.make_change(next.clone(), &changed).unwrap_err();
    let (refusal, address) = (failure.message, TAKEN.to_string());
    assert!(refusal.contains("pf1vf1.mac") && refusal.contains(&address), "{refusal}");
    // Both ports have their former VFs and policies, also for the next start, and their clients.
    assert!(policies() == former);
    assert!(before.clone().restore().unwrap().ports == before.ports);
    assert!(!next.ports[0].vfs[2].socket.exists() && host.vault().copy("pf0.listen.pf0vf2").is_none());
    for (port, client) in both().iter().zip(&mut clients) {
        client.read_by_message(8);
        assert!(port.vfs[0].peer.is_some() && client.broken().is_none(), "{}", port.name);
    }
    // The same change succeeds once the address is free.
    driver.ask(&mut clients[1], VirtchnlRequest::Addresses(false, 1, taken.list())).unwrap();
    manager.transition_to(next, None).unwrap();
    let [first, second] = both();
    assert_eq!((first.vfs.len(), first.vfs[0].settings.vlan), (3, Some(8)));
    assert_eq!(second.vfs[1].settings.mac, Some(address));
    assert!(first.vfs[0].peer.is_some() && second.vfs[0].peer.is_some());
    host.stop();
}

/// The new process may have a port of the same name, by a file that has changed meanwhile.
#[test]
fn upgrade_begins_after_removed_ports_have_ended() {
    let folder = tempfile::tempdir().unwrap();
    let [before, next] = ["[[port]]\n[[port]]", "[[port]]"].map(|text| config(text, folder.path()));
    let host = RunningHost::start(before.clone()).unwrap();
    // A port that does not carry out its end yet.
    let (stalled, until) = mpsc::channel();
    host.ports().tell("pf1", PortThreadCommand::Stall(until)).unwrap();
    let orders = || (mpsc::channel().0, ThreadWaker::new().unwrap());
    let mut manager = HostManager::new(before, host.ports().clone(), orders());
    manager.transition_to(next.clone(), None).unwrap();
    let mut impatient = host.ports().clone();
    impatient.patience = Duration::ZERO;
    let early = HostManager::new(next, impatient, orders()).handle(ControlRequest::Upgrade).unwrap_err();
    assert_eq!(early.kind, ProblemKind::Busy, "a later attempt succeeds: {}", early.message);
    drop(stalled);
    assert!(manager.handle(ControlRequest::Upgrade).is_err(), "no main thread receives the request");
    assert!(host.vault().copy("pf1.journal").is_none(), "the upgrade did not wait");
    host.stop();
}

#[test]
fn late_port_keeps_no_uplink_of_a_refused_change() {
    let folder = tempfile::tempdir().unwrap();
    let wired = "[[port]]\nuplink = { wire = \"w\" }\n".repeat(2);
    let [before, next] = ["[[port]]\n[[port]]", &wired].map(|text| config(text, folder.path()));
    let host = RunningHost::start(before.clone()).unwrap();
    let mut impatient = host.ports().clone();
    impatient.patience = Duration::ZERO;
    let orders = (mpsc::channel().0, ThreadWaker::new().unwrap());
    let mut manager = HostManager::new(before, impatient, orders);
    let (stalled, until) = mpsc::channel();
    host.ports().tell("pf0", PortThreadCommand::Stall(until)).unwrap();
    let refused = manager.transition_to(next, None).unwrap_err();
    assert!(refused.message.contains("does not answer"), "{}", refused.message);
    drop(stalled);
    // The port answers after it has carried out the earlier commands.
    assert_eq!(status(host.ports()).unwrap().uplink, "none");
    host.stop();
}
