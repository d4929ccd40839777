//! Messages of a hand-over between a process and its successor, over a socket between the two.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, socketpair,
    sockopt::{Timeout, set_socket_timeout},
};

use crate::message;

/// Timeout for sending a message to a keeper process or to a successor process.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// Message by which the successor process announces itself, with its process id, before it takes the kept file
/// descriptors.
pub const STARTED: &str = "STARTED";
/// Message that ends a transfer: the sender has sent all kept file descriptors.
pub(crate) const END: &str = "END=1";

/// Creates two connected sockets that preserve message boundaries.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Message channel between a process and its replacement.
#[derive(Debug)]
pub struct HandOverChannel(OwnedFd);

impl HandOverChannel {
    pub(crate) fn over(socket: OwnedFd) -> io::Result<Self> {
        set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))?;
        Ok(Self(socket))
    }

    /// Sends all kept file descriptors with their names.
    ///
    /// # Errors
    /// The peer is gone.
    pub fn give<'a>(&self, shelf: impl Iterator<Item = (&'a str, BorrowedFd<'a>)>) -> io::Result<()> {
        for (name, fd) in shelf {
            message::send(&self.0, &format!("FDSTORE=1\nFDNAME={name}"), Some(fd))?;
        }
        message::send(&self.0, END, None)
    }

    /// Sends one message over the channel to the process at its other end.
    ///
    /// # Errors
    /// The peer is gone, or reads nothing for two seconds.
    pub fn tell(&self, word: &str) -> io::Result<()> {
        message::send(&self.0, word, None)
    }

    /// Waits at most `patience` for one message from the process at the other end. Returns `None` if that process is
    /// gone.
    ///
    /// # Errors
    /// `WouldBlock` after `patience`.
    pub fn hear(&self, patience: Duration) -> io::Result<Option<String>> {
        set_socket_timeout(&self.0, Timeout::Recv, Some(patience))?;
        Ok(message::receive(&self.0)?.map(|message| message.text))
    }
}

impl AsFd for HandOverChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
