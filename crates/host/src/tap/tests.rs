//! Tests taps in network namespaces of their own: created, attached to, used and deleted.

#![expect(unsafe_code, reason = "making a tap persistent takes two more ioctls")]

use std::process::Command;
use std::time::Duration;

use rustix::ioctl::{IntegerSetter, Opcode, Setter, ioctl};
use rustix::thread::set_thread_res_uid;

use super::*;
use crate::packet::{PacketSocket, SendBurst, UnsentFrameCounts};
use crate::poll::{PollInterest, Poller};
use crate::test_support::{in_network_namespace, skipped};

/// User id without any privilege.
const UNPRIVILEGED: u32 = 65_534;

fn name(name: &str) -> InterfaceName {
    name.parse().unwrap()
}

/// Runs a test in a network namespace where taps can be created.
fn with_taps(what: &str, body: impl FnOnce() + Send) {
    in_network_namespace(what, || match Tap::open(&name("probe0")) {
        Ok(probe) => {
            drop(probe);
            body();
        }
        Err(error) => skipped(what, &error.to_string()),
    });
}

/// Attaches to a tap that was released just before, and retries while the tap is in use: a child of another thread has
/// a copy of every file descriptor until the child executes its program.
fn once_free<T>(attach: impl Fn() -> Result<T, TapError>) -> Result<T, TapError> {
    for _ in 0..3_000 {
        match attach() {
            Err(TapError::InUse { .. }) => std::thread::sleep(Duration::from_millis(10)),
            other => return other,
        }
    }
    attach()
}

/// Builds a broadcast frame of an experimental protocol (IEEE 802: local experimental Ethertype 1).
fn frame(len: usize) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 9, 0x88, 0xb5]);
    frame.resize(len, 0x5a);
    frame
}

#[test]
fn valid_tap_names_are_used_literally() {
    for good in ["tap0", "a", "fifteen-bytes-x", "uplink.100"] {
        assert_eq!(name(good).as_str(), good);
    }
    for bad in ["", "sixteen-bytes-xx", "tap%d", "a/b", "a b", ".", "..", "a:1", "tüp", "a\0"] {
        let refused = bad.parse::<InterfaceName>().unwrap_err();
        assert!(refused.to_string().contains("cannot name an interface"), "{bad}");
    }
}

#[test]
fn created_tap_carries_frames_both_ways() {
    with_taps("tap frames", || {
        let (left, right) = (Tap::open(&name("left0")).unwrap(), Tap::open(&name("right0")).unwrap());
        assert_eq!(left.send(&frame(60)).unwrap(), TapSendResult::Down, "the interface is still down");
        left.set_up().unwrap();
        left.set_up().unwrap();
        left.set_mtu(9000).unwrap();
        assert_eq!((left.mtu().unwrap(), right.mtu().unwrap()), (9000, 1500));
        assert!(matches!(left.set_mtu(10), Err(TapError::System { .. })));
        right.set_up().unwrap();
        // A bridge makes the host send on one tap what it receives on the other.
        let ip = |arguments: &str| Command::new("ip").args(arguments.split(' ')).status();
        match ip("link add bridge0 type bridge forward_delay 0") {
            Ok(status) if status.success() => {}
            other => return skipped("tap frames", &format!("no bridge: {other:?}")),
        }
        for arguments in
            ["link set left0 master bridge0", "link set right0 master bridge0", "link set bridge0 up"]
        {
            assert!(ip(arguments).unwrap().success());
        }
        assert_eq!(left.send(&frame(1000)).unwrap(), TapSendResult::Sent);
        assert_eq!(receive_ours(&right), frame(1000));
        assert_eq!(right.send(&frame(64)).unwrap(), TapSendResult::Sent);
        assert_eq!(receive_ours(&left), frame(64));
        assert!(left.send(&[0; 5]).is_err(), "shorter than an Ethernet header");
    });
}

/// Waits for a frame with the test's Ethertype, and skips the frames that the host sends of its own.
fn receive_ours(tap: &Tap) -> Vec<u8> {
    let mut poller = Poller::new().unwrap();
    poller.add(tap, 0, PollInterest::READ).unwrap();
    for _ in 0..100 {
        assert_eq!(poller.wait(Some(Duration::from_secs(60))).unwrap().count(), 1, "no frame arrived");
        let mut buffer = vec![0; 9018];
        while let TapReceiveResult::Frame(len, _) = tap.recv(&mut buffer).unwrap() {
            if buffer[12..14] == [0x88, 0xb5] {
                buffer.truncate(len);
                return buffer;
            }
        }
    }
    panic!("only frames of the host arrived, and not the expected one");
}

