//! Tests the predecessor's part of a hand-over. Sockets of the test stand for its keeper and its successor, so that the
//! test decides when each of them speaks, and how it ends.

use crate::process::{CommandOutput, SOFTIOV, ServeProcess, softiov};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, Shutdown, SocketFlags,
    SocketType, recvmsg, send, shutdown, socketpair,
};
use rustix::process::Signal;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::thread;
use tempfile::{TempDir, tempdir};

/// Host with a stand-in for its keeper, which reads the host's messages only when the test does.
struct FakeKeeper {
    serve: ServeProcess,
    line: OwnedFd,
    _folder: TempDir,
}

impl FakeKeeper {
    fn start() -> Self {
        let folder = tempdir().unwrap();
        let (line, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        say(&line, "END=1");
        let mut command = Command::new(SOFTIOV);
        command.arg("serve").env("SOFTIOV_HERITAGE", "keeper").stdin(theirs);
        Self { serve: ServeProcess::spawn(&folder, &mut command), line, _folder: folder }
    }

    /// Asks the host for an upgrade, and plays keeper and successor by the function `play`, which gets the line to the
    /// host. Returns the command's output.
    fn upgrade(&self, play: impl FnOnce(&OwnedFd)) -> CommandOutput {
        thread::scope(|scope| {
            let upgrade = scope.spawn(|| softiov(self.serve.folder(), &["upgrade"]));
            let (_, successor) = hear_until(&self.line, &["SUCCEED=1"]);
            play(&successor.unwrap());
            upgrade.join().unwrap()
        })
    }

    /// Returns the texts of the host's messages up to the message `last`.
    fn heard(&self, last: &str) -> Vec<String> {
        hear_until(&self.line, &[last]).0
    }
}

fn say(line: &OwnedFd, text: &str) {
    send(line, text.as_bytes(), SendFlags::NOSIGNAL).unwrap();
}

/// Receives messages up to one that begins with a text of `last`. Returns their texts, and the last one's file descriptor.
#[track_caller]
fn hear_until(line: &OwnedFd, last: &[&str]) -> (Vec<String>, Option<OwnedFd>) {
    let mut texts = Vec::new();
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut buffer = [0; 4096];
        let into = &mut [IoSliceMut::new(&mut buffer)];
        let bytes = recvmsg(line, into, &mut control, RecvFlags::CMSG_CLOEXEC).unwrap().bytes;
        let fd = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        texts.push(String::from_utf8(buffer[..bytes].to_vec()).unwrap());
        let text = &texts[texts.len() - 1];
        assert!(!text.is_empty(), "the host has closed the line before {last:?}: {texts:?}");
        if last.iter().any(|last| text.starts_with(last)) {
            return (texts, fd);
        }
    }
}

/// Takes the descriptors over, up to the message that the successor is ready.
fn take_over(host: &OwnedFd) {
    say(host, "STARTED=1");
    hear_until(host, &["END=1"]);
}

/// If the keeper knew of the take-over, it would start another host when the successor ends, beside this one.
#[test]
fn host_resumes_if_its_successor_ends_before_it_may_serve() {
    let keeper = FakeKeeper::start();
    let said = keeper.upgrade(|host| {
        take_over(host);
        // As if the successor ended between its report and the reply.
        shutdown(host, Shutdown::Read).unwrap();
        say(host, "READY=1");
    });
    assert_eq!(said.status, Some(1), "{said:?}");
    assert!(said.err.contains("ended before it could serve"), "{said:?}");
    let heard = keeper.heard("ABANDON=1");
    assert!(!heard.iter().any(|text| text.starts_with("MAINPID=")), "{heard:?}");
    assert_eq!(softiov(keeper.serve.folder(), &["vf", "list"]).status, Some(0), "the host serves");
}

/// A keeper that has seen the successor's death before the message does not know which process is its host.
#[test]
fn host_that_has_handed_over_asks_for_another_one() {
    let mut keeper = FakeKeeper::start();
    let said = keeper.upgrade(|host| {
        take_over(host);
        say(host, "READY=1");
        hear_until(host, &["GO=1"]);
    });
    assert_eq!(said.status, Some(0), "{said:?}");
    keeper.heard("MAINPID=1");
    assert_eq!(keeper.serve.wait().code(), Some(75), "{}", keeper.serve.log());
}

/// The keeper sends later signals to the successor, but knows of no successor yet.
#[test]
fn signal_before_the_successors_start_precedes_the_hand_over() {
    for (signal, status) in [(Signal::TERM, 0), (Signal::INT, 0), (Signal::USR2, 75)] {
        let mut keeper = FakeKeeper::start();
        let said = keeper.upgrade(|host| {
            keeper.serve.signal(signal);
            say(host, "STARTED=1");
            // The host may have closed its end of the line already.
            let _ = send(host, b"READY=1", SendFlags::NOSIGNAL);
            // Where this succeeded, the descriptors that the host has sent would keep its line to the keeper open.
            let heard = hear_until(&keeper.line, &["ABANDON=1", "MAINPID="]).0;
            assert_eq!(heard.last().unwrap(), "ABANDON=1", "{signal:?}: {heard:?}");
        });
        assert_eq!(said.status, Some(1), "{signal:?}: {said:?}");
        assert_eq!(keeper.serve.wait().code(), Some(status), "{signal:?}: {}", keeper.serve.log());
    }
}
