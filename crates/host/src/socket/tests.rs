//! Tests sockets with real peers: stale and used files, file descriptors, peers that close or do not read.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, io::Read, thread};

use super::*;
use crate::test_support::in_own_process;
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn connected() -> (StreamSocket, StreamSocket) {
    StreamSocket::pair().unwrap()
}

fn recv(stream: &StreamSocket, len: usize) -> (SocketReceiveResult, Vec<u8>, ReceivedFds) {
    let (mut buffer, mut fds) = (vec![0; len], ReceivedFds::new());
    let received = stream.recv(&mut buffer, &mut fds).unwrap();
    if let SocketReceiveResult::Bytes(bytes) = received {
        buffer.truncate(bytes);
    }
    (received, buffer, fds)
}

#[test]
fn connected_sockets_report_process_and_user_of_their_peer() {
    let folder = folder();
    let path = folder.path().join("vf0.sock");
    let mut listener = SocketListener::bind(&path, SocketFilePermissions::PRIVATE).unwrap();
    assert!(listener.accept().unwrap().is_none(), "no client is pending yet");
    let client = StreamSocket::connect(&path).unwrap();
    let server = listener.accept().unwrap().unwrap();
    assert_eq!(client.send(b"hello", &[]).unwrap(), SocketSendResult::Bytes(5));
    assert_eq!(recv(&server, 64).1, b"hello");
    let peer = server.peer().unwrap();
    assert_eq!(peer.pid, std::process::id().cast_signed());
    assert_eq!(peer.uid, rustix::process::geteuid().as_raw());
}

#[test]
fn private_socket_file_is_removed_with_its_listener() {
    let folder = folder();
    let path = folder.path().join("vf0.sock");
    let listener = SocketListener::bind(&path, SocketFilePermissions::PRIVATE).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(listener.path(), path);
    drop(listener);
    assert!(!path.exists());
}

#[test]
fn socket_file_is_replaced_only_if_its_host_is_dead() {
    let folder = folder();
    let path = folder.path().join("vf0.sock");
    // Like a killed process, the standard library leaves the file.
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let first = SocketListener::bind(&path, SocketFilePermissions::PRIVATE).unwrap();
    let refused = SocketListener::bind(&path, SocketFilePermissions::PRIVATE).unwrap_err();
    assert!(matches!(&refused, SocketFileError::AddrInUse { path: named } if *named == path));
    assert!(refused.to_string().contains("vf0.sock"));
    StreamSocket::connect(first.path()).unwrap();
}

/// Two hosts that start at once: the socket of the first refuses connections until it listens.
#[test]
fn socket_that_another_host_is_creating_is_not_replaced() {
    let folder = folder();
    let path = folder.path().join("control.sock");
    let lock = crate::folder::lock(folder.path(), Duration::ZERO).unwrap();
    let first = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    bind(&first, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    let (sender, outcome) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| sender.send(SocketListener::bind(&path, SocketFilePermissions::PRIVATE)));
        // Time for a host that does not wait; the result does not depend on it.
        assert!(outcome.recv_timeout(Duration::from_millis(100)).is_err(), "the second host waits");
        listen(&first, 1).unwrap();
        drop(lock);
        let refused = outcome.recv().unwrap().unwrap_err();
        assert!(matches!(refused, SocketFileError::AddrInUse { .. }), "{refused}");
    });
    StreamSocket::connect(&path).unwrap();
}

#[test]
fn socket_path_with_a_full_backlog_is_reported_in_use() {
    let folder = folder();
    let path = folder.path().join("vf0.sock");
    let listener = SocketListener::bind(&path, SocketFilePermissions::PRIVATE).unwrap();
    let mut waiting = Vec::new();
    while let Ok(client) = StreamSocket::connect(&path) {
        waiting.push(client);
        assert!(waiting.len() < 100, "the backlog has a bound");
    }
    assert!(matches!(
        SocketListener::bind(&path, SocketFilePermissions::PRIVATE),
        Err(SocketFileError::AddrInUse { .. })
    ));
    drop(listener);
}

