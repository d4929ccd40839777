//! Tests the keeper's shelf (file descriptors by name), the names, and hostile peers. Tests of the command `softiov`
//! cover the keeper's loop.

use super::connection::KeepLimit;
use super::message::{self, KeepFailure, KeeperMessage, KeptFileDescriptors};
use super::process::{ChildProcess, ProcessExitCause};
use super::*;
use host::confine::{SeccompMode, ThreadCapabilities, ThreadRole, ThreadSandbox};
use host::descriptors::is_same_file;
use host::eventfd::EventFd;
use host::poll::{PollInterest, Poller};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::thread;

fn pair() -> (KeeperConnection, OwnedFd) {
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    (KeeperConnection::over(ours).unwrap(), theirs)
}

/// Receives messages over the socket, and applies them to the kept file descriptors as a keeper process does. Returns
/// the names of the kept descriptors.
fn shelve(shelf: &mut KeptFileDescriptors, socket: &OwnedFd, messages: usize) -> Vec<String> {
    for _ in 0..messages {
        drop(shelf.apply(message::receive(socket).unwrap().unwrap()));
    }
    shelf.iter().map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn keeper_keeps_a_descriptors_open_file_until_forgotten() {
    let (store, keeper) = pair();
    let mut shelf = KeptFileDescriptors::default();
    let event = EventFd::new().unwrap();
    store.keep("a", event.as_fd()).unwrap();
    store.keep("b", event.as_fd()).unwrap();
    assert_eq!(shelve(&mut shelf, &keeper, 2), ["a", "b"]);
    event.signal();
    let kept = EventFd::adopt(shelf.take("a").unwrap()).unwrap();
    assert_eq!(kept.drain(), 1, "the count is the same");
    store.forget("b").unwrap();
    assert!(shelve(&mut shelf, &keeper, 1).is_empty());
}

#[test]
fn keeper_keeps_the_last_descriptor_stored_under_a_name() {
    let (store, keeper) = pair();
    let mut shelf = KeptFileDescriptors::default();
    let (first, second) = (EventFd::new().unwrap(), EventFd::new().unwrap());
    store.keep("a", first.as_fd()).unwrap();
    store.keep("a", second.as_fd()).unwrap();
    assert_eq!(shelve(&mut shelf, &keeper, 2), ["a"]);
    second.signal();
    assert_eq!(EventFd::adopt(shelf.take("a").unwrap()).unwrap().drain(), 1);
}

#[test]
fn invalid_descriptor_name_is_refused_by_sender_and_keeper() {
    let (store, keeper) = pair();
    let event = EventFd::new().unwrap();
    for name in ["", "a:b", "a\nFDSTOREREMOVE=1", &"n".repeat(256)] {
        assert!(store.keep(name, event.as_fd()).is_err(), "{name:?}");
    }
    let mut shelf = KeptFileDescriptors::default();
    for text in ["FDSTORE=1", "FDSTORE=1\nFDNAME=", "FDSTORE=1\nFDNAME=x:y", "FDNAME=x", "\u{0}"] {
        message::send(&store, text, Some(event.as_fd())).unwrap();
    }
    assert!(shelve(&mut shelf, &keeper, 5).is_empty());
    message::send(&store, "FDSTORE=1\nFDNAME=without", None).unwrap();
    assert!(shelve(&mut shelf, &keeper, 1).is_empty(), "no descriptor came with it");
}

#[test]
fn descriptors_beyond_the_keepers_limit_are_refused() {
    let (ours, keeper) = channel::pair().unwrap();
    let mut shelf = KeptFileDescriptors::default();
    let event = EventFd::new().unwrap();
    shelf.put("before", event.as_fd().try_clone_to_owned().unwrap());
    let limit = KeepLimit { most: 2, source: "by a limit" };
    let store = KeeperConnection::with_limit(ours, limit).unwrap().holding(&shelf);
    store.keep("a", event.as_fd()).unwrap();
    let refused = store.keep("b", event.as_fd()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::QuotaExceeded);
    assert!(
        refused.to_string().contains("\"b\": the keeper holds 2 file descriptors by a limit"),
        "{refused}"
    );
    store.keep("a", event.as_fd()).unwrap();
    assert_eq!(shelve(&mut shelf, &keeper, 2), ["a", "before"]);
    store.forget("before").unwrap();
    store.keep("b", event.as_fd()).unwrap();
    assert_eq!(shelve(&mut shelf, &keeper, 2), ["a", "b"]);
}

#[test]
fn keeper_names_the_reason_why_it_does_not_keep_a_descriptor() {
    let event = EventFd::new().unwrap();
    let message = |name: &str, fd: bool| KeeperMessage {
        text: format!("FDSTORE=1\nFDNAME={name}"),
        fd: fd.then(|| event.as_fd().try_clone_to_owned().unwrap()),
    };
    let mut shelf = KeptFileDescriptors::default();
    assert_eq!(shelf.refusal(&message("a", true)), None);
    assert_eq!(shelf.refusal(&message("a", false)), Some(KeepFailure::OpenFiles));
    assert_eq!(shelf.refusal(&message(&"n".repeat(256), true)), Some(KeepFailure::Name));
    assert!(shelf.apply(message("a", false)).is_none());
    assert!(shelf.is_empty());
    for (failure, part) in [
        (KeepFailure::OpenFiles, "LimitNOFILE"),
        (KeepFailure::Full, "32768"),
        (KeepFailure::Name, "1 to 255 bytes"),
    ] {
        assert!(failure.to_string().contains(part), "{failure}");
    }
}

#[test]
fn host_continues_after_its_keeper_socket_closes() {
    let (store, keeper) = pair();
    drop(store);
    assert!(message::receive(&keeper).unwrap().is_none());
    let (store, keeper) = pair();
    drop(keeper);
    assert!(store.say("READY=1").is_err());
}

/// An upgraded host speaks to the keeper of the earlier program, which runs on.
#[test]
fn messages_are_those_of_earlier_versions() {
    let (store, keeper) = pair();
    let event = EventFd::new().unwrap();
    let said = |socket: &OwnedFd| {
        let message = message::receive(socket).unwrap().unwrap();
        (message.text, message.fd.is_some())
    };
    store.keep("a", event.as_fd()).unwrap();
    assert_eq!(said(&keeper), ("FDSTORE=1\nFDNAME=a\nFDPOLL=0".into(), true));
    store.forget("a").unwrap();
    assert_eq!(said(&keeper), ("FDSTOREREMOVE=1\nFDNAME=a".into(), false));
    let successor = store.succeed().unwrap();
    assert_eq!(said(&keeper), ("SUCCEED=1".into(), true));
    store.abandon().unwrap();
    assert_eq!(said(&keeper), ("ABANDON=1".into(), false));
    drop(successor);

    let (ours, theirs) = channel::pair().unwrap();
    HandOverChannel::over(ours).unwrap().give([("a", event.as_fd())].into_iter()).unwrap();
    assert_eq!(said(&theirs), ("FDSTORE=1\nFDNAME=a".into(), true));
    assert_eq!(said(&theirs), ("END=1".into(), false));
    assert_eq!(STARTED, "STARTED");

    let mut command = Command::new("true");
    heritage::arrange(&mut command, heritage::PREDECESSOR, theirs);
    let variable = command.get_envs().find(|(name, _)| *name == "SOFTIOV_HERITAGE").unwrap();
    assert_eq!((variable.1.unwrap().to_str(), heritage::KEEPER), (Some("predecessor"), "keeper"));
}

/// Applies a message to the shelf, and the resulting messages to a model of systemd's store, which holds each open file
/// once, under the first name that came with it.
fn backed(
    shelf: &mut KeptFileDescriptors,
    store: &mut Vec<(String, OwnedFd)>,
    text: &str,
    fd: Option<&EventFd>,
) {
    let fd = fd.map(|fd| fd.as_fd().try_clone_to_owned().unwrap());
    let told = std::cell::RefCell::new(Vec::new());
    let change =
        super::backing::apply(shelf, message::KeeperMessage { text: text.into(), fd }, |text, fd| {
            told.borrow_mut().push((text.to_owned(), fd.map(|fd| fd.try_clone_to_owned().unwrap())));
        });
    assert_eq!(change.unstored, None);
    for (text, fd) in told.into_inner() {
        let name = message::value(&text, "FDNAME").unwrap();
        match fd {
            None => store.retain(|(kept, _)| kept != name),
            Some(fd) if store.iter().any(|(_, kept)| is_same_file(kept.as_fd(), fd.as_fd())) => {}
            Some(fd) => store.push((name.to_owned(), fd)),
        }
    }
}

#[test]
fn systemd_fd_store_holds_a_shared_open_file_once() {
    let (mut shelf, mut store) = (KeptFileDescriptors::default(), Vec::new());
    let (first, second) = (EventFd::new().unwrap(), EventFd::new().unwrap());
    let mut step = |text: &str, fd, expected: &[&str]| {
        backed(&mut shelf, &mut store, text, fd);
        let mut names: Vec<&str> = store.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, expected, "{text}");
        for (name, kept) in &store {
            for name in super::backing::split(name) {
                assert!(
                    is_same_file(shelf.get(&name).unwrap(), kept.as_fd()),
                    "{name} is the shelf's open file"
                );
            }
        }
    };
    step("FDSTORE=1\nFDNAME=a", Some(&first), &["a"]);
    step("FDSTORE=1\nFDNAME=b", Some(&first), &["a+b"]);
    step("FDSTORE=1\nFDNAME=b", Some(&first), &["a+b"]);
    step("FDSTORE=1\nFDNAME=c", Some(&second), &["a+b", "c"]);
    step("FDSTOREREMOVE=1\nFDNAME=a", None, &["b", "c"]);
    step("FDSTORE=1\nFDNAME=c", Some(&first), &["b+c"]);
    step("FDSTORE=1\nFDNAME=b", Some(&second), &["b", "c"]);
    step("FDSTOREREMOVE=1\nFDNAME=b", None, &["c"]);
    step("FDSTOREREMOVE=1\nFDNAME=c", None, &[]);
}

