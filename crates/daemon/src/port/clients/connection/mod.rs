//! Connection of a client to one function, by vfio-user (implemented in `vfio`) or vhost-user (`vhost`). The port
//! accepts, serves and disconnects the clients of both protocols in the same way.

mod bounds;
#[cfg(test)]
mod failing_kicks;
mod interest;
mod stall;

pub(super) use bounds::{ClientServiceBudget, RECEIVES};
pub(in crate::port) use bounds::{ClientServiceOutcome, DisconnectReason, VisitResult};
#[cfg(test)]
pub(super) use failing_kicks::FailingKicks;
pub(super) use interest::SocketInterest;
pub(in crate::port) use stall::ClientStall;
pub(super) use stall::{ClientStallCause, PATIENCE};

use super::device::VfioFunction;
use super::errand::BlockingCallOutcome;
use super::holdings::ClientResources;
use crate::clock::TimeSource;
use host::poll::Poller;
use host::socket::StreamSocket;
use i82576::Time;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use vfio_user::server::SessionCounters;

/// Connection of a client to one function of the card.
pub(in crate::port) trait ClientConnection: Debug + Send {
    /// Returns the socket of the client.
    fn stream(&self) -> &StreamSocket;

    /// Returns the counters of the client's messages.
    fn counters(&self) -> SessionCounters;

    /// Handles the client's pending messages within a budget, and sends replies. The clock limits the time spent on
    /// them, and dates each message.
    fn visit(
        &mut self,
        device: &mut VfioFunction<'_>,
        buffer: &mut [u8],
        clock: &dyn TimeSource,
    ) -> VisitResult;

    /// Finishes the request that the client has begun, if a successor process could not continue it. Returns true if the request
    /// waits for a blocking call, or for room in the socket.
    fn finish_request(&mut self, _device: &mut VfioFunction<'_>, _buffer: &mut [u8]) -> bool {
        false
    }

    /// Prepares the client for the successor process, before the port is saved: saves the client, or finishes a message that
    /// the end of the client's turn has suspended, whatever it costs. A successor would handle the whole message again.
    fn prepare_hand_over(
        &mut self,
        device: &mut VfioFunction<'_>,
        buffer: &mut [u8],
    ) -> Result<(), DisconnectReason>;

    /// Applies the outcome of a blocking call, and resumes the client if it waited for the call.
    fn finish(&mut self, device: &mut VfioFunction<'_>, outcome: BlockingCallOutcome);

    /// Updates the client's file descriptors in the port's poller. `place` is the index of the client's function.
    fn watch(&mut self, poller: &Poller, place: usize) -> io::Result<()>;

    /// Moves the eventfds by which the guest kicks rings to the poller of the worker that serves the function, or to the port's
    /// own poller (`None`). Returns false if they were there.
    fn move_kicks(
        &mut self,
        _worker: Option<&Arc<Poller>>,
        _own: &Poller,
        _place: usize,
    ) -> io::Result<bool> {
        Ok(false)
    }

    /// Returns true if doorbells of a client without register pages come by message.
    fn rings_by_message(&self) -> bool {
        true
    }

    /// Removes the client's file descriptors from the port's poller.
    fn unwatch(&mut self, poller: &Poller);

    /// Returns the stall of a client that has stopped in the middle of a message, or reads no replies.
    fn stall(&self, now: Time) -> Option<ClientStall>;

    /// Returns the time at which the port disconnects the client if the client still stalls.
    fn deadline(&self) -> Option<Time>;

    /// Returns true if no reply to the client and no message from the client is pending.
    fn is_idle(&self) -> bool;

    /// Continues the client after a successor process has refused to take the port, and may have received from the client's
    /// socket.
    fn resume(&mut self, own: &mut ClientResources) -> io::Result<()>;

    /// Returns true if the client continues with the host's successor process. Otherwise the client is disconnected, and must
    /// connect again.
    fn is_kept(&self) -> bool;

    /// Returns true if the client continues after a reset of the card. Otherwise the client is disconnected, and must connect
    /// again.
    fn outlives_reset(&self) -> bool;

    /// Ends the session, and releases memory and interrupts. Returns the socket, which may hold unread file
    /// descriptors.
    fn close(self: Box<Self>, device: &mut VfioFunction<'_>) -> StreamSocket;
}
