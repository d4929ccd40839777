//! Tests the administrator's policy for the whole port, on the real card: copies of frames to a mirror VF, and storm
//! control.

use crate::support::{DrivenCardFixture, between, frame, index};
use backplane::vf_mac;
use driver::vf::TxOffload;
use i82576::MacAddress;
use pcie::VfSet;
use policy::{PolicyError, PortPolicy, StormControl, VfMirrorRule};

/// MAC address of a station beyond the uplink.
const OUTSIDE: MacAddress = MacAddress([2, 9, 9, 9, 9, 9]);
/// Index of the VF that receives the mirrored frames.
const WATCHER: u8 = 3;
const TAG_7: TxOffload = TxOffload { ip_checksum: false, l4_checksum: false, tso: None, vlan: Some(7) };

fn mirror() -> VfMirrorRule {
    VfMirrorRule { to: index(WATCHER).into(), vfs: VfSet::NONE, ingress: false, egress: false, vlans: None }
}

fn set(bench: &mut DrivenCardFixture, policy: PortPolicy) -> Result<(), PolicyError> {
    bench.card.with_pf_driver(|pf, hal| pf.set_port_policy(hal, policy)).unwrap()
}

/// Creates a card with four VFs, and sets `mirror` as the port's mirror rule number `rule`.
fn watched(rule: usize, mirror: VfMirrorRule) -> DrivenCardFixture {
    let mut bench = DrivenCardFixture::new(4);
    let mut policy = PortPolicy::default();
    policy.mirrors[rule] = Some(mirror);
    set(&mut bench, policy).unwrap();
    bench
}

/// Sends a frame in each direction between VFs 0 and 1, and between VF 0 and outside. Returns, for each of the four
/// frames, the number of copies that the mirror VF receives.
fn copies(bench: &mut DrivenCardFixture) -> [usize; 4] {
    let seen = |bench: &mut DrivenCardFixture, sends: &mut dyn FnMut(&mut DrivenCardFixture)| {
        sends(bench);
        bench.receive_all(WATCHER).len()
    };
    [
        seen(bench, &mut |bench| bench.send(0, &between(0, 1, 100, 1))),
        seen(bench, &mut |bench| bench.send(1, &between(1, 0, 100, 2))),
        seen(bench, &mut |bench| {
            bench.card.world().send(&frame(vf_mac(0), OUTSIDE, 100, 3));
            bench.card.settle();
        }),
        seen(bench, &mut |bench| bench.send(0, &frame(OUTSIDE, vf_mac(0), 100, 4))),
    ]
}

#[test]
fn each_mirror_rule_type_works_in_every_rule_register() {
    for rule in 0..4 {
        let kinds = [
            (VfMirrorRule { vfs: VfSet::new(0b01), ..mirror() }, [0, 1, 1, 0]),
            (VfMirrorRule { vfs: VfSet::new(0b11), ..mirror() }, [1, 1, 1, 0]),
            (VfMirrorRule { ingress: true, ..mirror() }, [0, 0, 1, 0]),
            (VfMirrorRule { egress: true, ..mirror() }, [0, 0, 0, 1]),
            (VfMirrorRule { vfs: VfSet::new(0b11), ingress: true, egress: true, ..mirror() }, [1, 1, 1, 1]),
        ];
        for (mirror, expected) in kinds {
            assert_eq!(copies(&mut watched(rule, mirror)), expected, "rule {rule}, {mirror:?}");
        }
    }
}

#[test]
fn a_removed_mirror_rule_copies_no_frames() {
    let mut bench = watched(2, VfMirrorRule { ingress: true, ..mirror() });
    set(&mut bench, PortPolicy::default()).unwrap();
    assert_eq!(copies(&mut bench), [0; 4]);
}

#[test]
fn a_mirror_rule_that_names_no_traffic_is_refused() {
    let mut policy = PortPolicy::default();
    policy.mirrors[3] = Some(mirror());
    assert_eq!(set(&mut DrivenCardFixture::new(4), policy), Err(PolicyError::EmptyMirror(3)));
}

