//! Tests of a keeper process that takes no message for a while.

use super::FileDescriptorStore;
use keeper::{KeeperConnection, KeptFileDescriptors};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Store whose keeper is a socket of the test.
struct SlowKeeper {
    vault: FileDescriptorStore,
    /// The host's end of the socket, which the test fills.
    ours: UnixStream,
    keeper: UnixStream,
}

impl SlowKeeper {
    fn new() -> Self {
        let (ours, keeper) = UnixStream::pair().unwrap();
        let store = KeeperConnection::over(OwnedFd::from(ours.try_clone().unwrap())).unwrap();
        // A message that the keeper does not take fails at once, and not after two seconds.
        ours.set_nonblocking(true).unwrap();
        keeper.set_nonblocking(true).unwrap();
        Self { vault: FileDescriptorStore::new(KeptFileDescriptors::default(), Some(store)), ours, keeper }
    }

    /// Leaves no room for a message to the keeper.
    fn fill(&self) {
        while (&self.ours).write(b"STATUS=filler\n").is_ok() {}
    }

    /// Reads everything that the host has sent.
    fn read(&self) -> String {
        let (mut all, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            match (&self.keeper).read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => all.extend(&buffer[..length]),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    break;
                }
            }
        }
        String::from_utf8(all).unwrap()
    }

    fn keep(&self, name: &str) {
        self.vault.keep(name, self.keeper.as_fd()).unwrap();
    }
}

#[test]
fn message_that_the_keeper_did_not_take_is_sent_again() {
    let slow = SlowKeeper::new();
    slow.keep("held");
    slow.fill();
    slow.keep("late");
    slow.vault.forget("held");
    slow.vault.send_late();
    let before = slow.read();
    assert!(before.contains("FDSTORE=1\nFDNAME=held") && !before.contains("late"), "{before}");
    slow.vault.send_late();
    let after = slow.read();
    let messages = ["FDSTOREREMOVE=1\nFDNAME=held", "FDSTORE=1\nFDNAME=late"];
    assert!(messages.iter().all(|message| after.contains(message)), "{after}");
    slow.vault.send_late();
    assert_eq!(slow.read(), "", "each message is sent once");
}

#[test]
fn next_message_to_the_keeper_brings_the_late_ones() {
    for send in [(|slow| slow.keep("next")) as fn(&SlowKeeper), |slow| slow.vault.say("WATCHDOG=1")] {
        let slow = SlowKeeper::new();
        slow.fill();
        slow.keep("late");
        slow.read();
        send(&slow);
        assert!(slow.read().contains("FDNAME=late"));
    }
}

#[test]
fn late_descriptor_that_is_forgotten_needs_no_message() {
    let slow = SlowKeeper::new();
    slow.fill();
    slow.keep("late");
    slow.vault.forget("late");
    slow.read();
    slow.vault.send_late();
    assert_eq!(slow.read(), "");
}

#[test]
fn withheld_messages_beyond_the_time_are_sent_later() {
    let slow = SlowKeeper::new();
    slow.vault.withhold();
    ["a", "b"].into_iter().for_each(|name| slow.keep(name));
    assert!(!slow.vault.tell_withheld(Duration::ZERO));
    slow.vault.send_late();
    let sent = slow.read();
    assert!(["FDNAME=a", "FDNAME=b"].iter().all(|name| sent.contains(name)), "{sent}");
}
