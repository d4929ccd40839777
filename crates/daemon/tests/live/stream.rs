//! Tests of a stream socket as the uplink, with peers that follow the protocol and peers that do not. The framing has
//! unit tests.

use crate::support::alone::{alone, assert_asleep};
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::qemu::QemuClient;
use crate::support::{PATIENCE, eventually};
use daemon::control::uplink::{UplinkState, UplinkStatus};
use daemon::settings::{PortSettings, VfSettings};
use host::socket::SocketListener;
use i82576::MacAddress;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// Ethernet address of a station beyond the uplink.
const STATION: [u8; 6] = [2, 0, 0, 0, 0, 0x77];

fn connecting(path: &Path) -> String {
    format!("[[port]]\nuplink.stream.connect = {path:?}\n")
}

fn listening(path: &Path) -> String {
    format!("[[port]]\nuplink.stream.listen = {path:?}\n")
}

fn uplink(live: &LiveHost) -> UplinkStatus {
    live.port().uplink_status.expect("the port has an uplink")
}

/// Process at the other end of the stream uplink.
struct StreamPeer(UnixStream);

impl StreamPeer {
    fn accept(listener: &UnixListener) -> Self {
        Self::new(listener.accept().unwrap().0)
    }

    fn connect(path: &Path) -> Self {
        Self::new(UnixStream::connect(path).unwrap())
    }

    fn new(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    fn frame(&mut self) -> Vec<u8> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).unwrap();
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut frame).unwrap();
        frame
    }

    fn send(&mut self, frame: &[u8]) {
        self.0.write_all(&[&(frame.len() as u32).to_be_bytes(), frame].concat()).unwrap();
    }

    /// Sends a frame to a guest and receives one from it over the stream, and checks both.
    fn reaches(&mut self, guest: &mut VfGuest<QemuClient>) {
        let mac = guest.vf.mac().0;
        self.send(&[&mac[..], &STATION, &[0x88, 0xb5], &[9; 46]].concat());
        assert_eq!(guest.receive(), [[9; 46]]);
        assert!(guest.send(MacAddress(STATION), &[7; 46]));
        let frame = loop {
            let frame = self.frame();
            if frame[..6] == STATION {
                break frame;
            }
        };
        assert_eq!(frame, [&STATION[..], &mac, &[0x88, 0xb5], &[7; 46]].concat());
    }
}

struct StreamSocketFolder {
    folder: TempDir,
}

impl StreamSocketFolder {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("peer.sock")
    }
}

#[test]
fn stream_uplink_connects_to_its_peer_and_reconnects() {
    let world = StreamSocketFolder::new();
    let live = LiveHost::with(&connecting(&world.path()));
    assert!(!live.port().link, "a link without a peer");
    assert_eq!(uplink(&live).state, UplinkState::Gone);
    let listener = UnixListener::bind(world.path()).unwrap();
    let mut peer = StreamPeer::accept(&listener);
    eventually("the link comes up", || live.port().link);
    assert_eq!(live.port().uplink, format!("stream:connect={}", world.path().display()));
    let mut guest = VfGuest::under_qemu(&live, 0);
    peer.reaches(&mut guest);
    for round in 1..=2 {
        drop(peer);
        eventually("the link goes down", || !live.port().link);
        peer = StreamPeer::accept(&listener);
        eventually("the link comes up again", || live.port().link);
        guest.wait_for_link();
        peer.reaches(&mut guest);
        assert_eq!(uplink(&live).reattached, round);
    }
}

#[test]
fn rates_and_number_of_vfs_change_while_the_port_has_no_link() {
    let world = StreamSocketFolder::new();
    let text = |rates: [u32; 2]| {
        let [first, second] = rates;
        let vfs =
            format!("[{{ index = 0, max_tx_rate = {first} }}, {{ index = 1, max_tx_rate = {second} }}]");
        format!("{}vfs = 2\nvf = {vfs}\n", connecting(&world.path()))
    };
    let listener = UnixListener::bind(world.path()).unwrap();
    let mut live = LiveHost::with(&text([100, 200]));
    let mut peer = StreamPeer::accept(&listener);
    let mut guest = VfGuest::under_qemu(&live, 0);
    drop((peer, listener));
    std::fs::remove_file(world.path()).unwrap();
    eventually("the link goes down", || !live.port().link);
    let change = VfSettings { max_tx_rate: Some(50), ..VfSettings::default() };
    assert_eq!(live.change(1, change).settings.max_tx_rate, Some(50));
    for vfs in [1, 2] {
        let port = live.change_port(PortSettings { vfs: Some(vfs), ..PortSettings::default() }).unwrap();
        assert_eq!(port.vfs.len(), usize::from(vfs));
    }
    let resets = live.show(0).mailbox.resets;
    live.hand_over(&text([70, 0]));
    assert_eq!(live.show(0).settings.max_tx_rate, Some(70));
    let listener = UnixListener::bind(world.path()).unwrap();
    peer = StreamPeer::accept(&listener);
    guest.wait_for_link();
    peer.reaches(&mut guest);
    assert_eq!(live.show(0).mailbox.resets, resets, "the hand-over has reset the VF");
}

