//! Tests of a tap uplink that disappears and returns: the links of the port and its VFs follow, and frames move again
//! without a command. `uplink` tests the frames.

use crate::support::alone::{alone, assert_asleep};
use crate::support::eventually;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::qemu::{self, QemuClient};
use crate::support::tap::{
    TAP, ip, make_tap, on_a_tap, reaches_the_host, received_by_the_host, tap, wait_port,
};
use daemon::control::client::ask;
use daemon::control::protocol::{ControlAnswer, ControlRequest};
use daemon::control::status::{LinkState, PortStatus};
use daemon::control::uplink::UplinkState;
use daemon::settings::VfSettings;
use driver::Hal;
use driver::vf::{TxOffload, VfLinkStatus};
use host::tap::Tap;
use host::test_support::OtherNetworkNamespace;
use i82576::bits::status;
use i82576::{MacAddress, register as r};
use std::time::{Duration, Instant};

/// Handles pending mailbox interrupts, and returns true if the guest sees its link up.
fn sees_link(guest: &mut VfGuest<QemuClient>) -> bool {
    while guest.machine.wait_for(driver::vf::MAILBOX_VECTOR, Duration::ZERO) {
        guest.vf.handle_interrupt(&mut guest.machine, driver::vf::MAILBOX_VECTOR);
    }
    matches!(guest.vf.watchdog(&mut guest.machine), VfLinkStatus::Up(_))
}

#[test]
fn link_is_down_while_the_tap_is_deleted() {
    let name = "uplink_life::link_is_down_while_the_tap_is_deleted";
    let body = |live: LiveHost| {
        let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
        assert!(live.port().link && sees_link(&mut a));
        reaches_the_host(&mut a, "softiov0");
        for round in 1..=3 {
            ip("link del softiov0");
            wait_port(&live, "the tap is gone", |port| !port.link && port.uplink == "tap:softiov0 (gone)");
            eventually("both guests see no link", || !sees_link(&mut a) && !sees_link(&mut b));
            let gone = tap(&live);
            assert_eq!((gone.state, gone.carrier, gone.mtu), (UplinkState::Gone, None, None));
            make_tap();
            // The host attaches to the new tap and sets it up.
            wait_port(&live, "the tap is back", |port| port.link && port.uplink == "tap:softiov0");
            assert_eq!(tap(&live).reattached, round);
            eventually("both guests see a link", || sees_link(&mut a) && sees_link(&mut b));
            reaches_the_host(&mut a, "softiov0");
        }
        assert!(live.is_whole());
    };
    on_a_tap(name, TAP, body);
}

#[test]
fn deleted_tap_is_not_created_again_by_the_host() {
    let name = "uplink_life::deleted_tap_is_not_created_again_by_the_host";
    alone(name, || {
        on_a_tap(name, TAP, |live| {
            let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
            a.take();
            b.take();
            ip("link del softiov0");
            assert_asleep("while the tap is gone");
            assert_eq!(live.port().uplink, "tap:softiov0 (gone)");
            assert!(tap(&live).seconds >= 1, "the time does not count");
            // The card's switch works without an uplink.
            a.take();
            b.take();
            exchange(&mut a, &mut b, 3);
        });
    });
}

#[test]
fn tap_that_appears_briefly_is_not_created_by_the_host() {
    let name = "uplink_life::tap_that_appears_briefly_is_not_created_by_the_host";
    on_a_tap(name, TAP, |live| {
        ip("link del softiov0");
        for _ in 0..50 {
            ip("tuntap add softiov0 mode tap");
            ip("link del softiov0");
        }
        wait_port(&live, "the tap is gone", |port| port.uplink == "tap:softiov0 (gone)");
        std::thread::sleep(Duration::from_millis(300));
        let interfaces = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        assert!(!interfaces.contains("softiov0:"), "{:?}\n{interfaces}", live.port().uplink_status);
        make_tap();
        wait_port(&live, "the tap is back", |port| port.link);
    });
}