#[test]
fn file_other_than_a_stream_socket_is_not_replaced() {
    let folder = folder();
    let file = folder.path().join("notes.txt");
    fs::write(&file, "keep").unwrap();
    assert!(matches!(
        SocketListener::bind(&file, SocketFilePermissions::PRIVATE),
        Err(SocketFileError::NotASocket { .. })
    ));
    let mut kept = String::new();
    fs::File::open(&file).unwrap().read_to_string(&mut kept).unwrap();
    assert_eq!(kept, "keep");

    let link = folder.path().join("link");
    std::os::unix::fs::symlink("/nowhere", &link).unwrap();
    assert!(matches!(
        SocketListener::bind(&link, SocketFilePermissions::PRIVATE),
        Err(SocketFileError::NotASocket { .. })
    ));

    let datagram = folder.path().join("log.sock");
    let _owner = UnixDatagram::bind(&datagram).unwrap();
    assert!(matches!(
        SocketListener::bind(&datagram, SocketFilePermissions::PRIVATE),
        Err(SocketFileError::AddrInUse { .. })
    ));
}

#[test]
fn invalid_socket_path_is_refused_with_its_reason() {
    let folder = folder();
    let long = folder.path().join("x".repeat(120));
    let error = SocketListener::bind(&long, SocketFilePermissions::PRIVATE).unwrap_err();
    assert!(matches!(error, SocketFileError::PathTooLong { .. }));
    assert!(error.to_string().contains("longer than 107 bytes"), "{error}");
    let nowhere =
        SocketListener::bind(&folder.path().join("missing/vf0.sock"), SocketFilePermissions::PRIVATE)
            .unwrap_err();
    assert!(matches!(nowhere, SocketFileError::Folder(_)), "{nowhere}");
}

#[test]
fn dropped_listener_keeps_the_socket_file_of_the_next_process() {
    let folder = folder();
    let path = folder.path().join("vf0.sock");
    let old = SocketListener::bind(&path, SocketFilePermissions::PRIVATE).unwrap();
    fs::remove_file(&path).unwrap();
    let new = SocketListener::bind(&path, SocketFilePermissions::PRIVATE).unwrap();
    drop(old);
    assert!(path.exists());
    StreamSocket::connect(new.path()).unwrap();
}

