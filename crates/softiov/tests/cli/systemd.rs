//! Tests a host whose descriptors systemd keeps. A socket of the test stands for systemd: it stores the descriptors as
//! systemd's file descriptor store does, and passes them to the successor process.

use crate::process::{PATIENCE, SOFTIOV, ServeProcess, softiov};
use crate::survival::{LONG, address, attach};
use host::descriptors::is_same_file;
use host::test_support::pass;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Signal, kill_process};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::{TempDir, tempdir};

/// Timeout of systemd's watchdog that the test sets for the host.
const WATCHDOG: Duration = Duration::from_millis(200);

/// Descriptors in systemd's file descriptor store, each with its name. Several descriptors may share a name, but the
/// store has each open file only once.
type StoredDescriptors = Vec<(String, OwnedFd)>;

/// Stand-in for systemd: a socket at `$NOTIFY_SOCKET`, and a thread that stores file descriptors and counts notices.
struct FakeSystemd {
    path: PathBuf,
    /// Number of watchdog notices that the stand-in for systemd has received.
    words: Arc<AtomicUsize>,
    thread: JoinHandle<StoredDescriptors>,
}

impl FakeSystemd {
    fn start(folder: &Path, kept: StoredDescriptors) -> Self {
        let path = folder.join("notify");
        let _ = std::fs::remove_file(&path);
        let socket = UnixDatagram::bind(&path).unwrap();
        let words = Arc::new(AtomicUsize::new(0));
        let heard = Arc::clone(&words);
        Self { path, words, thread: thread::spawn(move || keep(&socket, kept, &heard)) }
    }

    /// Waits until `more` further watchdog notices have arrived.
    #[track_caller]
    fn hear(&self, more: usize) {
        let (from, deadline) = (self.words.load(SeqCst), Instant::now() + PATIENCE);
        while self.words.load(SeqCst) < from + more {
            assert!(Instant::now() < deadline, "no watchdog notice arrives");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the host has sent no watchdog notice for a second.
    #[track_caller]
    fn wait_for_silence(&self) {
        let deadline = Instant::now() + PATIENCE;
        let mut before = usize::MAX;
        while before != self.words.load(SeqCst) {
            assert!(Instant::now() < deadline, "watchdog notices still arrive");
            before = self.words.load(SeqCst);
            thread::sleep(Duration::from_secs(1));
        }
    }

    /// Stops the stand-in after it has received all messages, and returns the stored file descriptors.
    fn stop(self) -> StoredDescriptors {
        UnixDatagram::unbound().unwrap().send_to(b"END", &self.path).unwrap();
        self.thread.join().unwrap()
    }
}

fn keep(socket: &UnixDatagram, mut kept: StoredDescriptors, words: &AtomicUsize) -> StoredDescriptors {
    loop {
        let (text, fd) = receive(socket);
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        match (value("FDNAME"), fd) {
            _ if text == "END" => return kept,
            _ if value("WATCHDOG").is_some() => drop(words.fetch_add(1, SeqCst)),
            (Some(name), None) if value("FDSTOREREMOVE").is_some() => kept.retain(|(known, _)| known != name),
            // systemd passes what came last first.
            (Some(name), Some(fd))
                if !kept.iter().any(|(_, known)| is_same_file(known.as_fd(), fd.as_fd())) =>
            {
                kept.insert(0, (name.to_owned(), fd));
            }
            _ => {}
        }
    }
}

fn receive(socket: &UnixDatagram) -> (String, Option<OwnedFd>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut buffer = [0; 4096];
    let into = &mut [IoSliceMut::new(&mut buffer)];
    let bytes = recvmsg(socket, into, &mut control, RecvFlags::CMSG_CLOEXEC).unwrap().bytes;
    let fd = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    (String::from_utf8(buffer[..bytes].to_vec()).unwrap(), fd)
}

/// Starts `softiov serve` as a unit's main process, with the stored file descriptors, and a stand-in for systemd.
fn start(folder: &TempDir, kept: StoredDescriptors) -> (FakeSystemd, ServeProcess) {
    let (names, fds): (Vec<_>, Vec<_>) =
        kept.iter().map(|(name, fd)| (name.as_str(), fd.try_clone().unwrap())).unzip();
    let mut command = Command::new(SOFTIOV);
    pass(&mut command, &fds).unwrap();
    command.env("LISTEN_FDS", fds.len().to_string()).env("LISTEN_FDNAMES", names.join(":"));
    let systemd = FakeSystemd::start(folder.path(), kept);
    command.env("NOTIFY_SOCKET", &systemd.path).env("FDSTORE", "1024").arg("serve");
    command.env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string());
    let serve = ServeProcess::spawn(folder, &mut command);
    (systemd, serve)
}

/// Returns the line of `vf show` with the number of resets of VF pf0vf0.
fn resets(serve: &ServeProcess) -> String {
    let said = softiov(serve.folder(), &["vf", "show", "pf0vf0"]);
    let line = said.out.lines().find(|line| line.trim().starts_with("resets "));
    line.unwrap_or_else(|| panic!("{said:?}")).to_owned()
}

/// Runs a TCP flow while the unit ends by `end` and starts again. Returns the resets of pf0vf0 before the end and after
/// the start.
fn resets_around(end: impl FnOnce(&mut ServeProcess)) -> [String; 2] {
    let folder = tempdir().unwrap();
    let (systemd, mut serve) = start(&folder, Vec::new());
    let [a, _b] = [0, 1].map(|vf| attach(serve.folder(), vf));
    let before = resets(&serve);
    thread::scope(|scope| {
        let flow = scope.spawn(|| a.send_tcp(address(1), LONG));
        thread::sleep(Duration::from_millis(50));
        end(&mut serve);
        drop(serve);
        let (_systemd, serve) = start(&folder, systemd.stop());
        let flow = flow.join().unwrap();
        assert!(flow.is_ok(), "{flow:?}\n{}", serve.log());
        [before, resets(&serve)]
    })
}

#[test]
fn restarted_systemd_unit_keeps_guests_without_a_vf_reset() {
    let [before, after] = resets_around(|serve| {
        assert_eq!(serve.end(Signal::USR2).code(), Some(75), "the status that requests a restart");
    });
    assert_eq!(before, after);
}

#[test]
fn killed_systemd_unit_keeps_its_guests() {
    resets_around(ServeProcess::kill_all);
}

#[test]
fn systemd_watchdog_is_notified_only_by_a_host_that_replies() {
    let folder = tempdir().unwrap();
    let (systemd, serve) = start(&folder, Vec::new());
    systemd.hear(3);
    let [host] = serve.hosts()[..] else { panic!("not one host") };
    kill_process(host, Signal::STOP).unwrap();
    systemd.wait_for_silence();
    kill_process(host, Signal::CONT).unwrap();
    systemd.hear(3);
    assert_eq!(softiov(serve.folder(), &["upgrade"]).status, Some(0));
    systemd.hear(3);
}