#[test]
fn tap_that_is_down_or_without_carrier_has_no_link() {
    on_a_tap("uplink_life::tap_that_is_down_or_without_carrier_has_no_link", TAP, |live| {
        let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
        live.set(1, LinkState::Enable);
        for (off, on, state, carrier) in [
            ("link set softiov0 down", "link set softiov0 up", UplinkState::Down, true),
            ("link set softiov0 carrier off", "link set softiov0 carrier on", UplinkState::Up, false),
        ] {
            ip(off);
            wait_port(&live, off, |port| !port.link);
            let status = tap(&live);
            assert_eq!(
                (status.state, status.carrier, status.mtu),
                (state, Some(carrier), Some(1500)),
                "{off}"
            );
            eventually("the guest sees no link", || !sees_link(&mut a));
            assert!(sees_link(&mut b) && live.show(1).link, "a VF that is always up has no link");
            ip(on);
            wait_port(&live, on, |port| port.link);
            eventually("the guest sees a link", || sees_link(&mut a));
            reaches_the_host(&mut a, "softiov0");
        }
        assert_eq!(tap(&live).reattached, 0);
    });
}

#[test]
fn link_can_be_configured_to_stay_up_without_an_uplink() {
    let config = format!("{TAP}link = \"up\"\n");
    on_a_tap("uplink_life::link_can_be_configured_to_stay_up_without_an_uplink", &config, |live| {
        let mut guest = VfGuest::under_qemu(&live, 0);
        ip("link set softiov0 down");
        wait_port(&live, "the tap is down", |port| port.uplink == "tap:softiov0 (down)");
        assert!(live.port().link && sees_link(&mut guest));
        guest.send(MacAddress::BROADCAST, &[1; 60]);
        eventually("the frame is counted", || tap(&live).drops.no_link == 1);
        ip("link del softiov0");
        wait_port(&live, "the tap is gone", |port| port.uplink == "tap:softiov0 (gone)");
        assert!(live.port().link && sees_link(&mut guest));
        guest.send(MacAddress::BROADCAST, &[1; 60]);
        eventually("the frame is counted", || tap(&live).drops.no_link == 2);
        make_tap();
        wait_port(&live, "the tap is back", |port| port.uplink == "tap:softiov0");
        reaches_the_host(&mut guest, "softiov0");
    });
}

#[test]
fn port_uses_a_renamed_tap_until_that_tap_is_deleted() {
    on_a_tap("uplink_life::port_uses_a_renamed_tap_until_that_tap_is_deleted", TAP, |live| {
        let mut guest = VfGuest::under_qemu(&live, 0);
        ip("link set softiov0 down");
        ip("link set softiov0 name other0");
        ip("link set other0 up");
        wait_port(&live, "the tap is renamed", |port| {
            port.link
                && port
                    .uplink_status
                    .as_ref()
                    .is_some_and(|tap| tap.name == "other0" && tap.mtu == Some(1500))
        });
        reaches_the_host(&mut guest, "other0");
        // Another tap with the configured name does not replace the renamed one.
        ip("tuntap add softiov0 mode tap");
        ip("link set other0 mtu 1400");
        wait_port(&live, "the renamed tap is in use", |port| {
            port.uplink_status.as_ref().is_some_and(|tap| tap.mtu == Some(1400))
        });
        assert_eq!(tap(&live).reattached, 0);
        ip("link del other0");
        wait_port(&live, "the new tap is in use", |port| {
            port.link
                && port
                    .uplink_status
                    .as_ref()
                    .is_some_and(|tap| tap.name == "softiov0" && tap.reattached == 1)
        });
    });
}

#[test]
fn tap_moved_to_another_namespace_stays_attached() {
    on_a_tap("uplink_life::tap_moved_to_another_namespace_stays_attached", TAP, |live| {
        let other = OtherNetworkNamespace::new();
        let pid = other.pid();
        ip(&format!("link set softiov0 netns {pid}"));
        wait_port(&live, "moving the tap takes it down", |port| !port.link);
        other.ip("link set softiov0 up");
        wait_port(&live, "the tap is up in the other namespace", |port| {
            port.link && port.uplink == "tap:softiov0"
        });
        let status = tap(&live);
        assert_eq!((status.carrier, status.mtu, status.reattached), (None, None, 0));
        other.ip("link set softiov0 down");
        wait_port(&live, "the tap is down in the other namespace", |port| {
            !port.link && port.uplink == "tap:softiov0 (down)"
        });
        other.ip("link set softiov0 up");
        wait_port(&live, "the tap is up in the other namespace", |port| port.link);
        // The tap returns to the first namespace.
        other.ip(&format!("link set softiov0 netns {}", rustix::thread::gettid()));
        wait_port(&live, "the tap is back in the test's namespace", |port| {
            port.uplink_status.as_ref().is_some_and(|tap| tap.mtu == Some(1500))
        });
        ip("link set softiov0 up");
        wait_port(&live, "the tap is up in the test's namespace", |port| port.link);
        // The end of a namespace deletes its taps.
        ip(&format!("link set softiov0 netns {pid}"));
        drop(other);
        wait_port(&live, "the tap is gone with its namespace", |port| port.uplink == "tap:softiov0 (gone)");
        make_tap();
        wait_port(&live, "the tap is back", |port| port.link);
    });
}