#[test]
fn vlan_mirror_rule_follows_vfs_that_join_and_leave() {
    let vlans = Some([7].into_iter().collect());
    let mut bench = watched(0, VfMirrorRule { vlans, ..mirror() });
    let seen = |bench: &mut DrivenCardFixture| {
        bench.send_with(0, &between(0, 1, 100, 1), &TAG_7);
        (bench.receive_all(1).len(), bench.receive_all(WATCHER).len())
    };
    // Another VLAN gets the first free filter, and is not mirrored.
    for vlan in [9, 7] {
        bench.on(0, |vf, hal| vf.set_vlan(hal, vlan, true)).unwrap();
        bench.on(1, |vf, hal| vf.set_vlan(hal, vlan, true)).unwrap();
    }
    assert_eq!(seen(&mut bench), (1, 1));
    bench.send_with(0, &between(0, 1, 100, 1), &TxOffload { vlan: Some(9), ..TAG_7 });
    assert_eq!((bench.receive_all(1).len(), bench.receive_all(WATCHER).len()), (1, 0));
    // The filter of VLAN 7 is reused for another VLAN.
    for vf in [0, 1] {
        bench.on(vf, |driver, hal| driver.set_vlan(hal, 7, false)).unwrap();
        bench.on(vf, |driver, hal| driver.set_vlan(hal, 8, true)).unwrap();
    }
    bench.send_with(0, &between(0, 1, 100, 1), &TxOffload { vlan: Some(8), ..TAG_7 });
    assert_eq!((bench.receive_all(1).len(), bench.receive_all(WATCHER).len()), (1, 0));
}

#[test]
fn mirror_rules_and_storm_limits_survive_a_port_reset() {
    let mut bench = watched(1, VfMirrorRule { ingress: true, ..mirror() });
    let policy = *bench.card.pf_driver().unwrap().port_policy();
    set(&mut bench, PortPolicy { storm: storm(1_000, 0), ..policy }).unwrap();
    bench.card.with_pf_driver(|pf, hal| pf.reset(hal)).unwrap().unwrap();
    for vf in 0..4 {
        bench.on(vf, |driver, hal| driver.restart(hal)).unwrap();
    }
    assert_eq!(copies(&mut bench), [0, 0, 1, 0]);
    bench.receive_all(1);
    assert_eq!(broadcasts(&mut bench), 15);
}

const fn storm(broadcast: u32, multicast: u32) -> StormControl {
    StormControl { broadcast, multicast, window_ms: 100 }
}

/// Sends 30 broadcasts of 832 bytes with the check sequence, 13 blocks each, in one window of storm control. Returns
/// the number of broadcasts that VF 1 receives.
fn broadcasts(bench: &mut DrivenCardFixture) -> usize {
    for _ in 0..30 {
        bench.send(0, &frame(MacAddress::BROADCAST, vf_mac(0), 828, 1));
    }
    bench.receive_all(1).len()
}

#[test]
fn broadcasts_beyond_the_storm_limit_reach_no_vf() {
    let mut bench = DrivenCardFixture::new(2);
    set(&mut bench, PortPolicy { storm: storm(1_000, 0), ..PortPolicy::default() }).unwrap();
    // 1,000 Kb/s are 195 blocks in 100 ms: fifteen frames.
    assert_eq!(broadcasts(&mut bench), 15);
    assert_eq!(bench.card.world().take_frames().len(), 30);
    assert_eq!(bench.card.nic().counters()[1].rx_storm, 15);
    bench.send(0, &between(0, 1, 100, 1));
    assert_eq!(bench.receive_all(1).len(), 1, "unicast frames are no storm");
    for _ in 0..2 {
        bench.advance_us(100_000);
    }
    assert_eq!(broadcasts(&mut bench), 15, "a new window permits fifteen frames again");
    bench.card.settle();
    assert_eq!(bench.card.pf_driver().unwrap().storms(), 2);
    set(&mut bench, PortPolicy::default()).unwrap();
    assert_eq!(broadcasts(&mut bench), 30, "without the limit all frames pass");
}

#[test]
fn multicasts_have_their_own_storm_threshold() {
    let mut bench = DrivenCardFixture::new(2);
    bench.on(1, |vf, hal| vf.set_all_multicast(hal, true)).unwrap();
    let group = MacAddress([1, 0, 0x5e, 0, 0, 1]);
    set(&mut bench, PortPolicy { storm: storm(0, 1_000), ..PortPolicy::default() }).unwrap();
    for _ in 0..30 {
        bench.send(0, &frame(group, vf_mac(0), 828, 1));
    }
    assert_eq!(bench.receive_all(1).len(), 15);
    assert_eq!(broadcasts(&mut bench), 30);
}