#[test]
fn tap_receive_without_a_frame_does_not_block() {
    with_taps("tap read", || {
        let tap = Tap::open(&name("quiet0")).unwrap();
        assert_eq!(tap.recv(&mut [0; 2048]).unwrap(), TapReceiveResult::Empty);
        assert_eq!(tap.name().as_str(), "quiet0");
    });
}

#[test]
fn tap_receive_that_the_kernel_refuses_costs_one_frame() {
    with_taps("tap read refused", || {
        let tap = Tap::open(&name("refused0")).unwrap();
        tap.set_up().unwrap();
        // Headers longer than the buffer stand for a packet that no header describes: the kernel drops it.
        set_header_size(&tap, 256);
        let (socket, mut burst) = (PacketSocket::open(&name("refused0")).unwrap(), SendBurst::default());
        assert!(burst.push(&frame(60)) && burst.push(&frame(70)));
        assert_eq!(socket.send(&mut burst), UnsentFrameCounts::default());
        let mut buffer = [0; 128];
        let first = std::iter::repeat_with(|| tap.recv(&mut buffer).unwrap())
            .find(|result| *result != TapReceiveResult::Malformed);
        assert_eq!(first, Some(TapReceiveResult::Empty));
        set_header_size(&tap, VnetHeader::SIZE);
        assert!(burst.push(&frame(80)));
        assert_eq!(socket.send(&mut burst), UnsentFrameCounts::default());
        assert_eq!(receive_ours(&tap), frame(80));
    });
}

/// Sets the size in bytes of the virtio-net headers before a tap's frames.
fn set_header_size(tap: &Tap, size: usize) {
    const TUNSETVNETHDRSZ: Opcode = libc::TUNSETVNETHDRSZ as Opcode;
    let size = libc::c_int::try_from(size).unwrap();
    // SAFETY: it reads one `int`.
    unsafe { ioctl(tap, Setter::<TUNSETVNETHDRSZ, _>::new(size)) }.unwrap();
}

#[test]
fn tap_in_use_and_interface_of_another_kind_are_refused() {
    with_taps("tap refusal", || {
        let tap = Tap::open(&name("busy0")).unwrap();
        assert!(matches!(Tap::open(&name("busy0")), Err(TapError::InUse { .. })));
        assert!(matches!(Tap::open(&name("lo")), Err(TapError::NotATap { .. })));
        drop(tap);
        once_free(|| Tap::open(&name("busy0"))).unwrap();
    });
}

#[test]
fn deleted_tap_returns_an_error() {
    with_taps("tap deletion", || {
        let tap = Tap::open(&name("gone0")).unwrap();
        tap.set_up().unwrap();
        match Command::new("ip").args(["link", "delete", "gone0"]).status() {
            Ok(status) if status.success() => {}
            other => return skipped("tap deletion", &format!("ip link delete: {other:?}")),
        }
        assert!(tap.recv(&mut [0; 2048]).is_err());
        assert!(tap.send(&frame(60)).is_err());
        assert!(tap.mtu().is_err() && tap.set_up().is_err() && tap.attachment().is_err());
    });
}

/// Lists the interfaces of this thread's network namespace.
fn interfaces() -> String {
    std::fs::read_to_string("/proc/thread-self/net/dev").unwrap()
}

/// Waits until an interface is deleted. A child of another thread may keep the interface until the child executes its
/// program.
fn is_gone(interface: &str) -> bool {
    let gone = || !interfaces().contains(interface);
    (0..3_000).any(|_| {
        gone() || {
            std::thread::sleep(Duration::from_millis(10));
            gone()
        }
    })
}