#[test]
fn port_waits_while_its_tap_is_in_use_or_of_another_kind() {
    on_a_tap("uplink_life::port_waits_while_its_tap_is_in_use_or_of_another_kind", TAP, |live| {
        let mut guest = VfGuest::under_qemu(&live, 0);
        ip("link del softiov0");
        wait_port(&live, "the tap is gone", |port| !port.link);
        ip("link add softiov0 type bridge");
        ip("link set softiov0 up");
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(tap(&live).state, UplinkState::Gone);
        ip("link del softiov0");
        // Another process opens the tap first.
        let theirs = Tap::open(&"softiov0".parse().unwrap()).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(tap(&live).state, UplinkState::Gone);
        drop(theirs);
        make_tap();
        wait_port(&live, "the tap is back", |port| port.link);
        reaches_the_host(&mut guest, "softiov0");
        // A tap that its owner closes later causes no notification.
        ip("link del softiov0");
        wait_port(&live, "the tap is gone again", |port| !port.link);
        ip("tuntap add theirs0 mode tap");
        let theirs = Tap::open(&"theirs0".parse().unwrap()).unwrap();
        ip("link set theirs0 name softiov0");
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(tap(&live).state, UplinkState::Gone);
        drop(theirs);
        wait_port(&live, "the tap is back again", |port| port.link);
    });
}

#[test]
fn frames_beyond_the_taps_mtu_are_counted() {
    on_a_tap("uplink_life::frames_beyond_the_taps_mtu_are_counted", TAP, |live| {
        let mut guest = VfGuest::under_qemu(&live, 0);
        let payload = vec![7; 1500];
        assert!(guest.send(MacAddress::BROADCAST, &payload));
        reaches_the_host(&mut guest, "softiov0");
        assert_eq!(tap(&live).drops.too_long, 0);
        ip("link set softiov0 mtu 1400");
        wait_port(&live, "the port knows the new MTU", |port| {
            port.uplink_status.as_ref().is_some_and(|tap| tap.mtu == Some(1400))
        });
        let before = received_by_the_host("softiov0");
        assert!(guest.send(MacAddress::BROADCAST, &payload));
        eventually("the frame is counted", || tap(&live).drops.too_long == 1);
        // Within the MTU there is room for a VLAN tag.
        assert!(guest.send(MacAddress::BROADCAST, &payload[..1404]));
        assert!(guest.send(MacAddress::BROADCAST, &payload[..1405]));
        eventually("one more frame is counted", || tap(&live).drops.too_long == 2);
        eventually("the other frame arrives", || received_by_the_host("softiov0") > before);
    });
}

/// Tests the rule of Linux' bridge: a frame may be 4 bytes longer than MTU and header, and its outermost tag does not
/// count.
#[test]
fn outermost_vlan_tag_does_not_count_against_a_taps_mtu() {
    on_a_tap("uplink_life::outermost_vlan_tag_does_not_count_against_a_taps_mtu", TAP, |live| {
        ip("link set softiov0 mtu 1400");
        wait_port(&live, "the port knows the new MTU", |port| {
            port.uplink_status.as_ref().is_some_and(|tap| tap.mtu == Some(1400))
        });
        live.change(0, VfSettings { spoofchk: Some(false), ..VfSettings::default() });
        let mut guest = VfGuest::under_qemu(&live, 0);
        reaches_the_host(&mut guest, "softiov0");
        let ends = [&MacAddress::BROADCAST.0[..], &guest.vf.mac().0].concat();
        let [customer, service] = [[0x81, 0, 0, 7], [0x88, 0xa8, 0, 5]];
        let mut too_long = 0;
        for tags in [&[][..], &customer, &service, &[service, customer].concat()] {
            let most = 1400 + 14 + 4 + if tags.is_empty() { 0 } else { 4 };
            for (length, more) in [(most - 4, 0), (most, 0), (most + 1, 1), (most + 4, 1)] {
                let mut frame = [&ends[..], tags, &[0x88, 0xb5]].concat();
                frame.resize(length, 7);
                let before = received_by_the_host("softiov0");
                guest.vf.transmit(&mut guest.machine, &frame, &TxOffload::default()).unwrap();
                guest.vf.flush(&mut guest.machine);
                too_long += more;
                eventually("the frame is received, or counted", || {
                    tap(&live).drops.too_long == too_long
                        && (more > 0 || received_by_the_host("softiov0") > before)
                });
            }
        }
    });
}

