//! Connection to a vfio-user server: sends requests and waits for their replies, and sends posted writes, which have no
//! reply.

use crate::VfioUserHalError;
use host::driver_thread::DriverThread;
use host::poll::{PollInterest, Poller};
use host::socket::{ReceivedFds, SocketReceiveResult, SocketSendResult, StreamSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;
use vfio_user::client::{Client, ReplyContents};
use vfio_user::outbox::MessageOutbox;
use vfio_user::wire::Errno;

/// Timeout of the server's answer to a message. A port thread replies in microseconds, but may be stopped by a
/// debugger.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Size of the receive buffer in bytes, enough for the server's short replies.
const BUFFER: usize = 4096;

/// Connection of this process's driver to a vfio-user server.
#[derive(Debug)]
pub(super) struct ServerConnection<T> {
    stream: StreamSocket,
    pub(super) thread: T,
    poller: Poller,
    client: Client<OwnedFd>,
    outbox: MessageOutbox<OwnedFd>,
    buffer: Vec<u8>,
    fds: ReceivedFds,
}

impl<T: DriverThread> ServerConnection<T> {
    pub(super) fn open(path: &Path, thread: T) -> Result<Self, VfioUserHalError> {
        let connect = |source| VfioUserHalError::Connect { path: path.to_owned(), source };
        let stream = StreamSocket::connect(path).map_err(connect)?;
        let poller = Poller::new()?;
        poller.add(&stream, 0, PollInterest::READ)?;
        Ok(Self {
            stream,
            thread,
            poller,
            client: Client::new(),
            outbox: MessageOutbox::new(),
            buffer: vec![0; BUFFER],
            fds: ReceivedFds::new(),
        })
    }

    pub(super) fn stream(&self) -> &StreamSocket {
        &self.stream
    }

    /// Sends a request to the server, waits for the reply, and returns the value that a parser reads from it.
    pub(super) fn ask<R>(
        &mut self,
        request: impl FnOnce(&mut Client<OwnedFd>, &mut MessageOutbox<OwnedFd>) -> u16,
        take: impl FnOnce(Result<ReplyContents<'_>, Errno>) -> R,
    ) -> Result<R, VfioUserHalError> {
        self.ask_for_file(request, |answer, _| take(answer))
    }

    /// Sends a request to the server, and waits for its reply and the descriptors that come with the reply.
    pub(super) fn ask_for_file<R>(
        &mut self,
        request: impl FnOnce(&mut Client<OwnedFd>, &mut MessageOutbox<OwnedFd>) -> u16,
        take: impl FnOnce(Result<ReplyContents<'_>, Errno>, Vec<OwnedFd>) -> R,
    ) -> Result<R, VfioUserHalError> {
        request(&mut self.client, &mut self.outbox);
        self.send()?;
        loop {
            // One request is pending at a time, so the reply is its own.
            if let Some(reply) = self.client.next_reply()? {
                return Ok(take(reply.answer, reply.fds));
            }
            self.receive()?;
        }
    }

    /// Reads bytes from a region of the VF, and waits for the reply.
    pub(super) fn read(&mut self, region: u32, offset: u64, into: &mut [u8]) -> Result<(), VfioUserHalError> {
        let count = into.len() as u32;
        self.ask(
            |client, out| client.read(out, region, offset, count),
            |answer| match answer {
                Ok(ReplyContents::Data(data)) if data.len() == into.len() => {
                    into.copy_from_slice(data);
                    Ok(())
                }
                Ok(_) => Err(VfioUserHalError::NotAVf("the reply to a region read is too short")),
                Err(errno) => Err(VfioUserHalError::Refused { request: "a region read", errno }),
            },
        )?
    }

    /// Writes to a region of the VF, without waiting for a reply.
    pub(super) fn write_posted(
        &mut self,
        region: u32,
        offset: u64,
        data: &[u8],
    ) -> Result<(), VfioUserHalError> {
        self.client.write_posted(&mut self.outbox, region, offset, data);
        self.send()
    }

    fn send(&mut self) -> Result<(), VfioUserHalError> {
        while let Some(chunk) = self.outbox.chunk() {
            let fds: Vec<BorrowedFd<'_>> = chunk.fds.iter().map(AsFd::as_fd).collect();
            let sent = self.stream.send(chunk.bytes, &fds)?;
            drop(fds);
            match sent {
                SocketSendResult::Bytes(count) => self.outbox.sent(count),
                SocketSendResult::WouldBlock => self.wait_for_room()?,
                SocketSendResult::Closed => return Err(VfioUserHalError::Gone),
            }
        }
        Ok(())
    }

    fn wait_for_room(&mut self) -> Result<(), VfioUserHalError> {
        self.poller.modify(&self.stream, 0, PollInterest::WRITE)?;
        let ready = self.thread.wait_for_event(&mut self.poller, MESSAGE_TIMEOUT)?;
        self.poller.modify(&self.stream, 0, PollInterest::READ)?;
        if ready { Ok(()) } else { Err(VfioUserHalError::Late) }
    }

    fn receive(&mut self) -> Result<(), VfioUserHalError> {
        loop {
            match self.stream.recv(&mut self.buffer, &mut self.fds)? {
                SocketReceiveResult::Bytes(count) => {
                    return Ok(self.client.push(&self.buffer[..count], self.fds.drain())?);
                }
                SocketReceiveResult::Closed => return Err(VfioUserHalError::Gone),
                SocketReceiveResult::WouldBlock => {
                    if !self.thread.wait_for_event(&mut self.poller, MESSAGE_TIMEOUT)? {
                        return Err(VfioUserHalError::Late);
                    }
                }
            }
        }
    }
}
