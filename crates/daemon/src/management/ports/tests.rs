//! Tests of a port whose thread panics: it is opened again, or given up.

use super::{FAILURES, lock};
use crate::RunningHost;
use crate::config::HostConfig;
use crate::control::client;
use crate::control::protocol::ControlRequest;
use crate::port::PortThreadCommand;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// Test client of a VF that waits for the reply to every request.
struct BlockingVfioClient(UnixStream);

impl BlockingVfioClient {
    fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut client = Self(stream);
        client.ask(1, b"\0\0\x01\0{}\0");
        client
    }

    /// Sends a vfio-user request and reads its reply.
    fn ask(&mut self, command: u16, body: &[u8]) -> Vec<u8> {
        let size = 16 + body.len() as u32;
        let header = [&[7, 0][..], &command.to_le_bytes(), &size.to_le_bytes(), &[0; 8]].concat();
        self.0.write_all(&[&header, body].concat()).unwrap();
        let mut header = [0; 16];
        self.0.read_exact(&mut header).unwrap();
        let size = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        let mut body = vec![0; size as usize - 16];
        self.0.read_exact(&mut body).unwrap();
        body
    }

    /// Reads the vendor and device ids of the VF from its configuration space, by VFIO_USER_REGION_READ.
    fn identity(&mut self) -> Vec<u8> {
        let access = [&0_u64.to_le_bytes()[..], &7_u32.to_le_bytes(), &4_u32.to_le_bytes()].concat();
        self.ask(9, &access)[16..].to_vec()
    }
}

/// Makes a port's thread panic. Returns false if the port has no thread any more.
fn panic_in(host: &RunningHost, name: &str) -> bool {
    let ports = host.ports().lock();
    ports.iter().find(|port| port.name == name).unwrap().handle.send(PortThreadCommand::Panic)
}

#[test]
fn port_whose_thread_panicked_is_reopened_with_its_clients() {
    let folder = tempfile::tempdir().unwrap();
    let file = HostConfig::parse("[[port]]\n[[port]]").unwrap();
    let host = RunningHost::start(HostConfig::check(file, folder.path()).unwrap()).unwrap();
    let connect = |vf: &str| BlockingVfioClient::connect(&folder.path().join(vf).join("vf.sock"));
    let (mut first, mut second) = (connect("pf0vf0"), connect("pf1vf0"));
    let identity = first.identity();
    for _ in 0..3 {
        assert!(panic_in(&host, "pf0"));
        assert_eq!(second.identity(), identity);
        // Sent while the port is being opened again, and answered afterwards.
        assert_eq!(first.identity(), identity);
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    let clients = |port: &str| {
        let status = host.ports().ask(port, PortThreadCommand::Status).unwrap();
        status.vfs.iter().filter(|vf| vf.function.peer.is_some()).count()
    };
    while clients("pf0") != 1 {
        assert!(Instant::now() < deadline);
    }
    assert_eq!(clients("pf1"), 1);
    assert!(host.is_whole());
    host.stop();
}

#[test]
fn removed_port_that_panics_while_it_ends_ends_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = HostConfig::parse("[[port]]\n[[port]]").unwrap();
    let host = RunningHost::start(HostConfig::check(file, folder.path()).unwrap()).unwrap();
    let mut client = BlockingVfioClient::connect(&folder.path().join("pf1vf0/vf.sock"));
    client.identity();
    let handle = host.ports().lock()[1].handle.clone();
    // The port finds both orders in one turn.
    let (go_on, until) = mpsc::channel();
    assert!(handle.send(PortThreadCommand::Stall(until)));
    host.ports().end("pf1");
    assert!(handle.send(PortThreadCommand::Panic));
    drop(go_on);
    host.ports().await_ends(|name| name == "pf1").unwrap();
    assert_eq!(client.0.read(&mut [0]).unwrap(), 0);
    assert!(host.vault().copy("pf1.journal").is_none() && host.vault().copy("pf0.journal").is_some());
    host.stop();
}

