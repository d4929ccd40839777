//! Tests of disconnection by the host: the client reads pending replies, then the end of the stream, and never a reset,
//! on which QEMU would abort.

use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::machine::{BAR0, Vmm};
use crate::support::raw::{RawVfioUserConnection, load, message, version};
use crate::support::{PATIENCE, eventually};
use daemon::control::client::ask;
use daemon::control::protocol::{ControlAnswer, ControlRequest};
use i82576::register::vf;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vfio_user::wire::Command;

/// Result of a client's last read: the end of the stream, or a reset of the connection.
#[derive(Debug, PartialEq, Eq)]
enum LastReadResult {
    Stream,
    Reset,
}

/// Starts a client that rings a doorbell repeatedly, like a guest under traffic, until it reads the end of the stream.
fn busy_client(socket: &Path) -> JoinHandle<LastReadResult> {
    let mut raw = RawVfioUserConnection::greet(socket);
    raw.send(&load(1, 0, 8, 4));
    raw.reply().expect("the host answers a register read");
    let reader = raw.stream().try_clone().unwrap();
    let writer = raw.stream().try_clone().unwrap();
    std::thread::spawn(move || {
        let end = std::thread::spawn(move || read_end(reader));
        ring(writer, &end);
        end.join().unwrap()
    })
}

/// Sends register writes without replies in short intervals until the reader has ended, so that some are unread when
/// the host closes the connection.
fn ring(mut writer: UnixStream, end: &JoinHandle<LastReadResult>) {
    let mut body = crate::support::raw::access(0, vf::VTEIMS.into(), 4);
    body.extend([0; 4]);
    let write = message(9, Command::RegionWrite, 0x10, &body);
    while !end.is_finished() {
        if writer.write_all(&write).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn read_end(mut reader: UnixStream) -> LastReadResult {
    let mut buffer = [0; 256];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return LastReadResult::Stream,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return LastReadResult::Reset,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn ending_host_closes_connections_without_connection_reset() {
    for _ in 0..5 {
        let live = LiveHost::start();
        let clients: Vec<_> = (0..4).map(|vf| busy_client(&live.socket(vf))).collect();
        assert_eq!(live.stop(), Vec::<std::path::PathBuf>::new(), "a socket is left behind");
        for client in clients {
            assert_eq!(client.join().unwrap(), LastReadResult::Stream);
        }
    }
}

#[test]
fn guest_sees_its_link_down_before_the_host_ends() {
    let live = LiveHost::start();
    let mut guest = VfGuest::under_qemu(&live, 0);
    let ending = std::thread::spawn(move || live.stop());
    eventually("the guest sees its link down", || !guest.shows_link());
    drop(guest);
    ending.join().unwrap();
}

#[test]
fn host_ends_in_bounded_time_while_clients_stay() {
    let live = LiveHost::start();
    let client = busy_client(&live.socket(0));
    // One client is silent, and one is in the middle of a message.
    let _silent = RawVfioUserConnection::greet(&live.socket(1));
    let mut half = RawVfioUserConnection::greet(&live.socket(2));
    half.send(&version()[..7]);
    let began = Instant::now();
    live.stop();
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    assert_eq!(client.join().unwrap(), LastReadResult::Stream);
}

#[test]
fn client_with_a_protocol_error_reads_end_of_stream() {
    let live = LiveHost::start();
    for _ in 0..20 {
        let mut raw = RawVfioUserConnection::greet(&live.socket(0));
        // The message claims to be shorter than its header, and more messages follow.
        let mut broken = message(1, Command::RegionRead, 0, &[]);
        broken[4..8].copy_from_slice(&3u32.to_le_bytes());
        raw.send(&broken);
        for _ in 0..100 {
            if !raw.try_send(&load(2, 0, 8, 4)) {
                break;
            }
        }
        assert_eq!(read_end(raw.stream().try_clone().unwrap()), LastReadResult::Stream);
        drop(raw);
        eventually("the host has disconnected the client", || live.show(0).peer.is_none());
    }
}

#[test]
fn disconnecting_one_client_does_not_disturb_other_clients() {
    let live = LiveHost::start();
    let (mut b, mut c) = (VfGuest::under_qemu(&live, 1), VfGuest::under_qemu(&live, 2));
    let mut a = VfGuest::under_qemu(&live, 0);
    // The reply comes after the client's end, and the guest sees its link down before.
    let (socket, request) = (live.control_socket(), ControlRequest::VfDisconnect { vf: "pf0vf0".into() });
    let reply = std::thread::spawn(move || ask(&socket, request));
    eventually("the guest sees its link down", || !a.shows_link());
    let reply = reply.join().unwrap().unwrap();
    assert!(matches!(&reply, ControlAnswer::Vf(vf) if vf.peer.is_none()), "{reply:?}");
    exchange(&mut b, &mut c, 5);
    a.machine.vmm.load(BAR0, 8, &mut [0; 4]);
    assert!(a.machine.vmm.gone);
    drop(a);
    // The VF is available for the next client.
    let mut next = VfGuest::under_qemu(&live, 0);
    assert!(next.shows_link());
    exchange(&mut next, &mut b, 5);
    let refused = live.disconnect(6).expect_err("there is no client").to_string();
    assert!(refused.contains("no client is attached to the VF"), "{refused}");
}