#[test]
fn stream_uplink_counters_survive_an_added_impairment() {
    let world = StreamSocketFolder::new();
    let live = LiveHost::keeping(&listening(&world.path()));
    let mut peer = StreamPeer::connect(&world.path());
    eventually("the link comes up", || live.port().link);
    let mut guest = VfGuest::under_qemu(&live, 0);
    let passes = |peer: &mut StreamPeer, guest: &mut VfGuest<QemuClient>| {
        for length in [46, 500] {
            peer.send(&[&guest.vf.mac().0[..], &STATION, &[0x88, 0xb5], &vec![9; length]].concat());
            assert_eq!(guest.receive(), [vec![9; length]]);
            assert!(guest.send(MacAddress(STATION), &vec![7; length]));
        }
    };
    passes(&mut peer, &mut guest);
    let counts = || {
        let UplinkStatus { rx, tx, .. } = uplink(&live);
        [rx.packets, rx.bytes, tx.packets, tx.bytes]
    };
    let once = [2, 60 + 514, 2, 60 + 514];
    eventually("both directions are counted", || counts() == once);
    live.apply(&(listening(&world.path()) + "impair = { delay_us = 1000 }\n")).unwrap();
    passes(&mut peer, &mut guest);
    eventually("the earlier counts are kept", || counts() == once.map(|count| 2 * count));
}

#[test]
fn second_stream_peer_waits_until_the_first_ends() {
    let world = StreamSocketFolder::new();
    let live = LiveHost::with(&listening(&world.path()));
    let mut first = StreamPeer::connect(&world.path());
    eventually("the link comes up", || live.port().link);
    let mut guest = VfGuest::under_qemu(&live, 0);
    first.reaches(&mut guest);
    let mut second = StreamPeer::connect(&world.path());
    first.reaches(&mut guest);
    drop(first);
    eventually("the second peer is accepted", || uplink(&live).reattached == 1);
    guest.wait_for_link();
    second.reaches(&mut guest);
    live.stop();
    assert!(!world.path().exists(), "the socket is left behind");
}

#[test]
fn stream_peer_that_does_not_read_blocks_no_guest() {
    let world = StreamSocketFolder::new();
    let live = LiveHost::with(&listening(&world.path()));
    let mut peer = StreamPeer::connect(&world.path());
    eventually("the link comes up", || live.port().link);
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    eventually("frames are dropped", || {
        a.send(MacAddress(STATION), &[1; 1400]);
        a.vf.clean(&mut a.machine);
        uplink(&live).drops.no_room > 10
    });
    exchange(&mut a, &mut b, 20);
    // The frames that arrive late are whole.
    let mut late = 0;
    loop {
        let frame = peer.frame();
        if frame[..6] == STATION {
            assert_eq!(frame[14..], [1; 1400]);
            late += 1;
        }
        if late == 50 {
            break;
        }
    }
    assert_eq!(uplink(&live).state, UplinkState::Up);
}

#[test]
fn waiting_for_half_a_stream_frame_uses_no_processor_time() {
    alone("stream::waiting_for_half_a_stream_frame_uses_no_processor_time", || {
        let world = StreamSocketFolder::new();
        let live = LiveHost::with(&listening(&world.path()));
        let mut peer = StreamPeer::connect(&world.path());
        eventually("the link comes up", || live.port().link);
        let mut guest = VfGuest::under_qemu(&live, 0);
        let frame = [&guest.vf.mac().0[..], &STATION, &[0x88, 0xb5], &[3; 1000]].concat();
        let bytes = [&(frame.len() as u32).to_be_bytes()[..], &frame].concat();
        for cut in [1, 3, 4, 10, 500] {
            peer.0.write_all(&bytes[..cut]).unwrap();
            if cut == 500 {
                assert_asleep("with half a frame");
            }
            std::thread::sleep(Duration::from_millis(20));
            peer.0.write_all(&bytes[cut..]).unwrap();
            assert_eq!(guest.receive(), [[3; 1000]], "cut at {cut}");
        }
        drop(peer);
        assert_asleep("without the peer");
    });
}

