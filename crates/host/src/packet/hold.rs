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

    /// Returns true if a file descriptor of another process's [`InterfaceHoldSocket`] belongs to an existing interface.
    #[must_use]
    pub fn is_held(fd: impl AsFd) -> bool {
        sockopt::socket_domain(&fd) == Ok(AddressFamily::PACKET)
            && request::bound(fd).is_ok_and(|bound| bound.index.is_some())
    }

    /// Returns the index of the interface that the socket keeps in use.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Returns the interface's current name, or `None` if it was deleted.
    #[must_use]
    pub fn interface(&self) -> Option<String> {
        let index = request::bound(&self.fd).ok()?.index?;
        index_to_name(&self.fd, index).ok()
    }
}

impl AsFd for InterfaceHoldSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
