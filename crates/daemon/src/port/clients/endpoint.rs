//! Endpoint of a function for its clients: a listening socket to which VMMs connect, or the attempts to connect to a VMM's
//! socket.

use super::dialer_event::{LONGEST, SHORTEST};
use crate::config::file::SocketRole;
use host::socket::{SocketFilePermissions, SocketListener};
use i82576::Time;
use std::time::Duration;

/// Endpoint of a function for its clients.
#[derive(Debug)]
pub(in crate::port) enum FunctionEndpoint {
    /// The host listens, and VMMs connect.
    Listener(SocketListener),
    /// A VMM listens, and the host connects.
    Dialer(DialState),
}

impl FunctionEndpoint {
    /// Returns the listening socket, if the host listens.
    pub(in crate::port) fn listener(&self) -> Option<&SocketListener> {
        match self {
            Self::Listener(listener) => Some(listener),
            Self::Dialer(_) => None,
        }
    }

    /// Returns the listening socket for changes, if the host listens.
    pub(in crate::port) fn listener_mut(&mut self) -> Option<&mut SocketListener> {
        match self {
            Self::Listener(listener) => Some(listener),
            Self::Dialer(_) => None,
        }
    }

    /// Returns the state of the attempts to connect, if a VMM listens.
    pub(super) fn dial(&self) -> Option<&DialState> {
        match self {
            Self::Listener(_) => None,
            Self::Dialer(dial) => Some(dial),
        }
    }

    /// Returns the state of the attempts to connect for changes, if a VMM listens.
    pub(super) fn dial_mut(&mut self) -> Option<&mut DialState> {
        match self {
            Self::Listener(_) => None,
            Self::Dialer(dial) => Some(dial),
        }
    }

    /// Returns the role of the host at the function's socket.
    pub(in crate::port) fn role(&self) -> SocketRole {
        match self {
            Self::Listener(_) => SocketRole::Server,
            Self::Dialer(_) => SocketRole::Client,
        }
    }

    /// Leaves the file of a listening socket to the successor process.
    pub(in crate::port) fn leave(self) {
        if let Self::Listener(listener) = self {
            listener.leave();
        }
    }
}

/// State of a listening socket for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DoorState {
    /// The previous host process may have shut the door.
    Unknown,
    /// The door is shut, or the dialer has the order to shut it.
    Shut,
    /// The dialer has the order of this number to open the door.
    Opening(u64),
    /// Clients are accepted.
    Open,
}

/// State of the attempts to connect to a VMM's socket.
#[derive(Debug)]
pub(in crate::port) struct DialState {
    /// Users whose sockets may be connected to.
    pub(super) access: SocketFilePermissions,
    /// Number of the present order to connect; `None` while none is needed.
    pub(super) number: Option<u64>,
    /// Reason why the last attempt failed.
    pub(super) why: Option<String>,
    /// Time of the last connection to a VMM.
    connected: Option<Time>,
    /// Pause before the next order's first attempt.
    pause: Duration,
}

impl DialState {
    /// Creates the state before the first attempt.
    pub(super) fn new(access: SocketFilePermissions) -> Self {
        Self { access, number: None, why: None, connected: None, pause: Duration::ZERO }
    }

    /// Records a connection to the VMM.
    pub(super) fn note_connection(&mut self, now: Time) {
        (self.number, self.why, self.connected) = (None, None, Some(now));
    }

    /// Begins to connect under a number. Returns the pause before the first attempt, which grows while connections end
    /// soon: each costs the function a reset.
    pub(super) fn begin(&mut self, number: u64, now: Time) -> Duration {
        self.number = Some(number);
        if let Some(connected) = self.connected.take() {
            let lasted = now.since(connected) > LONGEST;
            self.pause = if lasted { SHORTEST } else { (2 * self.pause).clamp(SHORTEST, LONGEST) };
        }
        self.pause
    }
}

#[cfg(test)]
mod tests {
    use super::DialState;
    use host::socket::SocketFilePermissions;
    use i82576::Time;
    use std::time::Duration;

    #[test]
    fn pause_between_attempts_grows_while_connections_end_soon() {
        let (mut dial, mut now) = (DialState::new(SocketFilePermissions::PRIVATE), Time::ZERO);
        let mut pause_after = |lasted: u64| {
            let pause = dial.begin(0, now);
            dial.note_connection(now);
            now = now + Duration::from_millis(lasted);
            pause.as_millis()
        };
        let pauses = [0, 0, 0, 0, 0, 0, 5000, 0].map(&mut pause_after);
        assert_eq!(pauses, [0, 100, 200, 400, 800, 1000, 1000, 100]);
    }
}
