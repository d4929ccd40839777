//! Tests packet sockets on pairs of interfaces in network namespaces of their own.

use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

use super::*;
use crate::poll::{PollInterest, Poller};
use crate::tap::{Tap, TapReceiveResult};
use crate::test_support::{in_network_namespace, skipped};
use crate::vnet::{GsoType, VnetHeader};

#[track_caller]
fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output().expect("iproute2 must be installed");
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
}

fn name(name: &str) -> InterfaceName {
    name.parse().unwrap()
}

/// Runs a test in a network namespace with a pair of connected interfaces, `left0` and `right0`.
fn with_a_pair(what: &str, body: impl FnOnce() + Send) {
    in_network_namespace(what, || {
        let pair = "link add left0 type veth peer name right0".split(' ');
        if !Command::new("ip").args(pair).output().is_ok_and(|output| output.status.success()) {
            return skipped(what, "this kernel has no veth, or iproute2 is not installed");
        }
        // Only the test's frames cross the pair.
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

/// Waits until test frames pass from one interface to the other, and discards them. When a pair gets its carrier, its
/// send queue follows a moment later (the kernel's linkwatch); earlier frames are dropped silently.
#[track_caller]
fn wait_until_carries(from: &PacketSocket, to: &PacketSocket) {
    let mut poller = Poller::new().unwrap();
    poller.add(to, 0, PollInterest::READ).unwrap();
    let carries = (0..1000).any(|_| {
        let _ = send(from, &[frame(0xff, 60)]);
        poller.wait(Some(Duration::from_millis(20))).unwrap().count() > 0
    });
    assert!(carries, "{} does not reach {}", from.name(), to.name());
    let _ = arrived(to, 0);
}

/// Builds a frame with an experimental Ethertype, numbered `number`, to an address that no station has.
fn frame(number: u8, len: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 9, 0x88, 0xb5, number];
    frame.resize(len, 0x5a);
    frame
}

/// Receives at least `expected` frames, and continues until no frame has come for 200 ms. A busy kernel may delay the
/// expected ones.
fn arrived(socket: &PacketSocket, expected: usize) -> Vec<Vec<u8>> {
    let (mut poller, mut burst, mut frames) = (Poller::new().unwrap(), ReceiveBurst::default(), Vec::new());
    poller.add(socket, 0, PollInterest::READ).unwrap();
    let patience = |came: usize| Duration::from_millis(if came < expected { 60_000 } else { 200 });
    while poller.wait(Some(patience(frames.len()))).unwrap().count() > 0 {
        socket.receive(&mut burst).unwrap();
        while let Some(arrived) = burst.pop() {
            let PacketReceiveResult::Frame(frame) = arrived else { panic!("a received packet is no frame") };
            frames.push(frame.to_vec());
        }
    }
    frames
}

fn send(socket: &PacketSocket, frames: &[Vec<u8>]) -> UnsentFrameCounts {
    let (mut burst, mut lost) = (SendBurst::default(), UnsentFrameCounts::default());
    for frame in frames {
        assert!(burst.push(frame));
        if burst.is_full() {
            let more = socket.send(&mut burst);
            lost = sum(lost, more);
        }
    }
    sum(lost, socket.send(&mut burst))
}

fn sum(one: UnsentFrameCounts, other: UnsentFrameCounts) -> UnsentFrameCounts {
    UnsentFrameCounts {
        too_long: one.too_long + other.too_long,
        no_room: one.no_room + other.no_room,
        no_link: one.no_link + other.no_link,
    }
}

#[test]
fn frame_may_exceed_the_interface_mtu_by_one_vlan_tag() {
    with_a_pair("packet lengths", || {
        let (left, right) = (open("left0"), open("right0"));
        for (tag, most) in [(&[][..], 1514), (&[0x81, 0x00, 0x00, 0x05], 1518)] {
            for (length, too_long) in [(most - 4, 0), (most, 0), (most + 1, 1), (most + 4, 1)] {
                let plain = frame(1, length - tag.len());
                let frame = [&plain[..12], tag, &plain[12..]].concat();
                let lost = send(&left, std::slice::from_ref(&frame));
                assert_eq!(
                    lost,
                    UnsentFrameCounts { too_long, ..UnsentFrameCounts::default() },
                    "{length} bytes, tag {tag:x?}"
                );
                let came = arrived(&right, 1 - too_long as usize);
                assert_eq!(came, vec![frame; 1 - too_long as usize], "{length} bytes, tag {tag:x?}");
            }
        }
    });
}

#[test]
fn packet_socket_carries_bursts_both_ways_without_echo() {
    with_a_pair("packet frames", || {
        let (left, right) = (open("left0"), open("right0"));
        let frames: Vec<_> = (0..100).map(|n| frame(n, 60 + usize::from(n) * 14)).collect();
        assert_eq!(send(&left, &frames), UnsentFrameCounts::default());
        assert_eq!(arrived(&right, frames.len()), frames);
        assert_eq!(arrived(&left, 0), Vec::<Vec<u8>>::new(), "its own frames");
        assert_eq!(send(&right, &frames[..3]), UnsentFrameCounts::default());
        assert_eq!(arrived(&left, 3), frames[..3]);
        assert_eq!((left.missed(), right.missed()), (0, 0));
    });
}

#[test]
fn packet_socket_sends_and_receives_vlan_tags() {
    with_a_pair("packet tags", || {
        let (left, right) = (open("left0"), open("right0"));
        // The kernel removes tags from arriving frames.
        for tag in [[0x81, 0x00, 0x60, 0x05], [0x88, 0xa8, 0x00, 0x07]] {
            let plain = frame(1, 200);
            let tagged = [&plain[..12], &tag, &plain[12..]].concat();
            assert_eq!(send(&left, std::slice::from_ref(&tagged)), UnsentFrameCounts::default());
            assert_eq!(arrived(&right, 1), [tagged]);
        }
    });
}

#[test]
fn packet_socket_completes_checksums_of_the_hosts_frames() {
    with_a_pair("packet checksums", || {
        ip("addr add 10.98.0.1/24 dev left0");
        ip("neigh add 10.98.0.2 lladdr 02:00:00:00:00:07 dev left0");
        let right = open("right0");
        UdpSocket::bind("10.98.0.1:0").unwrap().send_to(&[0x5a; 101], "10.98.0.2:9").unwrap();
        let frames = arrived(&right, 1);
        let [frame] = &frames[..] else { panic!("received {} frames instead of one", frames.len()) };
        // The sum covers addresses, protocol, length, and all of UDP.
        let pseudo = [&frame[26..34], &[0, 17], &frame[38..40]].concat();
        let covered = [&pseudo[..], &frame[34..], &[0]].concat();
        let sum: u32 =
            covered.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "{frame:x?}");
    });
}

#[test]
fn packet_socket_drops_frames_of_a_down_or_deleted_interface() {
    with_a_pair("packet gone", || {
        let (left, right) = (open("left0"), open("right0"));
        ip("link set left0 down");
        assert_eq!(
            send(&left, &[frame(1, 60), frame(2, 60)]),
            UnsentFrameCounts { no_link: 2, ..UnsentFrameCounts::default() }
        );
        assert_eq!(arrived(&left, 0), Vec::<Vec<u8>>::new(), "a down interface is no error");
        ip("link set left0 name other0");
        ip("link set other0 up");
        assert_eq!(left.interface().as_deref(), Some("other0"));
        wait_until_carries(&right, &left);
        assert_eq!(send(&right, &[frame(3, 60)]), UnsentFrameCounts::default());
        assert_eq!(arrived(&left, 1), [frame(3, 60)], "the renamed interface is the same");
        ip("link del other0");
        assert_eq!((left.interface(), right.interface()), (None, None));
        assert_eq!(
            send(&left, &[frame(4, 60)]),
            UnsentFrameCounts { no_link: 1, ..UnsentFrameCounts::default() }
        );
        assert!(PacketSocket::open_existing(&name("other0")).unwrap().is_none());
        assert!(PacketSocket::adopt(left.fd, &name("left0")).is_none());
    });
}

#[test]
fn missing_or_non_ethernet_interface_is_refused_by_name() {
    with_a_pair("packet refusals", || {
        let refused = PacketSocket::open(&name("nothere0")).unwrap_err().to_string();
        assert!(refused.contains("nothere0 does not exist"), "{refused}");
        let refused = PacketSocket::open(&name("lo")).unwrap_err().to_string();
        assert!(refused.contains("lo carries no Ethernet frames"), "{refused}");
        let pair = crate::socket::StreamSocket::pair().unwrap();
        assert!(PacketSocket::adopt(pair.0.into(), &name("left0")).is_none());
        let taken = open("left0");
        assert!(PacketSocket::adopt(taken.fd, &name("left0")).is_some());
    });
}

/// Virtio-net header of UDP over IPv4 that is to be fragmented (VIRTIO_NET_HDR_GSO_UDP). The kernel accepts it from a
/// tap, and has no header for it when a packet socket receives it.
const FRAGMENTED_UDP: VnetHeader =
    VnetHeader { checksum: Some((34, 6)), segments: GsoType::Other(3), headers: 42, size: 1000 };

/// Builds a packet of 3,000 bytes of UDP from 10.98.0.2 to 10.98.0.3.
fn fragmented_udp() -> Vec<u8> {
    let mut packet = vec![2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 9, 8, 0];
    packet.extend([0x45, 0, 0x0b, 0xd4, 0, 0, 0, 0, 64, 17, 0, 0, 10, 98, 0, 2, 10, 98, 0, 3]);
    packet.extend([0, 9, 0, 9, 0x0b, 0xc0, 0, 0]);
    packet.resize(42 + 3000, 0x5a);
    packet
}

#[test]
fn packet_that_the_kernel_cannot_describe_is_malformed() {
    in_network_namespace("packet without a header", || {
        let tap = match Tap::open(&name("wire0")) {
            Ok(tap) => tap,
            Err(error) => return skipped("packet without a header", &error.to_string()),
        };
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/wire0/disable_ipv6", "1");
        tap.set_up().unwrap();
        let (socket, mut burst) = (open("wire0"), ReceiveBurst::default());
        let mut next = || {
            socket.receive(&mut burst).expect("one packet is no failure of the socket");
            match burst.pop() {
                Some(PacketReceiveResult::Frame(frame)) => Some(frame.to_vec()),
                Some(PacketReceiveResult::Malformed) => Some(vec![]),
                None => None,
            }
        };
        // Both places of the packet: first in a burst, and after a frame.
        for number in 0..3 {
            let _ = tap.send(&frame(number, 60)).unwrap();
            let _ = tap.send_with(&FRAGMENTED_UDP, &fragmented_udp()).unwrap();
        }
        let came: Vec<_> = std::iter::from_fn(&mut next).take(10).collect();
        let expected: Vec<_> = (0..3).flat_map(|number| [frame(number, 60), vec![]]).collect();
        assert_eq!(came, expected);
        // The kernel reports the packet to the next call, which sends a frame.
        let _ = tap.send(&frame(4, 60)).unwrap();
        let _ = tap.send_with(&FRAGMENTED_UDP, &fragmented_udp()).unwrap();
        assert_eq!(next(), Some(frame(4, 60)));
        assert_eq!(send(&socket, &[frame(5, 60)]), UnsentFrameCounts::default());
        let mut buffer = [0; 2048];
        let TapReceiveResult::Frame(length, _) = tap.recv(&mut buffer).unwrap() else {
            panic!("the frame was not sent")
        };
        assert_eq!(buffer[..length], frame(5, 60));
        assert_eq!(next(), Some(vec![]), "the packet that the kernel has reported to the call that sends");
        assert_eq!(next(), None);
    });
}
