//! Keeps an interface in promiscuous mode while its frames are received by AF_XDP.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::netdevice::index_to_name;
use rustix::net::{AddressFamily, sockopt};

use super::{PacketSocketError, ReceivedFrameSelection, attach, request};
use crate::tap::InterfaceName;

/// Packet socket that keeps an interface in use and receives no frames. While it is open, the interface accepts frames
/// for any address. Like a [`super::PacketSocket`] it stays with its interface on a rename, and detects the interface's
/// deletion.
#[derive(Debug)]
pub struct InterfaceHoldSocket {
    fd: OwnedFd,
    index: u32,
}

impl InterfaceHoldSocket {
    /// Opens a socket that keeps the interface of this name in use.
    ///
    /// # Errors
    /// See [`PacketSocketError`].
    pub fn open(name: &InterfaceName) -> Result<Self, PacketSocketError> {
        let (fd, index) = attach(name, ReceivedFrameSelection::None)?;
        Ok(Self { fd, index })
    }

    /// Returns the current name of the interface that a file descriptor of another process's [`InterfaceHoldSocket`] keeps in
    /// use, or `None` if that interface was deleted.
    #[must_use]
    pub fn held_by(fd: impl AsFd) -> Option<String> {
        if sockopt::socket_domain(&fd) != Ok(AddressFamily::PACKET) {
            return None;
        }
        let index = request::bound(&fd).ok()?.index?;
        index_to_name(&fd, index).ok()
    }

    /// Returns the index of the interface that the socket keeps in use.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Returns the interface's current name, or `None` if it was deleted.
    #[must_use]
    pub fn interface(&self) -> Option<String> {
        Self::held_by(&self.fd)
    }
}

impl AsFd for InterfaceHoldSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
