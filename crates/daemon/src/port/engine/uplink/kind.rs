//! The trait of a kind of uplink, and what one is made with. Left out: the kinds.

use super::wire::cable::Wires;
use super::xdp::programs::Programs;
use crate::control::uplink::UplinkStatus;
use crate::vault::PortVault;
use host::confine::Prepared;
use host::poll::{Poller, Waker};
use i82576::Time;
use nic::{Sealed, Uncut};
use std::fmt;
use std::io;

/// Poller of a port with the token of the uplink's descriptors, and the time.
#[derive(Debug, Clone, Copy)]
pub(in crate::port) struct At<'a> {
    pub(in crate::port) poller: &'a Poller,
    pub(in crate::port) token: u64,
    pub(in crate::port) now: Time,
}

/// One kind of uplink, as the port's thread has it.
pub(super) trait Kind: fmt::Debug + Send {
    /// The port waits on the uplink from now on: its descriptors, if it has any, are reported by the poller.
    fn join(&mut self, _at: At<'_>) -> io::Result<()> {
        Ok(())
    }

    /// The port waits on it no more.
    fn part(&mut self, _poller: &Poller) {}

    /// A descriptor was reported.
    fn set_readable(&mut self) {}

    /// Takes note of what has happened to the uplink; `false` if nothing has. The poller reports what takes the place of a
    /// descriptor.
    fn follow(&mut self, _at: At<'_>) -> bool {
        false
    }

    /// Frames can pass.
    fn link(&self) -> bool;

    /// How it is; `None` if there is nothing.
    fn status(&self, now: Time) -> Option<UplinkStatus>;

    /// Takes a frame, to go out at the next flush at the latest; `false` if it is lost, which is counted.
    fn transmit(&mut self, frame: &[u8]) -> bool;

    /// Whether it takes packets that are not cut into segments yet.
    fn takes_uncut(&self) -> bool {
        false
    }

    /// Takes such a packet, as [`Kind::transmit`] takes a frame.
    fn transmit_uncut(&mut self, _packet: &[u8], _uncut: &Uncut) -> bool {
        false
    }

    /// Sends what it has taken.
    fn flush(&mut self, _now: Time) {}

    /// When it is to be flushed again, though nothing is reported.
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// The next frame, if there is one.
    fn receive(&mut self, into: &mut [u8]) -> Option<usize>;

    /// What is known of the checksum of the frame that was received last.
    fn sealed(&self) -> Option<Sealed> {
        None
    }

    /// The port is about to sleep; `false` if there is something to be received by now. What comes later wakes it.
    fn may_sleep(&mut self) -> bool {
        true
    }

    /// What it has made in the file system goes with it from now on.
    fn own(&mut self) {}

    /// A successor goes on with what it has made.
    fn leave(&mut self) {}

    /// The port has another uplink: what is kept for a successor is given up. May take its time.
    fn retire(self: Box<Self>) {}
}

/// What an uplink is made with.
pub(crate) struct Maker<'a> {
    pub(crate) vault: &'a PortVault,
    /// Wakes the port when something has happened to its uplink.
    pub(crate) port: &'a Waker,
    /// What the thread gives up that watches it.
    pub(crate) watcher: &'a Prepared,
    /// The wires between the host's ports.
    pub(crate) wires: &'a Wires,
    /// The programs for interfaces.
    pub(crate) programs: &'a Programs,
    /// The time at which it is made.
    pub(crate) now: Time,
}
