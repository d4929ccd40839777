//! Non-blocking connection that carries bytes and file descriptors.
//!
//! It does not buffer: after a partial send the caller keeps the rest, and bounds it.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    recvmsg, sendmsg, shutdown, socket_with, socketpair, sockopt,
};

use super::fds::MOST_SENT;
use super::{MAX_FDS, ReceivedFds};
#[cfg(any(test, feature = "test-support"))]
use crate::kernel_choices;

/// Result of receiving from a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketReceiveResult {
    /// Number of bytes received from the socket, at least one.
    Bytes(usize),
    /// No received bytes are pending in the socket.
    WouldBlock,
    /// The peer has closed the connection.
    Closed,
}

/// Result of sending to a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketSendResult {
    /// Number of bytes sent to the socket, perhaps fewer than given; the file descriptors went with the first byte.
    Bytes(usize),
    /// The socket's buffer is full; nothing was sent, not even the file descriptors.
    WouldBlock,
    /// The peer has closed the connection.
    Closed,
}

/// Peer's identity when it connected, as the kernel recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// Process id of the peer; 0 if it is not visible in this namespace.
    pub pid: i32,
    /// Effective user id of the peer.
    pub uid: u32,
    /// Effective group id of the peer.
    pub gid: u32,
}

/// Connected UNIX stream socket that does not block.
#[derive(Debug)]
pub struct StreamSocket(OwnedFd);

impl StreamSocket {
    /// Connects to the socket file at `path`, without waiting for the server to accept.
    ///
    /// # Errors
    /// `NotFound`; `ConnectionRefused` without a listener; `WouldBlock` if its backlog is full; `InvalidFilename`
    /// if the path is too long for a socket.
    pub fn connect(path: &Path) -> io::Result<Self> {
        let address = SocketAddrUnix::new(path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&fd, &address)?;
        Ok(Self(fd))
    }

