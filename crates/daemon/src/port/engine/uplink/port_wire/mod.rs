//! Wire between two ports of one host: a ring for each direction, with one port that sends and one that receives.
//! The frame path takes no lock and makes no system call, except to wake a sleeping port (`engine/bell.rs`).
//!
//! The rings are this process's own memory. When a port's thread fails, its end stays in the cable until the port
//! is opened again. After a hand-over or a crash the successor creates new rings. Frames in a ring are lost then,
//! as on a cable that is unplugged.

pub(super) mod cable;
#[cfg(test)]
pub(super) mod far_end;
#[cfg(test)]
mod span;
#[cfg(test)]
mod tests;

use super::addresses::PortAddresses;
use super::backend::{UplinkBackend, UplinkPollContext};
use super::state::UplinkStateCounters;
use crate::control::uplink::{UplinkState, UplinkStatus};
use crate::port::engine::bell::{RingWakeFlag, RingWakeReceiver, announce, may_sleep};
use crate::ring;
use cable::{PortPairWire, WireEndRings, WireRegistry};
use host::poll::{PollInterest, Poller, ThreadWaker};
use i82576::Time;
use plane::guard::SharedAddresses;
use rtrb::Consumer;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// End of a wire that one port uses as its uplink.
#[derive(Debug)]
pub(super) struct WireUplink {
    name: String,
    cable: Arc<PortPairWire>,
    /// Addresses of the wire. `None` while the port has no end of it.
    addresses: Option<Arc<PortAddresses>>,
    /// Rings of the wire's end that this port has taken. `None` if two other ports have both ends.
    plug: Option<WireEndRings>,
    /// Waker of the port at this end of the wire.
    port: ThreadWaker,
    /// Value of [`PortPairWire::given_back`] at the last attempt to take an end of the wire.
    asked: usize,
    /// True if frames were sent on the wire since the last flush.
    put: bool,
    /// True once another port has used the wire's other end.
    met: bool,
    record: UplinkStateCounters,
}

impl WireUplink {
    pub(super) fn new(name: &str, wires: &WireRegistry, port: ThreadWaker, now: Time) -> io::Result<Self> {
        let cable = wires.get(name)?;
        Ok(Self {
            name: name.to_owned(),
            addresses: None,
            cable,
            plug: None,
            port,
            asked: 0,
            put: false,
            met: false,
            record: UplinkStateCounters::new("wire", UplinkState::Gone, now),
        })
    }

    /// Takes an end of the configured wire, if one is free.
    fn plug_in(&mut self, UplinkPollContext { poller, token, .. }: UplinkPollContext<'_>) -> io::Result<()> {
        self.asked = self.cable.given_back.load(Ordering::Acquire);
        let Some(plug) = self.cable.take(&self.port) else { return Ok(()) };
        let side = plug.side;
        self.plug = Some(plug);
        self.addresses = Some(Arc::new(PortAddresses::on(&self.cable.addresses)));
        poller.add(self.cable.sides[side].bell.waker(), token, PollInterest::READ)
    }

    fn unplug(&mut self) {
        if let Some(plug) = self.plug.take() {
            self.addresses = None;
            self.cable.give_back(plug);
        }
    }

    /// Returns the uplink's state: up if another port uses the wire's other end, else gone.
    fn state(&self) -> UplinkState {
        let other = |plug: &WireEndRings| self.cable.sides[1 - plug.side].taken.load(Ordering::Acquire);
        if self.plug.as_ref().is_some_and(other) { UplinkState::Up } else { UplinkState::Gone }
    }
}

impl Drop for WireUplink {
    fn drop(&mut self) {
        self.unplug();
    }
}

/// Receiving side of a wire's end, which prepares the port's sleep by the bell.
struct WireReceiver<'a> {
    bell: &'a RingWakeFlag,
    receiver: &'a Consumer<u8>,
}

impl RingWakeReceiver for WireReceiver<'_> {
    fn want(&self, wanted: bool) {
        self.bell.want(wanted);
    }

    fn is_empty(&self) -> bool {
        self.receiver.is_empty()
    }
}

impl UplinkBackend for WireUplink {
    fn addresses(&self) -> Option<Arc<dyn SharedAddresses>> {
        let addresses = self.addresses.clone()?;
        Some(addresses)
    }

    fn join(&mut self, at: UplinkPollContext<'_>) -> io::Result<()> {
        self.plug_in(at)?;
        self.record.set_state(self.state(), at.now);
        Ok(())
    }

    fn leave_poller(&mut self, poller: &Poller) {
        if let Some(plug) = &self.plug {
            // A failure means that the poller does not watch the bell, which is the goal.
            let _ = poller.remove(self.cable.sides[plug.side].bell.waker());
        }
        self.unplug();
    }

    fn set_readable(&mut self) {
        if let Some(plug) = &self.plug {
            self.cable.sides[plug.side].bell.waker().drain();
        }
    }

    fn follow(&mut self, at: UplinkPollContext<'_>) -> bool {
        let was_plugged = self.plug.is_some();
        if self.plug.is_none()
            && self.cable.given_back.load(Ordering::Acquire) != self.asked
            && let Err(error) = self.plug_in(at)
        {
            tracing::error!(wire = self.name, %error, "cannot wait for frames of the wire");
            self.unplug();
        }
        let (before, state) = (self.record.state(), self.state());
        if before == state {
            return self.plug.is_some() != was_plugged;
        }
        self.record.set_state(state, at.now);
        if state == UplinkState::Up && std::mem::replace(&mut self.met, true) {
            self.record.reattached();
        }
        true
    }

    fn link(&self) -> bool {
        self.record.state() == UplinkState::Up
    }

    fn status(&self, now: Time) -> Option<UplinkStatus> {
        Some(self.record.status(self.name.clone(), now))
    }

    fn transmit(&mut self, frame: &[u8]) -> bool {
        let there = self.record.state() == UplinkState::Up;
        let Some(plug) = self.plug.as_mut().filter(|_| there) else {
            self.record.drops.no_link += 1;
            return false;
        };
        let sent = ring::put(&mut plug.sender, [frame]);
        self.put |= sent;
        self.record.drops.no_room += u64::from(!sent);
        sent
    }

    fn flush(&mut self, _: Time) {
        if std::mem::take(&mut self.put)
            && let Some(plug) = &self.plug
        {
            announce(&self.cable.sides[1 - plug.side].bell);
        }
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        ring::take(&mut self.plug.as_mut()?.receiver, into)
    }

    fn may_sleep(&mut self) -> bool {
        let Some(plug) = &self.plug else { return true };
        may_sleep(&WireReceiver { bell: &self.cable.sides[plug.side].bell, receiver: &plug.receiver })
    }
}