#[test]
fn systemd_fd_store_returns_names_with_its_separator() {
    let (mut shelf, mut store) = (KeptFileDescriptors::default(), Vec::new());
    let (first, second) = (EventFd::new().unwrap(), EventFd::new().unwrap());
    // A tap may be called `vm+1`.
    let names = ["pf0.tap.vm+1", "a%2b1", "+", "%", "%25+"];
    for name in names {
        backed(&mut shelf, &mut store, &format!("FDSTORE=1\nFDNAME={name}"), Some(&first));
    }
    backed(&mut shelf, &mut store, "FDSTORE=1\nFDNAME=x+y", Some(&second));
    let mut returned: Vec<Vec<String>> =
        store.iter().map(|(name, _)| super::backing::split(name).collect()).collect();
    returned.iter_mut().for_each(|names| names.sort_unstable());
    let mut expected: Vec<String> = names.map(str::to_owned).to_vec();
    expected.sort_unstable();
    assert_eq!(returned, [expected, vec!["x+y".to_owned()]]);
    backed(&mut shelf, &mut store, "FDSTOREREMOVE=1\nFDNAME=x+y", None);
    assert_eq!(store.len(), 1, "the name is found again");
}

#[test]
fn file_with_too_many_names_for_systemd_is_reported() {
    let mut shelf = KeptFileDescriptors::default();
    let event = EventFd::new().unwrap();
    let mut apply = |name: &str| {
        let fd = Some(event.as_fd().try_clone_to_owned().unwrap());
        let message = KeeperMessage { text: format!("FDSTORE=1\nFDNAME={name}"), fd };
        super::backing::apply(&mut shelf, message, |_, _| {}).unstored
    };
    assert_eq!(apply(&"a".repeat(200)), None);
    assert_eq!(apply(&"b".repeat(200)), Some(KeepFailure::JoinedNames));
}