    /// Creates both ends of a connection, without a socket file.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn pair() -> io::Result<(Self, Self)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        Ok((Self(one), Self(other)))
    }

    /// Adopts a file descriptor that another process opened (`--fd=N`, or the previous host process's).
    ///
    /// # Errors
    /// `InvalidInput` if it is not a UNIX stream socket.
    pub fn adopt(fd: OwnedFd) -> io::Result<Self> {
        let kind = (sockopt::socket_domain(&fd), sockopt::socket_type(&fd));
        if kind != (Ok(AddressFamily::UNIX), Ok(SocketType::STREAM)) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a UNIX stream socket"));
        }
        fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::NONBLOCK)?;
        Ok(Self(fd))
    }

    pub(super) fn accepted(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Receives up to `buffer.len()` bytes, which must not be 0, and appends their file descriptors to `fds`.
    ///
    /// Descriptors travel with the first byte of the send that carried them, and a receive ends with that send at
    /// the latest; bytes of earlier sends may come before. So descriptors belong to the message that holds the last
    /// received byte. A caller that never requests bytes beyond the current message gets its descriptors only.
    ///
    /// # Errors
    /// The kernel's error, except an empty socket and a closed peer.
    pub fn recv(&self, buffer: &mut [u8], fds: &mut ReceivedFds) -> io::Result<SocketReceiveResult> {
        #[cfg(any(test, feature = "test-support"))]
        let buffer = kernel_choices::room_of_receive(buffer);
        self.receive(buffer, fds, RecvFlags::empty())
    }

    /// Receives as [`StreamSocket::recv`] does, and leaves everything in the socket: the next call returns later bytes,
    /// and [`StreamSocket::consume`] removes handled ones. A process that dies in between loses nothing: its successor
    /// process calls [`StreamSocket::peek_from`] and receives the bytes and file descriptors again.
    ///
    /// `fds` must be empty. Each peek at a part of a send returns all its descriptors, so a send that may continue
    /// beyond the buffer is left for the next peek: this one returns a quarter of the buffer, and no descriptors.
    /// With pages of 4 KiB, the kernel cuts a send into parts of at most 48 KiB: in a buffer of 64 KiB the next
    /// peek holds such a part whole.
    ///
    /// # Errors
    /// Returns the errors of [`StreamSocket::recv`].
    pub fn peek(&self, buffer: &mut [u8], fds: &mut ReceivedFds) -> io::Result<SocketReceiveResult> {
        #[cfg(any(test, feature = "test-support"))]
        let buffer = kernel_choices::room_of_receive(buffer);
        let received = self.receive(buffer, fds, RecvFlags::PEEK)?;
        let room = buffer.len();
        if received != SocketReceiveResult::Bytes(room) || fds.is_empty() || room < 4 {
            return Ok(received);
        }
        fds.clear();
        let bytes = room / 4;
        self.peek_from(self.peek_offset()? - (room - bytes))?;
        Ok(SocketReceiveResult::Bytes(bytes))
    }

    /// Sets the next [`StreamSocket::peek`]'s offset in bytes from the first unread byte (SO_PEEK_OFF, unix(7)). Call
    /// it before the first peek, and when another process may have peeked.
    ///
    /// Urgent bytes (`MSG_OOB`) are treated as ordinary ones from now on. Otherwise the kernel skips and drops
    /// them, and peeked and consumed bytes differ.
    ///
    /// # Errors
    /// The offset exceeds the socket's capacity.
    pub fn peek_from(&self, offset: usize) -> io::Result<()> {
        sockopt::set_socket_oobinline(&self.0, true)?;
        super::peek::begin_at(&self.0, offset)
    }

    /// Returns the next [`StreamSocket::peek`]'s offset in bytes from the first unread byte. [`StreamSocket::consume`]
    /// reduces it by the bytes it takes, atomically in the kernel: a successor process learns how many bytes were
    /// consumed.
    ///
    /// # Errors
    /// [`StreamSocket::peek_from`] was never called.
    pub fn peek_offset(&self) -> io::Result<usize> {
        super::peek::offset(&self.0)
    }

    /// Removes `buffer.len()` peeked bytes from the socket into `buffer`. Drops the bytes' file descriptors: the peek
    /// has returned copies. Returns the number of removed bytes, which is smaller only if descriptors came in the
    /// middle of the bytes.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn consume(&self, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(any(test, feature = "test-support"))]
        let buffer = kernel_choices::room_of_receive(buffer);
        loop {
            match recv(&self.0, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((bytes, _)) => return Ok(bytes),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn receive(
        &self,
        buffer: &mut [u8],
        fds: &mut ReceivedFds,
        how: RecvFlags,
    ) -> io::Result<SocketReceiveResult> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_SENT))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT | how;
        let message = loop {
            match recvmsg(&self.0, &mut [IoSliceMut::new(buffer)], &mut control, flags) {
                Ok(message) => break message,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(SocketReceiveResult::WouldBlock),
                Err(Errno::CONNRESET) => return Ok(SocketReceiveResult::Closed),
                Err(error) => return Err(error.into()),
            }
        };
        for control in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = control {
                received.for_each(|fd| fds.push(fd));
            }
        }
        if message.flags.contains(ReturnFlags::CTRUNC) {
            fds.mark_truncated();
        }
        Ok(if message.bytes == 0 {
            SocketReceiveResult::Closed
        } else {
            SocketReceiveResult::Bytes(message.bytes)
        })
    }

    /// Sends as many of `bytes` as the socket takes now, with at most [`MAX_FDS`] file descriptors.
    ///
    /// # Errors
    /// `InvalidInput` for no bytes (descriptors need one to travel with) or too many descriptors; else the kernel's
    /// error, except a full socket and a closed peer.
    pub fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<SocketSendResult> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fits =
            fds.len() <= MAX_FDS && (fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(fds)));
        if bytes.is_empty() || !fits {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a send needs at least one byte and at most 32 descriptors",
            ));
        }
        #[cfg(any(test, feature = "test-support"))]
        let bytes = match kernel_choices::taken_of_send(bytes.len()) {
            0 => return Ok(SocketSendResult::WouldBlock),
            taken => &bytes[..taken],
        };
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        loop {
            return match sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, flags) {
                Ok(sent) => Ok(SocketSendResult::Bytes(sent)),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => Ok(SocketSendResult::WouldBlock),
                Err(Errno::PIPE | Errno::CONNRESET) => Ok(SocketSendResult::Closed),
                Err(error) => Err(error.into()),
            };
        }
    }

    /// Returns true if both descriptors are of the same socket.
    #[must_use]
    pub fn is_same_socket(&self, other: &Self) -> bool {
        // Every socket has an inode number of its own.
        let inode = |socket: &Self| fstat(&socket.0).map(|stat| stat.st_ino).ok();
        inode(self).is_some_and(|own| inode(other) == Some(own))
    }

    /// Returns true if the peer will send no more data, because it has closed its end or has died. Earlier bytes may be
    /// unread.
    #[must_use]
    pub fn is_hung_up(&self) -> bool {
        let mut asked = [PollFd::new(&self.0, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // An error is ignored: the next receive reports it.
        poll(&mut asked, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Returns true if the socket holds received bytes that are unread.
    #[must_use]
    pub fn has_unread(&self) -> bool {
        // An error is ignored: the next receive reports it.
        ioctl_fionread(&self.0).is_ok_and(|bytes| bytes > 0)
    }

    /// Ends sending: the peer reads the sent bytes and then the end of the stream. Receiving continues.
    ///
    /// # Errors
    /// `NotConnected` if the peer is gone.
    pub fn shut_down_writing(&self) -> io::Result<()> {
        Ok(shutdown(&self.0, Shutdown::Write)?)
    }

    /// Ends the connection in both directions for the peer. Closing the file descriptor does that too, but also closes
    /// unread descriptors, which may block.
    pub fn hang_up(&self) {
        // Fails if the peer has closed already.
        let _ = shutdown(&self.0, Shutdown::Both);
    }

    /// Returns the process, user and group of the peer.
    ///
    /// # Errors
    /// None for a connected socket.
    pub fn peer(&self) -> io::Result<PeerCredentials> {
        let peer = sockopt::socket_peercred(&self.0)?;
        Ok(PeerCredentials { pid: peer.pid.as_raw_pid(), uid: peer.uid.as_raw(), gid: peer.gid.as_raw() })
    }
}

impl AsFd for StreamSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<StreamSocket> for OwnedFd {
    fn from(stream: StreamSocket) -> Self {
        stream.0
    }
}
