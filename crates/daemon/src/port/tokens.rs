//! Tokens of the descriptors in a port's poller. All parts of the port take them from this table, so that no two are
//! equal.

use pcie::MAX_VFS;

/// Maximum number of functions that a port offers: the PF and its VFs.
const FUNCTIONS: u64 = 1 + MAX_VFS as u64;

/// First token of the listening sockets, one for each function.
const LISTENERS: u64 = 0;
/// First token of the clients' connections, one for each function.
const CONNECTIONS: u64 = 100;
/// Token of the waker that reports commands and outcomes of blocking calls.
pub(in crate::port) const WAKER: u64 = 200;
/// Token of the uplink's descriptors.
pub(in crate::port) const UPLINK: u64 = 201;

const _: () =
    assert!(LISTENERS + FUNCTIONS <= CONNECTIONS && CONNECTIONS + FUNCTIONS <= WAKER && WAKER < UPLINK);

/// Descriptor that woke the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::port) enum WakeSource {
    /// The port has pending commands.
    Command,
    /// The uplink has frames to receive.
    Uplink,
    /// A client connects to the socket of this function.
    Listener(usize),
    /// The client of this function has sent messages, or accepts replies again.
    Connection(usize),
}

impl WakeSource {
    /// Returns the event of a descriptor's token.
    pub(in crate::port) fn of(token: u64) -> Self {
        match token {
            WAKER => Self::Command,
            UPLINK => Self::Uplink,
            CONNECTIONS.. => Self::Connection((token - CONNECTIONS) as usize),
            _ => Self::Listener((token - LISTENERS) as usize),
        }
    }
}

/// Returns the token of a function's listening socket.
pub(in crate::port) fn listener(index: usize) -> u64 {
    LISTENERS + index as u64
}

/// Returns the token of a function's connection.
pub(in crate::port) fn connection(index: usize) -> u64 {
    CONNECTIONS + index as u64
}
