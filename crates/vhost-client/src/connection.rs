//! Connection to a vhost-user back end: sends requests and waits for their replies.

use crate::VhostClientError;
use host::driver_thread::DriverThread;
use host::poll::{PollInterest, Poller};
use host::socket::{ReceivedFds, SocketReceiveResult, SocketSendResult, StreamSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;
use vhost_user::frontend::{BackendReply, Frontend};
use vhost_user::message::FrontendRequest;
use vhost_user::outbox::OutgoingMessages;

/// Timeout of the back end's answer to a message. A port thread replies in microseconds, but may be stopped by a
/// debugger.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Size of the receive buffer in bytes, enough for the longest reply.
const BUFFER: usize = 4096;

/// Connection of this process to a vhost-user back end. Dropping this value closes the connection.
#[derive(Debug)]
pub(super) struct BackendConnection<T> {
    stream: StreamSocket,
    pub(super) thread: T,
    poller: Poller,
    frontend: Frontend<OwnedFd>,
    out: OutgoingMessages<OwnedFd>,
    buffer: Vec<u8>,
    fds: ReceivedFds,
}

/// Shuts the connection down explicitly: a child process that starts at this moment still has a copy of the socket.
impl<T> Drop for BackendConnection<T> {
    fn drop(&mut self) {
        self.stream.hang_up();
    }
}

impl<T: DriverThread> BackendConnection<T> {
    pub(super) fn open(path: &Path, thread: T) -> Result<Self, VhostClientError> {
        let connect = |source| VhostClientError::Connect { path: path.to_owned(), source };
        let stream = StreamSocket::connect(path).map_err(connect)?;
        let poller = Poller::new()?;
        poller.add(&stream, 0, PollInterest::READ)?;
        Ok(Self {
            stream,
            thread,
            poller,
            frontend: Frontend::new(),
            out: OutgoingMessages::new(),
            buffer: vec![0; BUFFER],
            fds: ReceivedFds::new(),
        })
    }

    /// Returns true if the back end has closed the connection.
    pub(super) fn is_closed(&mut self) -> Result<bool, VhostClientError> {
        Ok(self.poller.wait(Some(Duration::ZERO))?.any(|ready| ready.closed))
    }

    /// Sends a request that has no reply.
    pub(super) fn post(&mut self, request: &FrontendRequest) -> Result<(), VhostClientError> {
        self.frontend.send(&mut self.out, request, vec![]);
        self.flush()
    }

    /// Sends a request whose reply is a number, and returns the number.
    pub(super) fn number(&mut self, request: &FrontendRequest) -> Result<u64, VhostClientError> {
        self.post(request)?;
        match self.reply()? {
            BackendReply::Number(number) => Ok(number),
            _ => Err(VhostClientError::UnexpectedReply(request.code())),
        }
    }

    /// Stops a ring, and returns its position, as vhost-user's ring base.
    pub(super) fn stop_ring(&mut self, ring: u32) -> Result<u32, VhostClientError> {
        let request = FrontendRequest::GetVringBase { ring };
        self.post(&request)?;
        match self.reply()? {
            BackendReply::Base { base, .. } => Ok(base),
            _ => Err(VhostClientError::UnexpectedReply(request.code())),
        }
    }

    /// Sends a request with descriptors, and waits until the back end has confirmed it.
    pub(super) fn confirmed(
        &mut self,
        request: &FrontendRequest,
        fds: Vec<OwnedFd>,
    ) -> Result<(), VhostClientError> {
        self.frontend.send_acknowledged(&mut self.out, request, fds);
        self.flush()?;
        match self.reply()? {
            BackendReply::Accepted => Ok(()),
            BackendReply::Refused(_) => Err(VhostClientError::Refused(request.code())),
            _ => Err(VhostClientError::UnexpectedReply(request.code())),
        }
    }

    fn flush(&mut self) -> Result<(), VhostClientError> {
        while let Some(chunk) = self.out.chunk() {
            let fds: Vec<BorrowedFd<'_>> = chunk.fds.iter().map(AsFd::as_fd).collect();
            let sent = self.stream.send(chunk.bytes, &fds)?;
            drop(fds);
            match sent {
                SocketSendResult::Bytes(count) => self.out.sent(count),
                SocketSendResult::WouldBlock => self.wait_for_room()?,
                SocketSendResult::Closed => {
                    // No back end takes the messages any more, and their descriptors would be open until the front end ends.
                    self.out = OutgoingMessages::new();
                    return Err(VhostClientError::Gone);
                }
            }
        }
        Ok(())
    }

    fn wait_for_room(&mut self) -> Result<(), VhostClientError> {
        self.poller.modify(&self.stream, 0, PollInterest::WRITE)?;
        let ready = self.thread.wait_for_event(&mut self.poller, MESSAGE_TIMEOUT)?;
        self.poller.modify(&self.stream, 0, PollInterest::READ)?;
        if ready { Ok(()) } else { Err(VhostClientError::Late) }
    }

    fn reply(&mut self) -> Result<BackendReply<OwnedFd>, VhostClientError> {
        loop {
            if let Some(reply) = self.frontend.next_reply()? {
                return Ok(reply);
            }
            let room = self.frontend.room().min(BUFFER);
            match self.stream.recv(&mut self.buffer[..room], &mut self.fds)? {
                SocketReceiveResult::Bytes(count) => {
                    let mut fds = self.fds.drain().collect();
                    self.frontend.push(&self.buffer[..count], &mut fds)?;
                }
                SocketReceiveResult::Closed => return Err(VhostClientError::Gone),
                SocketReceiveResult::WouldBlock => {
                    if !self.thread.wait_for_event(&mut self.poller, MESSAGE_TIMEOUT)? {
                        return Err(VhostClientError::Late);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::BackendConnection;
    use crate::VhostClientError;
    use host::driver_thread::SystemThread;
    use std::io::Read;
    use std::os::unix::net::UnixListener;
    use vhost_user::message::FrontendRequest;

    #[test]
    fn descriptors_for_a_back_end_that_is_gone_are_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vf0.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let mut connection = BackendConnection::open(&path, SystemThread).unwrap();
        drop(listener.accept().unwrap());

        let (mut reader, writer) = std::io::pipe().unwrap();
        let sent = connection.confirmed(&FrontendRequest::SetMemTable(vec![]), vec![writer.into()]);
        assert!(matches!(sent, Err(VhostClientError::Gone)));
        // A copy of the writing end would leave the reader waiting.
        assert_eq!(reader.read(&mut [0]).unwrap(), 0);
    }
}