#[test]
#[expect(clippy::zombie_processes, reason = "it is waited for by its handle")]
fn keeper_stores_descriptors_under_its_seccomp_filter() {
    let child = Command::new("sleep").arg("60").spawn().unwrap();
    let child = ChildProcess::of(pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap());
    let event = EventFd::new().unwrap();
    let confinement = ThreadSandbox { seccomp: SeccompMode::On, capabilities: ThreadCapabilities::Unchanged };
    let gives_up = confinement.prepare(ThreadRole::Keeper).unwrap();
    let (store, socket) = pair();
    let keeper = || {
        gives_up.apply().unwrap();
        let (mut shelf, mut systemd) = (KeptFileDescriptors::default(), Vec::new());
        for name in ["a", "b"] {
            store.keep(name, event.as_fd()).unwrap();
            let text = message::receive(&socket).unwrap().unwrap().text;
            backed(&mut shelf, &mut systemd, &text, Some(&event));
        }
        assert_eq!(systemd.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a+b"]);
        let mut poller = Poller::new().unwrap();
        poller.add(&child, 7, PollInterest::READ).unwrap();
        assert_eq!(child.death().unwrap(), None);
        child.signal(Signal::KILL);
        assert_eq!(poller.wait(None).unwrap().next().map(|event| event.token), Some(7));
        assert_eq!(child.death().unwrap(), Some(ProcessExitCause::Signal(9)));
    };
    // Restricts this thread alone, which ends with the test.
    thread::scope(|scope| scope.spawn(keeper).join().unwrap());
}

#[test]
fn host_that_does_not_receive_its_descriptors_is_killed() {
    let mut host = Command::new("sleep").arg("60").spawn().unwrap();
    let handle = ChildProcess::of(pidfd_open(Pid::from_child(&host), PidfdFlags::empty()).unwrap());
    let (ours, _theirs) = channel::pair().unwrap();
    let mut shelf = KeptFileDescriptors::default();
    // More messages than the socket of a host that reads none of them can hold.
    for number in 0..600 {
        shelf.put(&format!("fd{number}"), File::open("/dev/null").unwrap().into());
    }
    let given = handle.give(&HandOverChannel::over(ours).unwrap(), &shelf);
    assert_eq!(given.unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(host.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
}
