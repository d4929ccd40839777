//! Start of a connection: the negotiation of features, the shared memory, and the start of rings.

use crate::VhostClientError;
use crate::connection::BackendConnection;
use crate::memory::{FrontendMemory, user_address};
use host::driver_thread::DriverThread;
use host::eventfd::EventFd;
use std::os::fd::AsFd;
use std::path::Path;
use vhost_user::features::{device, protocol};
use vhost_user::message::{FrontendRequest, RingAddresses, RingEventfdMessage};
use virtio::VirtioFeatures;
use virtio::driver::DriverRing;
use virtio::net::{receive_queue, transmit_queue};

/// Eventfds of a ring: kicks to the device, calls (interrupts) to the driver.
#[derive(Debug)]
pub(super) struct RingEventfds {
    pub(super) kick: EventFd,
    pub(super) call: EventFd,
}

/// Connects to the back end: negotiates features, shares memory, and starts the receive ring and the transmit ring at these
/// positions. Returns the rings' eventfds too.
pub(super) fn connect<T: DriverThread>(
    socket: &Path,
    thread: T,
    accepted: VirtioFeatures,
    memory: &FrontendMemory,
    [(receive, receive_base), (transmit, transmit_base)]: [(&DriverRing, u32); 2],
) -> Result<(BackendConnection<T>, [RingEventfds; 2]), VhostClientError> {
    let mut connection = BackendConnection::open(socket, thread)?;
    negotiate(&mut connection, accepted)?;
    let (region, fd) = memory.region()?;
    connection.confirmed(&FrontendRequest::SetMemTable(vec![region]), vec![fd])?;
    let receive = start(&mut connection, receive_queue(0), receive, receive_base)?;
    let transmit = start(&mut connection, transmit_queue(0), transmit, transmit_base)?;
    Ok((connection, [receive, transmit]))
}

/// Accepts features of the device, and of the protocol acknowledgements alone.
fn negotiate<T: DriverThread>(
    connection: &mut BackendConnection<T>,
    accepted: VirtioFeatures,
) -> Result<(), VhostClientError> {
    let offered = connection.number(&FrontendRequest::GetFeatures)?;
    let missing = accepted.bits() & !offered;
    if missing != 0 {
        return Err(VhostClientError::NotOffered(VirtioFeatures::from_bits(missing)));
    }
    let acknowledgements = 1 << protocol::REPLY_ACK;
    if connection.number(&FrontendRequest::GetProtocolFeatures)? & acknowledgements == 0 {
        return Err(VhostClientError::NoAcknowledgements);
    }
    connection.post(&FrontendRequest::SetProtocolFeatures(acknowledgements))?;
    connection.confirmed(&FrontendRequest::SetOwner, vec![])?;
    let features = accepted.bits() | device::PROTOCOL_FEATURES;
    connection.confirmed(&FrontendRequest::SetFeatures(features), vec![])
}

/// Enables and starts a ring at a position, in QEMU's order, and returns its eventfds.
pub(super) fn start<T: DriverThread>(
    connection: &mut BackendConnection<T>,
    number: u32,
    ring: &DriverRing,
    base: u32,
) -> Result<RingEventfds, VhostClientError> {
    let (kick, call) = (EventFd::new()?, EventFd::new()?);
    let copy = |eventfd: &EventFd| eventfd.as_fd().try_clone_to_owned();
    let eventfd = RingEventfdMessage { ring: number, attached: true };
    let at = ring.addresses();
    let addresses = RingAddresses {
        ring: number,
        descriptors: user_address(at.descriptors),
        available: user_address(at.driver),
        used: user_address(at.device),
        ..RingAddresses::default()
    };
    let size = ring.size().into();
    for (request, fds) in [
        (FrontendRequest::SetVringEnable { ring: number, enabled: true }, vec![]),
        (FrontendRequest::SetVringCall(eventfd), vec![copy(&call)?]),
        (FrontendRequest::SetVringNum { ring: number, size }, vec![]),
        (FrontendRequest::SetVringBase { ring: number, base }, vec![]),
        (FrontendRequest::SetVringAddr(addresses), vec![]),
        (FrontendRequest::SetVringKick(eventfd), vec![copy(&kick)?]),
    ] {
        connection.confirmed(&request, fds)?;
    }
    Ok(RingEventfds { kick, call })
}
