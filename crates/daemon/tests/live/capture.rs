//! Tests of packet captures on a live host: the interface of each frame, and the reason of each drop.

use crate::support::guest::VfGuest;
use crate::support::http;
use crate::support::live::LiveHost;
use crate::support::{PATIENCE, eventually};
use crate::vhost::guest::{VirtioGuest, exchange};
use daemon::control::client::{self, CaptureQuery, ControlClientError};
use host::socket::StreamSocket;
use i82576::MacAddress;
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use virtio::VirtioFeatures;

/// Starts a capture of frames in a thread, and returns the receiver of its pcapng bytes, piece by piece.
fn begin(live: &LiveHost, query: CaptureQuery) -> Receiver<Vec<u8>> {
    let (sender, pieces) = channel();
    let socket = live.control_socket();
    std::thread::spawn(move || {
        client::capture(&socket, &query, &mut |piece| match sender.send(piece.to_vec()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        })
    });
    pieces
}

fn query(at: &[&str]) -> CaptureQuery {
    CaptureQuery {
        port: "pf0".into(),
        at: at.iter().map(ToString::to_string).collect(),
        ..CaptureQuery::default()
    }
}

/// Returns true if the capture file contains the bytes `part`.
fn has(file: &[u8], part: &[u8]) -> bool {
    file.windows(part.len()).any(|window| window == part)
}

fn refusal(live: &LiveHost, query: &CaptureQuery) -> String {
    let refused = client::capture(&live.control_socket(), query, &mut |_| ControlFlow::Break(()));
    let Err(ControlClientError::Refused(why)) = refused else { panic!("{refused:?}") };
    why
}