#[test]
fn stream_peer_with_an_impossible_frame_length_is_disconnected() {
    let world = StreamSocketFolder::new();
    let live = LiveHost::with(&listening(&world.path()));
    let mut peer = StreamPeer::connect(&world.path());
    eventually("the link comes up", || live.port().link);
    let mut guest = VfGuest::under_qemu(&live, 0);
    // 10,000 empty frames at once, and one that is longer than the card accepts.
    peer.0.write_all(&[0; 40_000]).unwrap();
    peer.send(&[1; 60_000]);
    peer.reaches(&mut guest);
    assert_eq!(uplink(&live).drops.malformed, 10_001);
    for length in [70_000, u32::MAX] {
        peer.0.write_all(&[&length.to_be_bytes()[..], &[1; 100]].concat()).unwrap();
        assert_eq!(read_to_the_end(peer), 0, "the peer got more data");
        peer = StreamPeer::connect(&world.path());
        eventually("the link comes up again", || live.port().link);
        guest.wait_for_link();
        peer.reaches(&mut guest);
    }
    assert_eq!(uplink(&live).drops.malformed, 10_003);
    assert!(live.is_whole());
}

/// Reads the rest of a disconnected peer's stream, and returns the number of bytes.
fn read_to_the_end(mut peer: StreamPeer) -> usize {
    let mut rest = Vec::new();
    // The host closes with unread bytes, so the read may end with an error.
    let _ = peer.0.read_to_end(&mut rest);
    rest.len()
}

#[test]
fn stream_uplink_is_added_and_removed_on_a_running_port() {
    let world = StreamSocketFolder::new();
    let live = LiveHost::keeping("[[port]]\n");
    let mut guest = VfGuest::under_qemu(&live, 0);
    for _ in 0..2 {
        live.apply(&listening(&world.path())).unwrap();
        let mut peer = StreamPeer::connect(&world.path());
        eventually("the link comes up", || live.port().link && uplink(&live).state == UplinkState::Up);
        guest.wait_for_link();
        peer.reaches(&mut guest);
        live.apply("[[port]]\n").unwrap();
        assert!(!world.path().exists());
        assert!(live.port().link && live.port().uplink_status.is_none());
    }
}

/// Waits until the host keeps the listening socket of the first port's uplink at `path` for a successor process.
fn wait_until_kept(live: &LiveHost, path: &Path) {
    eventually("the listening socket is kept", || {
        live.kept("pf0.stream").is_some_and(|fd| SocketListener::adopt(fd, path).is_some())
    });
}

#[test]
fn changed_listening_stream_uplink_is_handed_over() {
    let world = StreamSocketFolder::new();
    let [met, first, second] = ["met", "first", "second"].map(|name| world.folder.path().join(name));
    for before in [connecting(&met), listening(&first)] {
        let mut live = LiveHost::keeping(&before);
        live.apply(&listening(&second)).unwrap();
        wait_until_kept(&live, &second);
        assert!(!first.exists(), "the former socket is left behind");
        let mut peer = StreamPeer::connect(&second);
        eventually("the link comes up", || live.port().link);
        let mut guest = VfGuest::under_qemu(&live, 0);
        peer.reaches(&mut guest);
        live.hand_over(&listening(&second));
        peer = StreamPeer::connect(&second);
        eventually("the link comes up again", || live.port().link);
        guest.wait_for_link();
        peer.reaches(&mut guest);
        live.stop();
        assert!(!second.exists(), "the socket is left behind");
    }
}

#[test]
fn refused_change_keeps_the_listening_socket_in_use() {
    const OTHER: &str = "[[port]]\nvfs = 1\n";
    let world = StreamSocketFolder::new();
    let [first, second, third] = ["first", "second", "third"].map(|name| world.folder.path().join(name));
    let mut live = LiveHost::keeping(&(listening(&first) + OTHER));
    let refused = |live: &LiveHost, path: &Path| {
        let text = listening(path) + OTHER + "uplink.interface = \"missing0\"\n";
        live.apply(&text).expect_err("the other port's uplink is missing");
        assert!(!path.exists(), "the socket of the refused change is left behind");
    };
    refused(&live, &second);
    wait_until_kept(&live, &first);
    live.apply(&(listening(&second) + OTHER)).unwrap();
    refused(&live, &third);
    wait_until_kept(&live, &second);
    live.hand_over(&(listening(&second) + OTHER));
    let _peer = StreamPeer::connect(&second);
    eventually("the link comes up", || live.port().link);
}
