//! Tokens of the file descriptors in a port's poller. All parts of the port take them from this table, so that no two
//! are equal.

use pcie::MAX_VFS;

/// Maximum number of functions that a port offers: the PF and its VFs.
const FUNCTIONS: u64 = 1 + MAX_VFS as u64;

/// First token of the listening sockets, one for each function.
const LISTENERS: u64 = 0;
/// First token of the clients' connections, one for each function.
const CONNECTIONS: u64 = 100;
/// Token of the waker that reports commands and outcomes of blocking calls.
pub(in crate::port) const WAKER: u64 = 200;
/// Token of the uplink's file descriptors.
pub(in crate::port) const UPLINK: u64 = 201;
/// Token of the waker by which other workers of the port report frames in their trunks.
pub(in crate::port) const TRUNK: u64 = 202;
/// First token of the eventfds by which guests kick rings, [`RINGS`] for each function.
const KICKS: u64 = 1000;
/// Number of rings of a function: 16 queue pairs.
pub(in crate::port) const RINGS: u32 = 32;

const _: () = assert!(
    LISTENERS + FUNCTIONS <= CONNECTIONS
        && CONNECTIONS + FUNCTIONS <= WAKER
        && WAKER < UPLINK
        && UPLINK < TRUNK
        && TRUNK < KICKS
);

/// File descriptor that woke the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::port) enum WakeSource {
    /// The port has pending commands.
    Command,
    /// The uplink has frames to receive.
    Uplink,
    /// Other workers have put frames into their trunks to the port's own thread.
    Trunk,
    /// A client connects to the socket of this function.
    Listener(usize),
    /// The client of this function has sent messages, or accepts replies again.
    Connection(usize),
    /// The guest of this function has kicked a ring.
    Kick {
        /// Index of the function among the port's functions.
        place: usize,
        /// Number of the kicked ring.
        ring: u32,
    },
}

impl WakeSource {
    /// Returns true if only frames have arrived, for which the port needs no more than its own part of the card.
    pub(in crate::port) fn is_of_frames(self) -> bool {
        matches!(self, Self::Uplink | Self::Trunk | Self::Kick { .. })
    }

    /// Returns the event of a file descriptor's token.
    pub(in crate::port) fn of(token: u64) -> Self {
        match token {
            WAKER => Self::Command,
            UPLINK => Self::Uplink,
            TRUNK => Self::Trunk,
            KICKS.. => {
                let (place, ring) = ((token - KICKS) / u64::from(RINGS), (token - KICKS) % u64::from(RINGS));
                Self::Kick { place: place as usize, ring: ring as u32 }
            }
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

/// Returns the token of the eventfd by which the guest of a function kicks a ring.
pub(in crate::port) fn kick(index: usize, ring: u32) -> u64 {
    KICKS + index as u64 * u64::from(RINGS) + u64::from(ring)
}