#[test]
fn spoofed_frame_is_captured_with_the_drop_reason() {
    let live = LiveHost::start();
    let (mut a, b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    let pieces = begin(&live, CaptureQuery { drops: true, ..query(&[]) });
    let mut file = pieces.recv().unwrap();
    let frame = [&b.vf.mac().0[..], &[2, 6, 6, 6, 6, 6, 0x88, 0xb5], &[0x77; 60]].concat();
    eventually("the frame is captured", || {
        let _ = a.vf.transmit(&mut a.machine, &frame, &Default::default());
        a.vf.flush(&mut a.machine);
        a.vf.clean(&mut a.machine);
        file.extend(pieces.try_iter().flatten());
        has(&file, &frame)
    });
    assert!(has(&file, b"pf0vf0") && has(&file, b"uplink"));
    assert!(has(&file, b"dropped: the source address is not the sender's (spoof check)"));
}

#[test]
fn capture_interfaces_and_filters_select_frames() {
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    let at_b = begin(&live, query(&["pf0vf1"]));
    let filtered = begin(&live, CaptureQuery { filter: "ether proto 0x88b6".into(), ..query(&[]) });
    let [mut to_b, mut none] = [&at_b, &filtered].map(|pieces| pieces.recv().unwrap());
    eventually("frames are captured", || {
        a.send(b.vf.mac(), &[0x42; 90]);
        b.take();
        to_b.extend(at_b.try_iter().flatten());
        has(&to_b, &[0x42; 90])
    });
    assert!(has(&to_b, b"pf0vf1") && !has(&to_b, b"pf0vf0"));
    none.extend(filtered.try_iter().flatten());
    assert!(!has(&none, &[0x42; 90]), "a frame of another type was captured");
    // The captures do not disturb the guests.
    a.send(MacAddress::BROADCAST, &[0x43; 60]);
    // Earlier frames may still be pending.
    eventually("the broadcast arrives", || b.take().contains(&vec![0x43; 60]));
}

#[test]
fn capture_filters_whole_frames_and_then_truncates_them() {
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    let begin = |filter: &str| {
        begin(&live, CaptureQuery { filter: filter.into(), snaplen: Some(96), ..query(&["pf0vf1"]) })
    };
    let pieces = [begin("greater 1000 and ether[1000] = 0x42"), begin("less 100")];
    let [mut long, mut short] = [0, 1].map(|n| pieces[n].recv().unwrap());
    eventually("both frames are captured", || {
        a.send(b.vf.mac(), &[0x42; 1400]);
        a.send(b.vf.mac(), &[0x43; 60]);
        b.take();
        long.extend(pieces[0].try_iter().flatten());
        short.extend(pieces[1].try_iter().flatten());
        has(&long, &[0x42; 82]) && has(&short, &[0x43; 60])
    });
    assert!(!has(&long, &[0x42; 83]) && !has(&long, &[0x43; 60]) && !has(&short, &[0x42; 60]));
}

#[test]
fn capture_refuses_unknown_interfaces_and_invalid_filters() {
    let live = LiveHost::start();
    assert!(refusal(&live, &query(&["pf0vf9"])).contains("port pf0 has no function \"pf0vf9\"; it has "));
    let filter = CaptureQuery { filter: "tcp prot 80".into(), ..query(&[]) };
    assert!(refusal(&live, &filter).starts_with("filter: tcp prot 80: "), "{}", refusal(&live, &filter));
    let long = CaptureQuery { filter: "not ".repeat(1500), ..query(&[]) };
    assert!(refusal(&live, &long).contains("6000 bytes; the maximum is 4096"));
    let other = CaptureQuery { port: "pf7".into(), ..query(&[]) };
    assert!(refusal(&live, &other).contains("pf7"));
    assert_eq!(http::ask(&live.control_socket(), "GET", "/v1/ports/pf0/capture?what=1", "").status, 400);
}

#[test]
fn captures_without_a_reader_end_and_block_no_guest() {
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    let silent: Vec<_> = (0..4)
        .map(|_| {
            let mut client = UnixStream::connect(live.control_socket()).unwrap();
            client.write_all(b"GET /v1/ports/pf0/capture HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
            client.set_read_timeout(Some(PATIENCE)).unwrap();
            client.read_exact(&mut [0; 16]).unwrap();
            client
        })
        .collect();
    assert!(refusal(&live, &query(&[])).contains("4 captures are running, the most at a time"));
    for n in 0..200 {
        a.send(b.vf.mac(), &[n; 1400]);
        b.take();
    }
    a.send(b.vf.mac(), &[0x44; 60]);
    eventually("the guest is served", || b.take().contains(&vec![0x44; 60]));
    drop(silent);
    eventually("another capture can start", || {
        let begun = client::capture(&live.control_socket(), &query(&[]), &mut |_| ControlFlow::Break(()));
        begun.is_ok()
    });
}

#[test]
fn capture_of_a_virtio_port_has_the_frames_of_every_worker() {
    let live =
        LiveHost::with("[[port]]\nfamily = \"virtio\"\nvfs = 2\nworkers = 2\ndispatcher = \"spread\"\n");
    let second_worker = || live.show_port("pf0").workers[1].vfs.clone();
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    exchange(&mut a, &mut b);
    eventually("a VF moves to the second worker", || second_worker() == [1]);
    let pieces = begin(&live, query(&[]));
    let at_b = begin(&live, CaptureQuery { filter: "greater 200".into(), ..query(&["pf0vf1"]) });
    let [mut file, mut to_b] = [&pieces, &at_b].map(|pieces| pieces.recv().unwrap());
    eventually("the port's own thread serves all VFs", || second_worker().is_empty());
    eventually("frames of both VFs are captured", || {
        a.if_room(2, |a| [&[0x51; 300][..], &[0x54; 60]].iter().for_each(|payload| a.send(payload)));
        b.if_room(2, |b| {
            b.send(&[0x52; 100]);
            b.send_from([2, 6, 6, 6, 6, 6], a.mac(), &[0x53; 100]);
        });
        a.take();
        b.take();
        file.extend(pieces.try_iter().flatten());
        to_b.extend(at_b.try_iter().flatten());
        [[0x51; 100], [0x52; 100], [0x53; 100]].iter().all(|payload| has(&file, payload))
            && has(&to_b, &[0x51; 300])
    });
    assert!(has(&file, b"dropped: the source address is not the sender's (spoof check)"));
    assert!([&b"pf0vf0"[..], b"pf0vf1", b"uplink"].iter().all(|name| has(&file, name)));
    assert!(has(&to_b, b"pf0vf1") && !has(&to_b, b"pf0vf0"));
    assert!(![0x52, 0x53, 0x54].iter().any(|other| has(&to_b, &[*other; 60])), "other frames were captured");
    drop((pieces, at_b));
    // The host finds the closed capture by the next frame for it.
    eventually("the VF moves again", || {
        a.if_room(1, |a| a.send(&[0x55; 300]));
        b.take();
        second_worker() == [1]
    });
    exchange(&mut a, &mut b);
}

#[test]
fn large_packet_between_virtio_guests_is_captured_unsegmented() {
    use VirtioFeatures as V;
    let live = LiveHost::with("[[port]]\nfamily = \"virtio\"\nvfs = 2\n");
    let features = [V::CSUM, V::GUEST_CSUM, V::HOST_TSO4, V::GUEST_TSO4].map(|feature| feature.bits());
    let [mut a, mut b]: [VirtioGuest; 2] = [0, 1].map(|vf| {
        let stream = StreamSocket::connect(&live.socket(vf)).unwrap();
        VirtioGuest::boot_with_features(stream, vf, features.iter().sum())
    });
    exchange(&mut a, &mut b);
    let pieces = begin(&live, query(&["pf0vf1"]));
    let mut file = pieces.recv().unwrap();
    eventually("the packet is captured", || {
        a.if_room(1, |a| a.send_segmented(b.mac(), 3, 400));
        a.take();
        b.take();
        file.extend(pieces.try_iter().flatten());
        has(&file, &[7; 1200])
    });
}
