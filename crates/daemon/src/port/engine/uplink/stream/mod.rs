//! UNIX stream socket to another process that carries frames: QEMU's `-netdev stream`, passt, a script.
//!
//! The port's thread never waits for the peer. Frames that the peer does not read are buffered up to a bound, and
//! then dropped. A peer that sends an invalid length is disconnected, since the stream cannot be parsed behind it.
//! Without a peer the port's link is down, and the next peer brings it up (`dial`).
//!
//! A successor of this process listens on the same socket, or connects again, so that a peer sees the stream end. A
//! frame that one process has read in part cannot be continued by another.

mod dial;
mod framing;

use super::UplinkError;
use super::backend::{UplinkBackend, UplinkPollContext, UplinkResources};
use super::state::UplinkStateCounters;
use crate::config::uplink::StreamUplinkSocket as Place;
use crate::control::uplink::{UplinkState, UplinkStatus};
use dial::DialerHandle;
pub(super) use dial::{LISTENER, renew_access};
pub use framing::frames_of_stream;
use framing::{StreamReceiveBuffer, StreamSendBuffer, StreamUplinkItem};
use host::poll::{PollInterest, Poller};
use host::socket::{ReceivedFds, SocketFilePermissions, SocketReceiveResult, SocketSendResult, StreamSocket};
use i82576::Time;
use std::io;

/// Maximum number of invalid frames that one round of the port's loop skips. A peer that sends only such frames must
/// not delay the port.
const PASSED_OVER: u32 = 64;

/// Stream uplink of a port: a UNIX stream socket to another process that carries frames.
#[derive(Debug)]
pub(super) struct StreamUplink {
    place: Place,
    peer: Option<StreamSocket>,
    /// Reason for which the port has to disconnect the stream's peer, if there is one.
    broken: Option<&'static str>,
    /// True if the stream's socket may hold bytes.
    readable: bool,
    /// True while the port waits for room in the stream's socket.
    waits_for_room: bool,
    inbox: StreamReceiveBuffer,
    outbox: StreamSendBuffer,
    /// File descriptors that came with the stream's bytes, which a valid peer never sends.
    fds: ReceivedFds,
    passed_over: u32,
    met: bool,
    record: UplinkStateCounters,
    dial: DialerHandle,
}

impl StreamUplink {
    /// Opens a stream uplink: starts to connect to a peer, or to accept one. `access` restricts who may connect to a
    /// listening socket.
    pub(super) fn open(
        place: &Place,
        access: SocketFilePermissions,
        with: &UplinkResources<'_>,
    ) -> Result<Self, UplinkError> {
        Ok(Self {
            place: place.clone(),
            peer: None,
            broken: None,
            readable: false,
            waits_for_room: false,
            inbox: StreamReceiveBuffer::default(),
            outbox: StreamSendBuffer::default(),
            fds: ReceivedFds::new(),
            passed_over: 0,
            met: false,
            record: UplinkStateCounters::new("stream", UplinkState::Gone, with.now),
            dial: DialerHandle::start(place, access, with)?,
        })
    }

    fn path(&self) -> String {
        let (Place::Connect(path) | Place::Listen(path)) = &self.place;
        path.display().to_string()
    }

    fn begin(&mut self, peer: StreamSocket, poller: &Poller, token: u64) {
        if let Err(error) = poller.add(&peer, token, PollInterest::READ) {
            tracing::error!(uplink = self.path(), %error, "cannot wait for frames of the peer");
            return self.dial.give_back(peer, ReceivedFds::new(), "the peer's socket cannot be polled");
        }
        self.inbox.clear();
        self.outbox.clear();
        (self.peer, self.readable, self.waits_for_room) = (Some(peer), true, false);
        if std::mem::replace(&mut self.met, true) {
            self.record.reattached();
        }
    }

    fn end(&mut self, poller: &Poller, why: &'static str) {
        if let Some(peer) = self.peer.take() {
            // The other thread closes the socket, which removes it from the poller too. So a failure here has no
            // consequence.
            let _ = poller.remove(&peer);
            self.record.drops.malformed += u64::from(self.inbox.has_part());
            self.dial.give_back(peer, std::mem::take(&mut self.fds), why);
        }
    }

    /// Has the poller report room in the socket while bytes are pending.
    fn wait_for_room(&mut self, poller: &Poller, token: u64) {
        let wanted = !self.outbox.pending().is_empty();
        if let Some(peer) = self.peer.as_ref().filter(|_| wanted != self.waits_for_room) {
            let interest = if wanted { PollInterest::BOTH } else { PollInterest::READ };
            match poller.modify(peer, token, interest) {
                Ok(()) => self.waits_for_room = wanted,
                Err(_) => self.broken = Some("the peer's socket cannot be polled"),
            }
        }
    }

