//! Disconnects clients of the previous host process whose port is gone.

use super::ending::{HalfClosedConnections, MOST_OF_UNKNOWN};
use crate::clock::now;
use host::socket::StreamSocket;
use host::worker::BlockingWorker;
use std::thread::sleep;

/// Bytes that one visit reads from a disconnected client.
const BUFFER: usize = 64 << 10;

/// Shuts the connections of clients down for writing, and closes them once the clients are silent. Blocks for a second at most
/// for each [`MOST_OF_UNKNOWN`] clients. `closer` closes the sockets.
pub(crate) fn disconnect_orphans(mut orphans: Vec<StreamSocket>, closer: &BlockingWorker) {
    let mut buffer = vec![0; BUFFER];
    while !orphans.is_empty() {
        let mut connections = HalfClosedConnections::default();
        for orphan in orphans.drain(..orphans.len().min(MOST_OF_UNKNOWN)) {
            connections.add(None, orphan, closer.clone(), &mut buffer, now());
        }
        while let Some(next) = connections.drain(&mut buffer, now(), |_, _| {}) {
            sleep(next.since(now()));
        }
    }
}
