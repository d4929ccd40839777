//! One connection: bytes and descriptors in and out, never waiting.
//!
//! Left out: buffering. A partial send is reported, and the rest is the caller's to keep and to bound.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    recvmsg, sendmsg, shutdown, socket_with, socketpair, sockopt,
};

use super::fds::MOST_SENT;
use super::{FdBatch, MAX_FDS};

/// What a receive brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// So many bytes, at least one.
    Bytes(usize),
    /// Nothing now.
    WouldBlock,
    /// Nothing ever again: the peer is gone.
    Closed,
}

/// What a send achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// So many bytes, perhaps fewer than given; the descriptors went with the first.
    Bytes(usize),
    /// Nothing, not even the descriptors: the peer does not read.
    WouldBlock,
    /// Nothing ever again: the peer is gone.
    Closed,
}

/// Who connected, as the kernel noted it at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Process id; 0 if it is not visible from here.
    pub pid: i32,
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
}

/// A connected UNIX stream socket that does not block.
#[derive(Debug)]
pub struct Stream(OwnedFd);

impl Stream {
    /// Connects to the socket file at `path`, without waiting for its owner to accept.
    ///
    /// # Errors
    /// `NotFound`, `ConnectionRefused` if nobody listens, `WouldBlock` if too many wait already,
    /// `InvalidFilename` if the path is too long for a socket.
    pub fn connect(path: &Path) -> io::Result<Self> {
        let address = SocketAddrUnix::new(path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&fd, &address)?;
        Ok(Self(fd))
    }

