//! End of a wire that a test drives, opposite to a port.

use super::WireUplink;
use super::cable::{CAPACITY, WireRegistry};
use crate::port::engine::uplink::backend::{UplinkBackend, UplinkPollContext};
use host::poll::{Poller, ThreadWaker};
use i82576::Time;

/// Longest frame in bytes.
const LONGEST: usize = 10_000;

/// End of a wire without a port.
#[derive(Debug)]
pub(in crate::port) struct FarWireEnd {
    end: WireUplink,
    poller: Poller,
}

impl FarWireEnd {
    /// Takes an end of the wire of this name.
    pub(in crate::port) fn new(name: &str, wires: &WireRegistry) -> Self {
        let end = WireUplink::new(name, wires, ThreadWaker::new().unwrap(), Time::ZERO).unwrap();
        let mut far = Self { end, poller: Poller::new().unwrap() };
        far.end.join(UplinkPollContext { poller: &far.poller, token: 0, now: Time::ZERO }).unwrap();
        far
    }

    /// Sends a frame to the port. Returns false if the port has not taken its end, or the wire is full.
    pub(in crate::port) fn send(&mut self, frame: &[u8]) -> bool {
        self.end.follow(UplinkPollContext { poller: &self.poller, token: 0, now: Time::ZERO });
        let sent = self.end.transmit(frame);
        self.end.flush(Time::ZERO);
        sent
    }

    /// Returns the number of bytes in the ring to the port, which the port has not taken.
    pub(in crate::port) fn untaken(&self) -> usize {
        self.end.plug.as_ref().map_or(0, |plug| CAPACITY - plug.sender.slots())
    }

    /// Returns the next frame of the port.
    pub(in crate::port) fn receive(&mut self) -> Option<Vec<u8>> {
        let mut frame = vec![0; LONGEST];
        let length = self.end.receive(&mut frame)?;
        frame.truncate(length);
        Some(frame)
    }
}