#[test]
fn descriptors_arrive_with_their_bytes_and_close_on_exec() {
    let (one, other) = connected();
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    one.send(b"with", &[writer.as_fd(), reader.as_fd()]).unwrap();
    let (_, bytes, mut fds) = recv(&other, 64);
    assert_eq!((bytes.as_slice(), fds.len()), (&b"with"[..], 2));
    let received: Vec<OwnedFd> = fds.drain().collect();
    for fd in &received {
        assert!(rustix::io::fcntl_getfd(fd).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
    }
    rustix::io::write(&received[0], b"!").unwrap();
    let mut seen = [0];
    rustix::io::read(&reader, &mut seen).unwrap();
    assert_eq!(&seen, b"!");
}

#[test]
fn receive_call_ends_after_bytes_that_carry_descriptors() {
    let (one, other) = connected();
    let (_reader, writer) = rustix::pipe::pipe().unwrap();
    let send_three = || {
        one.send(b"before", &[]).unwrap();
        one.send(b"with", &[writer.as_fd()]).unwrap();
        one.send(b"after", &[]).unwrap();
    };
    send_three();
    let (_, bytes, fds) = recv(&other, 64);
    assert_eq!((bytes.as_slice(), fds.len()), (&b"beforewith"[..], 1));
    let (_, bytes, fds) = recv(&other, 64);
    assert_eq!((bytes.as_slice(), fds.len()), (&b"after"[..], 0));

    // A reader of one message at a time gets its descriptors with its first byte.
    send_three();
    for (len, expected, count) in [(6, "before", 0), (1, "w", 1), (3, "ith", 0), (5, "after", 0)] {
        let (_, bytes, fds) = recv(&other, len);
        assert_eq!((bytes.as_slice(), fds.len()), (expected.as_bytes(), count));
    }
}

#[test]
fn received_descriptors_beyond_max_fds_are_marked_and_closed() {
    let (one, other) = connected();
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let many = vec![writer.as_fd(); MAX_FDS];
    assert!(one.send(b"x", &[writer.as_fd(); MAX_FDS + 1]).is_err());
    one.send(b"x", &many).unwrap();
    one.send(b"y", &many[..1]).unwrap();
    let (mut buffer, mut fds) = ([0; 8], ReceivedFds::new());
    other.recv(&mut buffer, &mut fds).unwrap();
    assert_eq!((fds.len(), fds.truncated()), (MAX_FDS, false));
    other.recv(&mut buffer, &mut fds).unwrap();
    assert_eq!((fds.len(), fds.truncated()), (MAX_FDS + 1, true));
    fds.clear();
    assert!(fds.is_empty() && !fds.truncated());
    drop(writer);
    assert_eq!(rustix::io::read(&reader, &mut [0; 1]), Ok(0), "every copy of the write end is closed");
}

#[test]
fn send_of_more_than_max_fds_descriptors_is_marked_truncated() {
    let (one, other) = connected();
    let (_reader, writer) = rustix::pipe::pipe().unwrap();
    // Beyond the limit of `send`, as another program may send.
    let many = vec![writer.as_fd(); MAX_FDS + 8];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
    let mut control = rustix::net::SendAncillaryBuffer::new(&mut space);
    assert!(control.push(rustix::net::SendAncillaryMessage::ScmRights(&many)));
    let bytes = [io_slice(b"z")];
    rustix::net::sendmsg(&one, &bytes, &mut control, rustix::net::SendFlags::empty()).unwrap();
    let (received, _, fds) = recv(&other, 8);
    assert_eq!(received, SocketReceiveResult::Bytes(1));
    assert!(fds.truncated() && fds.len() == MAX_FDS + 8, "the receiver closes them");
}

fn io_slice(bytes: &[u8]) -> std::io::IoSlice<'_> {
    std::io::IoSlice::new(bytes)
}

#[test]
fn receive_from_a_closed_peer_returns_end_of_stream() {
    let (one, other) = connected();
    one.send(b"last words", &[]).unwrap();
    drop(one);
    assert_eq!(recv(&other, 64).1, b"last words");
    assert_eq!(recv(&other, 64).0, SocketReceiveResult::Closed);
    assert_eq!(other.send(b"x", &[]).unwrap(), SocketSendResult::Closed);

    let (one, other) = connected();
    other.send(b"never read", &[]).unwrap();
    drop(one);
    assert_eq!(recv(&other, 64).0, SocketReceiveResult::Closed, "a reset is an end too");
}

#[test]
fn full_socket_refuses_bytes_without_blocking() {
    let (one, other) = connected();
    let chunk = [7; 4096];
    let mut total = 0;
    let full = loop {
        match one.send(&chunk, &[]).unwrap() {
            SocketSendResult::Bytes(sent) => total += sent,
            end => break end,
        }
    };
    assert_eq!(full, SocketSendResult::WouldBlock);
    let mut seen = 0;
    while let (SocketReceiveResult::Bytes(bytes), ..) = recv(&other, 5000) {
        seen += bytes;
    }
    assert_eq!((seen, recv(&other, 1).0), (total, SocketReceiveResult::WouldBlock));
    assert!(one.send(&[], &[]).is_err());
}