#[test]
fn link_of_each_port_follows_its_own_tap() {
    let config = format!("{TAP}vfs = 1\n[[port]]\nuplink = {{ tap = \"softiov1\" }}\nvfs = 1\n");
    on_a_tap("uplink_life::link_of_each_port_follows_its_own_tap", &config, |live| {
        let ports = || match ask(&live.control_socket(), ControlRequest::PortList).unwrap() {
            ControlAnswer::Ports(ports) => ports,
            other => panic!("unexpected answer to port.list: {other:?}"),
        };
        let links = || ports().iter().map(|port: &PortStatus| port.link).collect::<Vec<_>>();
        let mut guest = VfGuest::under_qemu(&live, 0);
        ip("link set softiov1 down");
        eventually("only the second port's link is down", || links() == [true, false]);
        reaches_the_host(&mut guest, "softiov0");
        ip("link del softiov0");
        eventually("both ports' links are down", || links() == [false, false]);
        ip("link set softiov1 up");
        eventually("the second port's link is up", || links() == [false, true]);
        make_tap();
        eventually("both ports' links are up", || links() == [true, true]);
        assert_eq!(
            ports().iter().filter_map(|port| Some(port.uplink_status.as_ref()?.reattached)).sum::<u64>(),
            1
        );
        reaches_the_host(&mut guest, "softiov0");
    });
}

#[test]
fn guest_that_drives_the_pf_sees_the_link_of_the_tap() {
    let config = format!("{TAP}pf = \"guest\"\n");
    on_a_tap("uplink_life::guest_that_drives_the_pf_sees_the_link_of_the_tap", &config, |live| {
        let mut machine = qemu::boot_as(&live.pf_socket(), qemu::PF, qemu::share);
        let mut sees_link = || machine.read(r::STATUS) & status::LU != 0;
        assert!(sees_link());
        ip("link del softiov0");
        eventually("the link goes down", || !sees_link());
        make_tap();
        eventually("the link comes up", sees_link);
    });
}

#[test]
fn flood_of_new_interfaces_does_not_slow_the_port() {
    let name = "uplink_life::flood_of_new_interfaces_does_not_slow_the_port";
    alone(name, || {
        on_a_tap(name, TAP, |live| {
            let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
            let (before, began) = (thread_time("pf0"), Instant::now());
            flood();
            let (port, took) = (thread_time("pf0") - before, began.elapsed());
            assert!(port < took / 10, "{port:?} of the port's thread in {took:?}");
            a.take();
            b.take();
            std::thread::scope(|scope| {
                let flood = scope.spawn(flood);
                while !flood.is_finished() {
                    exchange(&mut a, &mut b, 10);
                }
            });
            ip("link set softiov0 mtu 1400");
            wait_port(&live, "the tap is still watched", |port| {
                port.uplink_status.as_ref().is_some_and(|tap| tap.mtu == Some(1400))
            });
            let watcher = thread_time("pf0-uplink");
            assert!(watcher < began.elapsed() / 2, "{watcher:?} of the watcher in {:?}", began.elapsed());
        });
    });
}

/// Creates and deletes a thousand network interfaces, to flood the host with kernel notices about interfaces.
fn flood() {
    let pairs = (0..500).map(|n| format!("link add flood{n} group 7 type veth peer name other{n} group 7\n"));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), pairs.collect::<String>()).unwrap();
    ip(&format!("-batch {}", file.path().display()));
    ip("link del group 7");
}

/// Returns the processor time that this process's thread named `name` has used so far.
fn thread_time(name: &str) -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap().path());
    let is_it =
        |path: &std::path::PathBuf| std::fs::read_to_string(path.join("comm")).unwrap().trim() == name;
    let thread = threads.filter(|path| path.exists()).find(is_it).expect("a thread of this name runs");
    // The first number is the time on a processor, nanoseconds.
    let times = std::fs::read_to_string(thread.join("schedstat")).unwrap();
    Duration::from_nanos(times.split(' ').next().unwrap().parse().unwrap())
}
