//! Tests of the start of a host, and of its end: in order, or after a defect.

use super::RunningHost;
use crate::config::HostConfig;
use crate::control::client;
use crate::port::PortThreadCommand;
use crate::vault::FileDescriptorStore;
use host::socket::StreamSocket;
use keeper::{KeeperConnection, KeptFileDescriptors};
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn failed_start_leaves_clients_to_the_predecessor() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[[port]]\n[[port]]\nuplink = { replay = \"/missing.pcap\" }\n";
    let config = HostConfig::check(HostConfig::parse(text).unwrap(), folder.path()).unwrap();
    let (vault, (kept, mut client)) = (FileDescriptorStore::default(), UnixStream::pair().unwrap());
    // No journal names this client, so the first port disconnects it once the host starts.
    vault.keep("pf0.#7", kept.as_fd()).unwrap();
    client.set_nonblocking(true).unwrap();
    assert!(RunningHost::inherit(config, &vault).is_err());
    assert!(vault.copy("pf0.#7").is_some());
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn host_starts_without_tcp_if_the_tcp_token_or_address_fails() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (listen, token) = (taken.local_addr().unwrap(), folder.path().join("token"));
    for there in [false, true] {
        if there {
            std::fs::write(&token, "0123456789abcdef").unwrap();
            let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(&token, private).unwrap();
        }
        let text =
            format!("http = {{ listen = \"{listen}\", token_file = \"{}\" }}\n[[port]]", token.display());
        let config = HostConfig::check(HostConfig::parse(&text).unwrap(), folder.path()).unwrap();
        let host = RunningHost::start(config).unwrap();
        assert_eq!(client::ports(host.control_socket()).unwrap().len(), 1);
        host.stop();
    }
}

/// Host with a keeper process, a socket of the test, and a client of the VF `pf0vf0`.
struct KeptHost {
    host: RunningHost,
    vault: FileDescriptorStore,
    client: UnixStream,
    folder: tempfile::TempDir,
    _keeper: UnixStream,
}

impl KeptHost {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (keeper, theirs) = UnixStream::pair().unwrap();
        let store = KeeperConnection::over(theirs.into()).unwrap();
        let vault = FileDescriptorStore::new(KeptFileDescriptors::default(), Some(store));
        let config = HostConfig::check(HostConfig::parse("[[port]]").unwrap(), folder.path()).unwrap();
        let host = RunningHost::inherit(config, &vault).unwrap();
        let client = UnixStream::connect(folder.path().join("pf0vf0/vf.sock")).unwrap();
        client.set_nonblocking(true).unwrap();
        let status = || host.ports().ask("pf0", PortThreadCommand::Status).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while status().vfs.iter().all(|vf| vf.function.peer.is_none()) {
            assert!(Instant::now() < deadline, "the client is not accepted");
        }
        Self { host, vault, client, folder, _keeper: keeper }
    }

    /// Returns true if the next host finds the sockets of the control interface and of the VF, and the port's journal.
    fn leaves_all(vault: &FileDescriptorStore, folder: &Path) -> bool {
        let kept =
            ["control", "pf0.journal", "pf0.listen.pf0vf0"].iter().all(|name| vault.copy(name).is_some());
        let files = ["control/control.sock", "pf0vf0/vf.sock"].iter().all(|file| folder.join(file).exists());
        kept && files
    }
}

/// The end in order would take the VFs from all guests, although the keeper starts another host.
#[test]
fn host_with_a_defect_leaves_its_clients_to_the_next_host() {
    let KeptHost { host, vault, mut client, folder, _keeper } = KeptHost::start();
    let ports = host.ports().clone();
    // As `softiov serve` does once a thread has ended unexpectedly.
    drop(host);
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock, "the client is connected");
    assert!(!ports.have_ended());
    assert!(KeptHost::leaves_all(&vault, folder.path()));
    // A process would end now.
    ports.end_all();
    ports.join(Duration::from_secs(60));
}

#[test]
fn host_that_stops_disconnects_its_clients_under_a_keeper_too() {
    let KeptHost { host, vault, mut client, folder, _keeper } = KeptHost::start();
    host.stop();
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    assert!(!KeptHost::leaves_all(&vault, folder.path()));
}

/// The next host serves the guests only after this process has ended.
#[test]
fn host_that_leaves_waits_for_no_blocked_thread() {
    let KeptHost { host, vault, client: _client, folder, _keeper } = KeptHost::start();
    let (go_on, until) = mpsc::channel();
    host.ports().tell("pf0", PortThreadCommand::Stall(until)).unwrap();
    let ports = host.ports().clone();
    let (left, leaves) = mpsc::channel();
    let leaving = thread::spawn(move || {
        host.leave(Duration::ZERO);
        left.send(()).unwrap();
    });
    assert_eq!(leaves.recv_timeout(Duration::from_secs(60)), Ok(()), "the host waits for a blocked thread");
    leaving.join().unwrap();
    assert!(!ports.have_ended());
    assert!(KeptHost::leaves_all(&vault, folder.path()));
    // A process would end now.
    drop(go_on);
    ports.end_all();
    ports.join(Duration::from_secs(60));
}

/// The kernel ends no process with a thread in such a call, and guests would wait for the end.
#[test]
fn host_settles_only_after_the_file_calls_of_its_threads() {
    let KeptHost { host, client: _client, folder: _folder, vault: _vault, _keeper } = KeptHost::start();
    let (calls, (began, begun), (disk, hung)) =
        (host.ports().file_calls().clone(), mpsc::channel(), mpsc::channel::<()>());
    let using = thread::spawn(move || {
        let call = || {
            began.send(()).unwrap();
            let _ = hung.recv();
        };
        calls.marker("pf0-record", Path::new("/disk/pf0.pcapng")).during(call);
    });
    begun.recv().unwrap();
    let reason = host.settle(Instant::now()).unwrap_err().to_string();
    assert!(reason.contains("pf0-record has waited for /disk/pf0.pcapng"), "{reason}");
    // The disk may never answer, and an administrator may change the port meanwhile.
    assert_eq!(client::ports(host.control_socket()).expect("requests are carried out").len(), 1);
    drop(disk);
    using.join().unwrap();
    // A client may have its answer before its request has ended.
    let deadline = Instant::now() + Duration::from_secs(60);
    while let Err(delay) = host.settle(Instant::now()) {
        assert!(Instant::now() < deadline, "{delay}");
        thread::sleep(Duration::from_millis(1));
    }
    host.resume();
    host.stop();
}

/// The kernel refuses a client for which the queue has no room; curl and Go's dialer do not try again.
#[test]
fn control_clients_are_queued_while_the_host_hands_over() {
    let KeptHost { host, client: _client, folder: _folder, vault: _vault, _keeper } = KeptHost::start();
    assert_eq!(host.settle(Instant::now()), Ok(()));
    let connect = |_| StreamSocket::connect(host.control_socket());
    let clients: Result<Vec<_>, _> = (0..100).map(connect).collect();
    assert_eq!(clients.expect("a client is refused").len(), 100);
    host.resume();
    host.stop();
}