#[test]
fn only_a_unix_stream_socket_is_adopted() {
    let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
    let stream = StreamSocket::adopt(one.into()).unwrap();
    assert_eq!(recv(&stream, 1).0, SocketReceiveResult::WouldBlock, "the adopted socket was blocking before");
    StreamSocket::adopt(other.into()).unwrap();
    let (datagram, _) = UnixDatagram::pair().unwrap();
    let (pipe, _) = rustix::pipe::pipe().unwrap();
    for fd in [datagram.into(), pipe] {
        assert!(StreamSocket::adopt(fd).is_err());
    }
}

/// Tests a configuration whose runtime directory was written with a doubled slash before.
#[test]
fn listening_socket_is_adopted_by_another_spelling_of_its_path() {
    let folder = folder();
    let (bound, path) = (folder.path().join(".//vf0.sock"), folder.path().join("vf0.sock"));
    let listener = SocketListener::bind(&bound, SocketFilePermissions::PRIVATE).unwrap();
    let copy = || listener.as_fd().try_clone_to_owned().unwrap();
    assert!(SocketListener::adopt(copy(), &path).is_some());
    assert!(SocketListener::adopt(copy(), &folder.path().join("vf1.sock")).is_none());
}

#[test]
fn ten_thousand_connections_leak_no_descriptor() {
    let folder = folder();
    let mut listener =
        SocketListener::bind(&folder.path().join("vf0.sock"), SocketFilePermissions::PRIVATE).unwrap();
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    for _ in 0..10_000 {
        let client = StreamSocket::connect(listener.path()).unwrap();
        client.send(b"half a message", &[writer.as_fd()]).unwrap();
        let server = listener.accept().unwrap().unwrap();
        drop(client);
        let (_, _, fds) = recv(&server, 4);
        assert_eq!(fds.len(), 1);
    }
    drop(writer);
    assert_eq!(rustix::io::read(&reader, &mut [0; 1]), Ok(0), "no copy of the write end is left");
}

fn turn_a_client_away_without_descriptors() {
    let folder = folder();
    let mut listener =
        SocketListener::bind(&folder.path().join("vf0.sock"), SocketFilePermissions::PRIVATE).unwrap();
    let turned_away = StreamSocket::connect(listener.path()).unwrap();
    let mut hoard = Vec::new();
    while let Ok(fd) = listener.as_fd().try_clone_to_owned() {
        hoard.push(fd);
    }
    let error = listener.accept().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
    assert_eq!(recv(&turned_away, 1).0, SocketReceiveResult::Closed);
    assert!(listener.accept().unwrap().is_none(), "no client is left pending");

    hoard.clear();
    let client = StreamSocket::connect(listener.path()).unwrap();
    let server = listener.accept().unwrap().unwrap();
    client.send(b"x", &[client.as_fd()]).unwrap();
    while let Ok(fd) = listener.as_fd().try_clone_to_owned() {
        hoard.push(fd);
    }
    let (received, _, fds) = recv(&server, 1);
    assert_eq!((received, fds.len(), fds.truncated()), (SocketReceiveResult::Bytes(1), 0, true));
}

#[test]
fn client_is_rejected_if_the_host_has_no_free_descriptor() {
    let name = "socket::tests::client_is_rejected_if_the_host_has_no_free_descriptor";
    let child = in_own_process(name, turn_a_client_away_without_descriptors).unwrap();
    assert!(child.is_none_or(|child| child.status.success()), "see the output of the test alone");
}

#[test]
fn hang_up_of_a_peer_is_detected_before_all_bytes_are_read() {
    let (one, other) = StreamSocket::pair().unwrap();
    one.send(b"last words", &[]).unwrap();
    assert!(!other.is_hung_up());
    drop(one);
    assert!(other.is_hung_up());
    let (one, other) = StreamSocket::pair().unwrap();
    rustix::net::shutdown(&one, rustix::net::Shutdown::Write).unwrap();
    assert!(other.is_hung_up() && !one.is_hung_up());
}
