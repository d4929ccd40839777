//! Packet sockets on pairs of interfaces in network namespaces of their own.

use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

use super::*;
use crate::poll::{Interest, Poller};
use crate::test_support::{in_network_namespace, skipped};

#[track_caller]
fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output().expect("iproute2 is installed");
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
}

fn name(name: &str) -> InterfaceName {
    name.parse().unwrap()
}

/// Runs a test in a namespace with a pair of interfaces, `left0` and `right0`.
fn with_a_pair(what: &str, body: impl FnOnce() + Send) {
    in_network_namespace(what, || {
        let pair = "link add left0 type veth peer name right0".split(' ');
        if !Command::new("ip").args(pair).output().is_ok_and(|output| output.status.success()) {
            return skipped(what, "this kernel has no veth, or iproute2 is not installed");
        }
        // Nothing but what the test sends.
        for file in ["all", "default", "left0", "right0"] {
            let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{file}/disable_ipv6"), "1");
        }
        ip("link set left0 up");
        ip("link set right0 up");
        let (left, right) = (open("left0"), open("right0"));
        wait_until_carries(&left, &right);
        wait_until_carries(&right, &left);
        body();
    });
}

fn open(interface: &str) -> PacketSocket {
    PacketSocket::open(&name(interface)).unwrap()
}

/// Waits until frames pass from one interface to the other, and until none of its own probes is left. A pair whose carrier
/// comes gets its send queue a moment later (the kernel's linkwatch), and loses silently what is sent before.
#[track_caller]
fn wait_until_carries(from: &PacketSocket, to: &PacketSocket) {
    let mut poller = Poller::new().unwrap();
    poller.add(to, 0, Interest::READ).unwrap();
    let carries = (0..1000).any(|_| {
        let _ = send(from, &[frame(0xff, 60)]);
        poller.wait(Some(Duration::from_millis(20))).unwrap().count() > 0
    });
    assert!(carries, "{} does not reach {}", from.name(), to.name());
    let _ = arrived(to, 0);
}

/// A frame to a station that is not there, of an experimental protocol.
fn frame(number: u8, len: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 9, 0x88, 0xb5, number];
    frame.resize(len, 0x5a);
    frame
}

/// What comes: at least `expected` frames, and more until nothing has come for a while. A busy kernel may take its time with
/// those that are expected.
fn arrived(socket: &PacketSocket, expected: usize) -> Vec<Vec<u8>> {
    let (mut poller, mut burst, mut frames) = (Poller::new().unwrap(), ReceiveBurst::default(), Vec::new());
    poller.add(socket, 0, Interest::READ).unwrap();
    let patience = |came: usize| Duration::from_millis(if came < expected { 60_000 } else { 200 });
    while poller.wait(Some(patience(frames.len()))).unwrap().count() > 0 {
        socket.receive(&mut burst).unwrap();
        while let Some(arrived) = burst.pop() {
            let Arrived::Frame(frame) = arrived else { panic!("something too long") };
            frames.push(frame.to_vec());
        }
    }
    frames
}

fn send(socket: &PacketSocket, frames: &[Vec<u8>]) -> Lost {
    let (mut burst, mut lost) = (SendBurst::default(), Lost::default());
    for frame in frames {
        assert!(burst.push(frame));
        if burst.is_full() {
            let more = socket.send(&mut burst);
            lost = sum(lost, more);
        }
    }
    sum(lost, socket.send(&mut burst))
}

fn sum(one: Lost, other: Lost) -> Lost {
    Lost {
        too_long: one.too_long + other.too_long,
        no_room: one.no_room + other.no_room,
        no_link: one.no_link + other.no_link,
    }
}

#[test]
fn frame_beyond_the_mtu_is_too_long_and_one_tag_is_on_top() {
    with_a_pair("packet lengths", || {
        let (left, right) = (open("left0"), open("right0"));
        for (tag, most) in [(&[][..], 1514), (&[0x81, 0x00, 0x00, 0x05], 1518)] {
            for (length, too_long) in [(most - 4, 0), (most, 0), (most + 1, 1), (most + 4, 1)] {
                let plain = frame(1, length - tag.len());
                let frame = [&plain[..12], tag, &plain[12..]].concat();
                let lost = send(&left, std::slice::from_ref(&frame));
                assert_eq!(lost, Lost { too_long, ..Lost::default() }, "{length} bytes, tag {tag:x?}");
                let came = arrived(&right, 1 - too_long as usize);
                assert_eq!(came, vec![frame; 1 - too_long as usize], "{length} bytes, tag {tag:x?}");
            }
        }
    });
}