    /// Two ends of a connection without a file.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn pair() -> io::Result<(Self, Self)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        Ok((Self(one), Self(other)))
    }

    /// Takes a descriptor that was opened elsewhere (`--fd=N`, or handed over by a predecessor).
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

    /// Receives up to `buffer.len()` bytes, which must not be 0, and adds what descriptors came with them to
    /// `fds`.
    ///
    /// Descriptors travel with the first byte of the send that carried them, and a receive ends with that
    /// send at the latest; bytes of earlier sends may come before. So descriptors belong to the message that
    /// holds the last byte received; or, for who never asks for bytes beyond the message at hand, to that
    /// message.
    ///
    /// # Errors
    /// What the kernel says, if it is neither "nothing now" nor "the peer is gone".
    pub fn recv(&self, buffer: &mut [u8], fds: &mut FdBatch) -> io::Result<Received> {
        self.receive(buffer, fds, RecvFlags::empty())
    }

    /// Receives as [`Stream::recv`] does, and leaves everything in the socket: the next call brings what comes behind,
    /// and [`Stream::consume`] takes out what is dealt with. A process that dies in between has lost nothing: its
    /// successor calls [`Stream::peek_from`] and sees the bytes and descriptors again.
    ///
    /// `fds` must be empty. Each peek at a part of a send brings all its descriptors, so a send that may go on behind the
    /// buffer is left for the next peek: this one brings a quarter of the buffer, and no descriptors. With pages of 4 KiB, the
    /// kernel cuts a send into parts of at most 48 KiB: in a buffer of 64 KiB the next peek sees such a part whole.
    ///
    /// # Errors
    /// As [`Stream::recv`].
    pub fn peek(&self, buffer: &mut [u8], fds: &mut FdBatch) -> io::Result<Received> {
        let received = self.receive(buffer, fds, RecvFlags::PEEK)?;
        let room = buffer.len();
        if received != Received::Bytes(room) || fds.is_empty() || room < 4 {
            return Ok(received);
        }
        fds.clear();
        let bytes = room / 4;
        self.peek_from(self.peek_offset()? - (room - bytes))?;
        Ok(Received::Bytes(bytes))
    }

    /// Has the next [`Stream::peek`] begin so many bytes behind the first in the socket (SO_PEEK_OFF, unix(7)). To be
    /// called before the first peek, and when another process may have peeked.
    ///
    /// Urgent bytes (`MSG_OOB`) are like any others from now on. Otherwise the kernel skips and drops them, and a peek and
    /// the consuming of what it has seen do not agree on which.
    ///
    /// # Errors
    /// More bytes than a socket can hold.
    pub fn peek_from(&self, offset: usize) -> io::Result<()> {
        sockopt::set_socket_oobinline(&self.0, true)?;
        super::peek::begin_at(&self.0, offset)
    }

    /// Returns where the next [`Stream::peek`] begins, in bytes behind the first in the socket. [`Stream::consume`] moves
    /// this place back by what it takes, in the kernel and in one with taking it: it tells a successor how much of what was
    /// to be consumed is.
    ///
    /// # Errors
    /// [`Stream::peek_from`] was never called.
    pub fn peek_offset(&self) -> io::Result<usize> {
        super::peek::offset(&self.0)
    }

    /// Takes `buffer.len()` bytes out of the socket that were peeked at, into `buffer`. Descriptors that came with them
    /// are dropped: the peek has brought copies. Answers how many bytes were taken: fewer only if descriptors came in
    /// the middle of them.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn consume(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match recv(&self.0, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((bytes, _)) => return Ok(bytes),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn receive(&self, buffer: &mut [u8], fds: &mut FdBatch, how: RecvFlags) -> io::Result<Received> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_SENT))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT | how;
        let message = loop {
            match recvmsg(&self.0, &mut [IoSliceMut::new(buffer)], &mut control, flags) {
                Ok(message) => break message,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Received::WouldBlock),
                Err(Errno::CONNRESET) => return Ok(Received::Closed),
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
        Ok(if message.bytes == 0 { Received::Closed } else { Received::Bytes(message.bytes) })
    }

    /// Sends as many bytes as the socket takes now, with at most [`MAX_FDS`] descriptors.
    ///
    /// # Errors
    /// `InvalidInput` for no bytes (descriptors need one to travel with) or too many descriptors; else what
    /// the kernel says, if it is neither "not now" nor "the peer is gone".
    pub fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<Sent> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fits =
            fds.len() <= MAX_FDS && (fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(fds)));
        if bytes.is_empty() || !fits {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no bytes, or too many descriptors"));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        loop {
            return match sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, flags) {
                Ok(sent) => Ok(Sent::Bytes(sent)),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => Ok(Sent::WouldBlock),
                Err(Errno::PIPE | Errno::CONNRESET) => Ok(Sent::Closed),
                Err(error) => Err(error.into()),
            };
        }
    }

    /// Whether the peer will send no more: it has closed its end, or has died. What it sent before may still
    /// have to be received.
    #[must_use]
    pub fn is_hung_up(&self) -> bool {
        let mut asked = [PollFd::new(&self.0, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // An error would say nothing about the peer; receiving will tell.
        poll(&mut asked, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Whether something waits to be received.
    #[must_use]
    pub fn has_unread(&self) -> bool {
        // An error would say nothing about the peer; receiving will tell.
        ioctl_fionread(&self.0).is_ok_and(|bytes| bytes > 0)
    }

    /// Sends nothing more: the peer reads what was sent, and then the end of the stream. What the peer sends can
    /// still be received.
    ///
    /// # Errors
    /// `NotConnected` if the peer is gone.
    pub fn shut_down_writing(&self) -> io::Result<()> {
        Ok(shutdown(&self.0, Shutdown::Write)?)
    }

    /// Ends the connection in both directions, as the peer sees it. Closing the descriptor does so too, but also closes
    /// what descriptors nobody has received, and that may take long.
    pub fn hang_up(&self) {
        // It fails when the peer has gone, and that is as good.
        let _ = shutdown(&self.0, Shutdown::Both);
    }

    /// Who is at the other end.
    ///
    /// # Errors
    /// None that a connected socket gives.
    pub fn peer(&self) -> io::Result<Credentials> {
        let peer = sockopt::socket_peercred(&self.0)?;
        Ok(Credentials { pid: peer.pid.as_raw_pid(), uid: peer.uid.as_raw(), gid: peer.gid.as_raw() })
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<Stream> for OwnedFd {
    fn from(stream: Stream) -> Self {
        stream.0
    }
}