#[test]
fn renamed_or_moved_tap_stays_attached() {
    with_taps("tap renamed and moved", || {
        let tap = Tap::open(&name("first0")).unwrap();
        let ip = |arguments: &str| Command::new("ip").args(arguments.split(' ')).status();
        if !ip("link set first0 name second0").is_ok_and(|status| status.success()) {
            return skipped("tap renamed and moved", "ip link set name");
        }
        let attachment = TapInterface { name: "second0".into(), persistent: false };
        assert_eq!((tap.attachment().unwrap(), tap.is_up().unwrap()), (attachment.clone(), false));
        ip("link set second0 up").unwrap();
        assert!(tap.is_up().unwrap());
        // Another process, with a namespace to move to.
        let mut other = Command::new("unshare").args(["-n", "sleep", "60"]).spawn().unwrap();
        let moved = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            // Without effect until the process has its own namespace.
            ip(&format!("link set second0 netns {}", other.id())).unwrap();
            !interfaces().contains("second0:")
        });
        let seen = (tap.attachment(), tap.is_up());
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(moved);
        assert_eq!((seen.0.unwrap(), seen.1.unwrap()), (attachment, false), "a move takes it down");
    });
}

#[test]
fn renamed_tap_is_set_up_under_its_present_name() {
    with_taps("tap renamed and set up", || {
        let tap = Tap::open(&name("first0")).unwrap();
        for words in ["link set first0 name second0", "link add first0 type bridge"] {
            if !Command::new("ip").args(words.split(' ')).status().is_ok_and(|status| status.success()) {
                return skipped("tap renamed and set up", words);
            }
        }
        tap.set_up().unwrap();
        assert!(tap.is_up().unwrap());
        let bridge = request::flags(control(&name("first0")).unwrap(), &name("first0")).unwrap();
        assert!(!bridge.up, "another interface has the former name");
    });
}

#[test]
fn attaching_to_an_existing_tap_creates_no_missing_tap() {
    with_taps("existing tap", || {
        assert!(Tap::open_existing(&name("exists0")).unwrap().is_none());
        assert!(is_gone("exists0:"));
        make_persistent(&Tap::open(&name("exists0")).unwrap(), 0);
        let tap =
            once_free(|| Tap::open_existing(&name("exists0"))).unwrap().expect("tap exists0 must exist");
        assert!(matches!(Tap::open_existing(&name("exists0")), Err(TapError::InUse { .. })));
        drop(tap);
        assert!(interfaces().contains("exists0:"));
    });
}

#[test]
fn inherited_descriptor_of_a_tap_is_adopted() {
    with_taps("tap taken over", || {
        let tap = Tap::open(&name("hand0")).unwrap();
        tap.set_up().unwrap();
        let copy = tap.as_fd().try_clone_to_owned().unwrap();
        drop(tap);
        let tap = Tap::adopt(copy, &name("hand0")).unwrap();
        assert_eq!(tap.send(&frame(60)).unwrap(), TapSendResult::Sent);
        let other = std::fs::File::open("/dev/null").unwrap();
        assert!(matches!(Tap::adopt(other.into(), &name("hand0")), Err(TapError::NotATap { .. })));
    });
}

#[test]
fn owner_attaches_to_a_persistent_tap_without_privilege() {
    with_taps("unprivileged tap", || {
        make_persistent(&Tap::open(&name("theirs0")).unwrap(), UNPRIVILEGED);
        let files: Vec<OwnedFd> =
            (0..2).map(|_| open("/dev/net/tun", flags(), Mode::empty()).unwrap()).collect();
        let [owned, new] = files.try_into().unwrap();
        // Restricts this thread alone, which ends with the namespace.
        let unprivileged = rustix::process::Uid::from_raw(UNPRIVILEGED);
        if let Err(error) = set_thread_res_uid(unprivileged, unprivileged, unprivileged) {
            return skipped("unprivileged tap", &error.to_string());
        }
        let tap = once_free(|| Tap::attach(owned.try_clone().unwrap(), &name("theirs0"))).unwrap();
        assert!(matches!(tap.set_up(), Err(TapError::NotPermitted { .. })));
        assert_eq!(tap.mtu().unwrap(), 1500);
        tap.set_mtu(1500).unwrap();
        assert!(matches!(tap.set_mtu(9000), Err(TapError::NotPermitted { .. })));
        let refused = Tap::attach(new, &name("new0")).unwrap_err();
        assert!(refused.to_string().contains("needs root or CAP_NET_ADMIN"), "{refused}");
    });
}

fn flags() -> OFlags {
    OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC
}

/// Makes a tap persistent for a user, as `ip tuntap add ... user` does.
fn make_persistent(tap: &Tap, owner: u32) {
    const TUNSETPERSIST: Opcode = libc::TUNSETPERSIST as Opcode;
    const TUNSETOWNER: Opcode = libc::TUNSETOWNER as Opcode;
    // SAFETY: both take a number.
    unsafe {
        ioctl(tap, IntegerSetter::<TUNSETOWNER>::new_usize(owner as usize)).unwrap();
        ioctl(tap, IntegerSetter::<TUNSETPERSIST>::new_usize(1)).unwrap();
    }
}