    /// Reads bytes from the stream's socket. Returns `false` if there are none.
    fn read(&mut self) -> bool {
        let Some(peer) = self.peer.as_ref().filter(|_| self.readable && self.broken.is_none()) else {
            return false;
        };
        match peer.recv(self.inbox.room(), &mut self.fds) {
            Ok(SocketReceiveResult::Bytes(count)) => {
                self.inbox.received(count);
                if self.fds.is_empty() {
                    return true;
                }
                self.broken = Some("the peer has sent file descriptors");
            }
            Ok(SocketReceiveResult::WouldBlock) => {}
            Ok(SocketReceiveResult::Closed) => self.broken = Some("the peer has closed the stream"),
            Err(_) => self.broken = Some("the peer's stream cannot be read"),
        }
        self.readable = false;
        false
    }
}

impl UplinkBackend for StreamUplink {
    fn join(&mut self, UplinkPollContext { poller, token, .. }: UplinkPollContext<'_>) -> io::Result<()> {
        self.readable = true;
        self.waits_for_room = false;
        self.peer.as_ref().map_or(Ok(()), |peer| poller.add(peer, token, PollInterest::READ))
    }

    fn leave_poller(&mut self, poller: &Poller) {
        if let Some(peer) = &self.peer {
            // A failure means that the poller does not watch the stream, which is the goal.
            let _ = poller.remove(peer);
        }
    }

    fn set_readable(&mut self) {
        self.readable = true;
    }

    fn follow(&mut self, UplinkPollContext { poller, token, now }: UplinkPollContext<'_>) -> bool {
        if let Some(why) = self.broken.take() {
            self.end(poller, why);
        }
        while let Some(peer) = self.dial.peer() {
            self.begin(peer, poller, token);
        }
        self.wait_for_room(poller, token);
        let before = self.record.state();
        self.record.set_state(if self.peer.is_some() { UplinkState::Up } else { UplinkState::Gone }, now);
        self.record.state() != before
    }

    fn link(&self) -> bool {
        self.record.state() == UplinkState::Up
    }

    fn status(&self, now: Time) -> Option<UplinkStatus> {
        Some(self.record.status(self.path(), now))
    }

    fn transmit(&mut self, frame: &[u8]) -> bool {
        if self.peer.is_none() || self.broken.is_some() {
            self.record.drops.no_link += 1;
            return false;
        }
        let fits = self.outbox.push(frame);
        self.record.drops.no_room += u64::from(!fits);
        fits
    }

    fn flush(&mut self, _: Time) {
        self.passed_over = 0;
        let Some(peer) = self.peer.as_ref().filter(|_| self.broken.is_none()) else { return };
        if self.outbox.pending().is_empty() {
            return;
        }
        match peer.send(self.outbox.pending(), &[]) {
            Ok(SocketSendResult::Bytes(count)) => self.outbox.sent(count),
            Ok(SocketSendResult::WouldBlock) => {}
            Ok(SocketSendResult::Closed) => self.broken = Some("the peer has closed the stream"),
            Err(_) => self.broken = Some("the peer's stream cannot be written"),
        }
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        loop {
            if self.broken.is_some() || self.passed_over == PASSED_OVER {
                return None;
            }
            match self.inbox.next(into) {
                StreamUplinkItem::Frame(length) => return Some(length),
                StreamUplinkItem::Malformed => {
                    self.passed_over += 1;
                    self.record.drops.malformed += 1;
                }
                StreamUplinkItem::OutOfStep => {
                    self.inbox.clear();
                    self.record.drops.malformed += 1;
                    self.broken = Some("the peer has sent an invalid frame length");
                }
                StreamUplinkItem::Wait => {
                    if !self.read() {
                        return None;
                    }
                }
            }
        }
    }

    /// Returns `false` while the socket may hold bytes, or while the port has to handle the end of the stream.
    fn may_sleep(&mut self) -> bool {
        self.broken.is_none() && !(self.peer.is_some() && self.readable)
    }

    fn own(&mut self) {
        self.dial.own();
    }

    fn leave(&mut self) {
        self.dial.leave();
    }

    fn retire(self: Box<Self>) {
        let Self { dial, .. } = *self;
        dial.retire();
    }
}