/// Tests a port that is given up before or after its removal.
#[test]
fn removed_port_that_was_given_up_leaves_nothing() {
    for removed_first in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let stream = folder.path().join("uplink.sock");
        let text = format!("[[port]]\n[[port]]\nuplink = {{ stream = {{ listen = {stream:?} }} }}\n");
        let file = HostConfig::parse(&text).unwrap();
        let host = RunningHost::start(HostConfig::check(file, folder.path()).unwrap()).unwrap();
        let socket = folder.path().join("pf1vf0/vf.sock");
        let mut client = BlockingVfioClient::connect(&socket);
        for _ in 0..FAILURES {
            assert!(panic_in(&host, "pf1"));
            // Sent while the port is being opened again, and answered afterwards.
            client.identity();
        }
        let handle = host.ports().lock()[1].handle.clone();
        // The port finds both orders in one turn.
        let (go_on, until) = mpsc::channel();
        assert!(handle.send(PortThreadCommand::Stall(until)));
        if removed_first {
            host.ports().end("pf1");
        }
        assert!(handle.send(PortThreadCommand::Panic));
        drop(go_on);
        let deadline = Instant::now() + Duration::from_secs(60);
        while !removed_first && !host.ports().is_given_up("pf1") {
            assert!(Instant::now() < deadline, "the port is not given up");
            std::thread::sleep(Duration::from_millis(10));
        }
        host.ports().end("pf1");
        assert_eq!(client.0.read(&mut [0]).unwrap(), 0, "the client waits, or its connection is reset");
        host.ports().await_ends(|name| name == "pf1").unwrap();
        assert!(host.vault().forget_others("pf1.", |_| false).is_empty());
        assert!(!socket.exists() && !stream.exists(), "a VMM would connect and wait");
        host.stop();
    }
}

/// systemd would kill a host whose other guests are served, and the next host would read the same disk.
#[test]
fn watchdog_skips_failed_ports_until_they_are_open_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = HostConfig::parse("[[port]]\n[[port]]\n[[port]]").unwrap();
    let host = RunningHost::start(HostConfig::check(file, folder.path()).unwrap()).unwrap();
    let mut impatient = host.ports().clone();
    impatient.patience = Duration::from_millis(500);
    // The reviver waits for the first port as for its disk. The second port waits for the reviver.
    let latest = Arc::clone(&host.ports().lock()[0].latest);
    let disk = lock(&latest);
    assert!(panic_in(&host, "pf0") && panic_in(&host, "pf1"));
    let deadline = Instant::now() + Duration::from_secs(60);
    while host.ports().lock()[..2].iter().any(|port| port.reopening.began().is_none()) {
        assert!(Instant::now() < deadline, "a failed port is not marked");
    }
    assert_eq!(host.ports().check(), Ok(()), "the watchdog waits for a disk");
    // A port that hangs by itself still counts.
    let (go_on, until) = mpsc::channel();
    host.ports().tell("pf2", PortThreadCommand::Stall(until)).unwrap();
    assert!(impatient.check().unwrap_err().contains("pf2"));
    drop((go_on, disk));
    while host.ports().reopening().is_some() {
        assert!(Instant::now() < deadline, "a port is not open again");
    }
    // They count again.
    let (go_on, until) = mpsc::channel();
    host.ports().tell("pf1", PortThreadCommand::Stall(until)).unwrap();
    // Another port may be slow on a busy machine.
    while !impatient.check().is_err_and(|port| port.contains("pf1")) {
        assert!(Instant::now() < deadline, "an open port does not count");
    }
    drop(go_on);
    host.stop();
}

#[test]
fn requests_to_all_ports_skip_a_port_that_crashed_too_often() {
    let folder = tempfile::tempdir().unwrap();
    let file = HostConfig::parse("[[port]]\n[[port]]").unwrap();
    let host = RunningHost::start(HostConfig::check(file, folder.path()).unwrap()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while panic_in(&host, "pf0") {
        assert!(Instant::now() < deadline, "the port is not given up");
        std::thread::sleep(Duration::from_millis(10));
    }
    // The request of the watchdog, the metrics and `softiov vf list`.
    let listed = client::ports(host.control_socket()).expect("the other port must answer");
    assert_eq!(listed.iter().map(|port| port.name.as_str()).collect::<Vec<_>>(), ["pf1"]);
    assert_eq!(host.check()(), Ok(()), "the watchdog waits for a port that was given up");
    let show = ControlRequest::PortShow { port: "pf0".into() };
    let refused = client::ask(host.control_socket(), show).unwrap_err().to_string();
    assert!(refused.contains("given up") && refused.contains("restart"), "{refused}");
    assert!(host.pause(Duration::from_secs(60)), "a port that was given up blocks the hand-over");
    host.resume();
    host.stop();
}
