//! Door of a listening socket that the thread of `dialer` keeps shut. An attempt to shut it may fail, and is repeated then.

use super::dialer_event::{DialerEvent, LONGEST, SHORTEST};
use host::socket::ListenerDoor;
use i82576::Time;
use pcie::Function;
use std::time::Duration;

/// Door of a function's listening socket that is shut, or is being shut.
#[derive(Debug)]
pub(super) struct ShutDoor {
    pub(super) function: Function,
    /// Number of the order to shut the door.
    pub(super) number: u64,
    door: ListenerDoor,
    /// Time of the next attempt to shut the door; `None` once it is shut.
    due: Option<Time>,
    /// Interval to the attempt after that. It doubles with each failed attempt.
    interval: Duration,
    /// Reason of the last failed attempt, as the port was told.
    told: Option<String>,
}

impl ShutDoor {
    /// Creates the state of a door that is to be shut now.
    pub(super) fn new(function: Function, number: u64, door: ListenerDoor, now: Time) -> Self {
        Self { function, number, door, due: Some(now), interval: SHORTEST, told: None }
    }

    /// Returns the time of the next attempt, or `None` if the door is shut.
    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Makes an attempt that is due. Returns the clients that were in the socket's queue, and a reason for a failure that the
    /// port does not know.
    pub(super) fn attempt(&mut self, now: Time) -> Vec<DialerEvent> {
        if self.due.is_none_or(|due| now < due) {
            return Vec::new();
        }
        let mut clients = Vec::new();
        let result = self.door.shut(&mut clients);
        let mut events = Vec::new();
        if !clients.is_empty() {
            events.push(DialerEvent::Drained(clients));
        }
        let Err(error) = result else {
            self.due = None;
            return events;
        };
        self.due = Some(now + self.interval);
        self.interval = (self.interval * 2).min(LONGEST);
        let why = error.to_string();
        if self.told.as_ref() != Some(&why) {
            self.told = Some(why.clone());
            events.push(DialerEvent::Unshut(why));
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::socket::{SocketFilePermissions, SocketListener, StreamSocket};
    use std::fs::rename;
    use std::io::ErrorKind;

    #[test]
    fn door_that_stays_open_is_shut_later() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("vf.sock"), folder.path().join("moved"));
        let listener = SocketListener::bind(&path, SocketFilePermissions::PRIVATE).unwrap();
        let _early = StreamSocket::connect(&path).unwrap();
        rename(&path, &moved).unwrap();
        let mut door = ShutDoor::new(Function::Vf(0), 1, listener.door().unwrap(), Time::ZERO);
        let events = door.attempt(Time::ZERO);
        assert!(
            matches!(&events[..], [DialerEvent::Drained(clients), DialerEvent::Unshut(_)] if clients.len() == 1),
            "{events:?}"
        );
        assert!(door.attempt(Time::ZERO).is_empty(), "the next attempt is not due yet");
        assert_eq!(door.due(), Some(Time::ZERO + SHORTEST));
        assert!(door.attempt(Time::ZERO + SHORTEST).is_empty(), "the reason is known");
        rename(&moved, &path).unwrap();
        assert!(door.attempt(Time::ZERO + LONGEST).is_empty());
        assert_eq!(door.due(), None);
        assert_eq!(StreamSocket::connect(&path).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