#[test]
fn frames_for_anybody_cross_both_ways_in_bursts_and_none_comes_back() {
    with_a_pair("packet frames", || {
        let (left, right) = (open("left0"), open("right0"));
        let frames: Vec<_> = (0..100).map(|n| frame(n, 60 + usize::from(n) * 14)).collect();
        assert_eq!(send(&left, &frames), Lost::default());
        assert_eq!(arrived(&right, frames.len()), frames);
        assert_eq!(arrived(&left, 0), Vec::<Vec<u8>>::new(), "what it has sent");
        assert_eq!(send(&right, &frames[..3]), Lost::default());
        assert_eq!(arrived(&left, 3), frames[..3]);
        assert_eq!((left.missed(), right.missed()), (0, 0));
    });
}

#[test]
fn a_tag_goes_and_comes_with_its_frame() {
    with_a_pair("packet tags", || {
        let (left, right) = (open("left0"), open("right0"));
        // The kernel takes tags off when frames arrive, before anybody sees them.
        for tag in [[0x81, 0x00, 0x60, 0x05], [0x88, 0xa8, 0x00, 0x07]] {
            let plain = frame(1, 200);
            let tagged = [&plain[..12], &tag, &plain[12..]].concat();
            assert_eq!(send(&left, std::slice::from_ref(&tagged)), Lost::default());
            assert_eq!(arrived(&right, 1), [tagged]);
        }
    });
}

#[test]
fn what_the_host_sends_comes_with_its_checksum() {
    with_a_pair("packet checksums", || {
        ip("addr add 10.98.0.1/24 dev left0");
        ip("neigh add 10.98.0.2 lladdr 02:00:00:00:00:07 dev left0");
        let right = open("right0");
        UdpSocket::bind("10.98.0.1:0").unwrap().send_to(&[0x5a; 101], "10.98.0.2:9").unwrap();
        let frames = arrived(&right, 1);
        let [frame] = &frames[..] else { panic!("{} frames", frames.len()) };
        // Addresses, protocol and length, and all of UDP.
        let pseudo = [&frame[26..34], &[0, 17], &frame[38..40]].concat();
        let covered = [&pseudo[..], &frame[34..], &[0]].concat();
        let sum: u32 =
            covered.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "{frame:x?}");
    });
}

#[test]
fn an_interface_that_is_down_loses_frames_and_one_that_is_gone_is_known_to_be() {
    with_a_pair("packet gone", || {
        let (left, right) = (open("left0"), open("right0"));
        ip("link set left0 down");
        assert_eq!(send(&left, &[frame(1, 60), frame(2, 60)]), Lost { no_link: 2, ..Lost::default() });
        assert_eq!(arrived(&left, 0), Vec::<Vec<u8>>::new(), "that it is down is no error");
        ip("link set left0 name other0");
        ip("link set other0 up");
        assert_eq!(left.interface().as_deref(), Some("other0"));
        wait_until_carries(&right, &left);
        assert_eq!(send(&right, &[frame(3, 60)]), Lost::default());
        assert_eq!(arrived(&left, 1), [frame(3, 60)], "it is the same one");
        ip("link del other0");
        assert_eq!((left.interface(), right.interface()), (None, None));
        assert_eq!(send(&left, &[frame(4, 60)]), Lost { no_link: 1, ..Lost::default() });
        assert!(PacketSocket::open_existing(&name("other0")).unwrap().is_none());
        assert!(PacketSocket::adopt(left.fd, &name("left0")).is_none());
    });
}

#[test]
fn what_is_not_there_or_is_no_ethernet_is_refused_by_name() {
    with_a_pair("packet refusals", || {
        let refused = PacketSocket::open(&name("nothere0")).unwrap_err().to_string();
        assert!(refused.contains("nothere0 does not exist"), "{refused}");
        let refused = PacketSocket::open(&name("lo")).unwrap_err().to_string();
        assert!(refused.contains("lo carries no Ethernet frames"), "{refused}");
        let pair = crate::socket::Stream::pair().unwrap();
        assert!(PacketSocket::adopt(pair.0.into(), &name("left0")).is_none());
        let taken = open("left0");
        assert!(PacketSocket::adopt(taken.fd, &name("left0")).is_some());
    });
}