/// Runs a test in a network namespace with the macvtaps left0 and right0, one on each end of a pair of interfaces.
fn with_macvtaps(what: &str, body: impl FnOnce() + Send) {
    in_network_namespace(what, || {
        // Unique indices: the device files of all namespaces are in one folder.
        let numbers = 1_000_000 + 2 * rustix::thread::gettid().as_raw_nonzero().get();
        for words in [
            "link add wire0 type veth peer name wire1".to_owned(),
            format!("link add link wire0 name left0 index {numbers} type macvtap mode passthru"),
            format!("link add link wire1 name right0 index {} type macvtap mode passthru", numbers + 1),
        ] {
            let output = Command::new("ip").args(words.split(' ')).output();
            if !output.as_ref().is_ok_and(|output| output.status.success()) {
                return skipped(what, &format!("this kernel has no macvtap or no veth: {words}: {output:?}"));
            }
        }
        for interface in ["left0", "right0"] {
            match Tap::open_macvtap(&name(interface)) {
                Ok(tap) => tap.expect("the created macvtap must exist").set_up().unwrap(),
                Err(error @ TapError::NoDeviceFile { .. }) => return skipped(what, &error.to_string()),
                Err(error) => panic!("{error}"),
            }
        }
        for interface in ["wire0", "wire1"] {
            let words = ["link", "set", interface, "up"];
            assert!(Command::new("ip").args(words).status().unwrap().success());
        }
        body();
    });
}

#[test]
fn macvtaps_exchange_frames_until_one_is_deleted() {
    with_macvtaps("macvtap frames", || {
        let open = |interface: &str| Tap::open_macvtap(&name(interface)).unwrap();
        let (left, right) = (open("left0").unwrap(), open("right0").unwrap());
        assert!(left.take_offloads() && right.take_offloads());
        for (from, to) in [(&left, &right), (&right, &left)] {
            let mut buffer = [0; 70_000];
            // A pair whose carrier comes up gets its send queue a moment later, and silently drops earlier frames.
            let arrived = (0..1000).any(|_| {
                assert_eq!(from.send(&frame(1000)).unwrap(), TapSendResult::Sent);
                std::thread::sleep(Duration::from_millis(20));
                std::iter::from_fn(|| match to.recv(&mut buffer).unwrap() {
                    TapReceiveResult::Frame(length, _) => Some(buffer[..length] == frame(1000)),
                    TapReceiveResult::Malformed | TapReceiveResult::Empty => None,
                })
                .any(|ours| ours)
            });
            assert!(arrived, "from {} to {}", from.name(), to.name());
        }
        assert_eq!(left.attachment().unwrap().name, "left0");
        assert!(Command::new("ip").args(["link", "del", "left0"]).status().unwrap().success());
        assert!(left.attachment().is_err());
        assert!(open("left0").is_none());
        assert!(Tap::adopt(left.fd, &name("left0")).is_err());
        assert!(Tap::adopt(right.fd, &name("right0")).is_ok());
    });
}

#[test]
fn interface_other_than_macvtap_is_refused_with_a_remedy() {
    with_macvtaps("macvtap refusals", || {
        let refused = Tap::open_macvtap(&name("wire0")).unwrap_err().to_string();
        assert!(refused.contains("is not the device file of wire0"), "{refused}");
        assert!(refused.contains("name wire0 type macvtap"), "{refused}");
    });
}

#[test]
fn macvtap_device_file_of_another_namespace_is_refused() {
    with_macvtaps("macvtap namespaces", || {
        let index = rustix::net::netdevice::name_to_index(control(&name("left0")).unwrap(), "left0").unwrap();
        in_network_namespace("macvtap namespaces", || {
            // The same index and the same name.
            for words in [
                "link add wire0 type veth peer name wire1".to_owned(),
                format!("link add link wire0 name left0 index {index} type macvtap mode passthru"),
            ] {
                assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success());
            }
            let refused = Tap::open_macvtap(&name("left0")).unwrap_err().to_string();
            assert!(refused.contains("is not the device file of left0"), "{refused}");
        });
        assert!(Tap::open_macvtap(&name("left0")).is_ok());
    });
}
