//! Tests of settings of a port on a live host that change while guests run: mirror rules, storm control, thresholds for
//! offences.

use crate::support::eventually;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::qemu::QemuClient;
use daemon::settings::{ConductThresholds, MirrorRule, PortSettings, StormControlSettings};
use i82576::MacAddress;
use std::collections::BTreeMap;

fn mirror(rule: Option<MirrorRule>) -> PortSettings {
    PortSettings { mirror: BTreeMap::from([("2".to_owned(), rule)]), ..PortSettings::default() }
}

/// Sends a frame from `a` to `b`, and then one to the watcher. Returns the number of frames that the watcher received
/// before its own, which arrives last.
fn count_copies(
    a: &mut VfGuest<QemuClient>,
    b: &mut VfGuest<QemuClient>,
    watcher: &mut VfGuest<QemuClient>,
) -> usize {
    assert!(a.send(b.vf.mac(), &[1; 60]));
    assert_eq!(b.receive(), [[1; 60]]);
    assert!(a.send(watcher.vf.mac(), &[2; 60]));
    let mut frames = watcher.receive();
    while frames.last().is_none_or(|last| *last != [2; 60]) {
        frames.extend(watcher.receive());
    }
    frames.len() - 1
}

#[test]
fn mirror_rule_copies_frames_until_it_is_removed() {
    let live = LiveHost::start();
    let [mut a, mut b, mut watcher] = [0, 1, 2].map(|vf| VfGuest::under_qemu(&live, vf));
    assert_eq!(count_copies(&mut a, &mut b, &mut watcher), 0);
    let rule = MirrorRule { to: 2, vfs: vec![1], uplink: None, vlans: None };
    let port = live.change_port(mirror(Some(rule.clone()))).unwrap();
    assert_eq!(port.settings.unwrap().mirror, BTreeMap::from([("2".to_owned(), Some(rule))]));
    assert_eq!(count_copies(&mut a, &mut b, &mut watcher), 1);
    assert_eq!(count_copies(&mut b, &mut a, &mut watcher), 0, "frames for VF 0 are copied");
    live.change_port(mirror(None)).unwrap();
    assert_eq!(count_copies(&mut a, &mut b, &mut watcher), 0);
}

#[test]
fn port_settings_and_vf_policies_survive_a_port_reset() {
    let live = LiveHost::with(
        "[[port]]\nstorm.broadcast = 1000\nlimits.mailbox.warn = 7\n\
         [[port.mirror]]\nto = 2\nvfs = [1]\n\
         [[port.vf]]\nindex = 3\nvlan = 100\nqos = 5\nmax_tx_rate = 50\nmac = \"02:00:00:00:00:03\"",
    );
    let mut guests = [0, 1, 2].map(|vf| VfGuest::under_qemu(&live, vf));
    let mut before = live.port();
    let after = live.reset_port().unwrap();
    assert_eq!(after.settings, before.settings);
    before.vfs[3].mailbox.notices += 1;
    assert_eq!(after.vfs[3], before.vfs[3], "more has changed than the count of notices");
    guests.iter_mut().for_each(VfGuest::wait_for_link);
    let [a, b, watcher] = &mut guests;
    assert_eq!(count_copies(a, b, watcher), 1, "the card has lost the rule");
}

#[test]
fn mirror_target_with_a_full_ring_blocks_no_other_guest() {
    let live = LiveHost::with("[[port]]\n[[port.mirror]]\nto = 2\nvfs = [0, 1]\nuplink = \"both\"");
    let [mut a, mut b] = [0, 1].map(|vf| VfGuest::under_qemu(&live, vf));
    let _watcher = VfGuest::under_qemu(&live, 2);
    exchange(&mut a, &mut b, 300);
    assert!(live.show(2).drops.rx_no_descriptors > 0, "its ring is not full");
}

#[test]
fn unsupported_port_settings_are_refused_as_a_whole() {
    let live = LiveHost::start();
    let before = live.port();
    let storm = Some(StormControlSettings {
        broadcast: Some(5),
        interval: Some(0),
        ..StormControlSettings::default()
    });
    let rule = MirrorRule { to: 0, vfs: Vec::new(), uplink: None, vlans: None };
    let too_few = Some(StormControlSettings {
        multicast: Some(1),
        interval: Some(1),
        ..StormControlSettings::default()
    });
    for (change, part) in [
        (PortSettings { storm, ..PortSettings::default() }, "storm.interval"),
        (PortSettings { storm: too_few, ..PortSettings::default() }, "below the 512 Kb/s"),
        (mirror(Some(MirrorRule { vfs: vec![0], ..rule.clone() })), "watcher's own"),
        (mirror(Some(rule)), "names no traffic to copy"),
    ] {
        let error = live.change_port(change).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(live.port().settings, before.settings);
}

#[test]
fn storm_frames_are_dropped_and_counted_for_each_guest() {
    let live = LiveHost::with("[[port]]\nstorm = { broadcast = 100, interval = 1000 }");
    let [mut a, mut b] = [0, 1].map(|vf| VfGuest::under_qemu(&live, vf));
    eventually("frames of the storm are dropped", || {
        a.send_many(MacAddress::BROADCAST, 50);
        b.take();
        live.show(1).drops.rx_storm > 0
    });
    // The PF driver counts the storm at a later visit.
    eventually("the storm is counted", || live.port().storms > 0);
    // The storm leaves the other guest its part of each window.
    (0..2).for_each(|_| a.send_many(MacAddress::BROADCAST, 50));
    exchange_after_storm(&mut b, &mut a);
    let free = StormControlSettings { broadcast: Some(0), ..StormControlSettings::default() };
    live.change_port(PortSettings { storm: Some(free), ..PortSettings::default() }).unwrap();
    b.take();
    let lost = live.show(1).drops.rx_storm;
    exchange_after_storm(&mut a, &mut b);
    assert_eq!(live.show(1).drops.rx_storm, lost);
}

/// Sends a broadcast after a storm, and waits until the other guest has received it.
fn exchange_after_storm(a: &mut VfGuest<QemuClient>, b: &mut VfGuest<QemuClient>) {
    assert!(a.send(MacAddress::BROADCAST, &[9; 60]));
    while !b.receive().contains(&vec![9; 60]) {}
}

#[test]
fn changed_quarantine_threshold_applies_to_a_running_guest() {
    let live = LiveHost::start();
    let mut a = VfGuest::under_qemu(&live, 0);
    let limits = |quarantine| {
        let limit = ConductThresholds { quarantine: Some(quarantine), ..ConductThresholds::default() };
        PortSettings { limits: BTreeMap::from([("storm".to_owned(), limit)]), ..PortSettings::default() }
    };
    let port = live.change_port(limits(1)).unwrap();
    let storm = port.settings.unwrap().limits["storm"];
    assert_eq!((storm.warn, storm.quarantine), (Some(10_000), Some(1)), "an unset threshold has changed");
    eventually("the VF is quarantined", || {
        a.send_many(MacAddress::BROADCAST, 20);
        live.show(0).conduct.quarantine.is_some()
    });
}
