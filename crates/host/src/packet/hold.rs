//! A hold on an interface whose frames come by another way.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::netdevice::index_to_name;
use rustix::net::{AddressFamily, sockopt};

use super::{Frames, PacketError, attach, request};
use crate::tap::InterfaceName;

/// As long as it is there the interface takes in frames for whatever address. None comes by it. Like a [`super::PacketSocket`]
/// it stays with its interface when that is renamed, and knows when it was deleted.
#[derive(Debug)]
pub struct Hold {
    fd: OwnedFd,
    index: u32,
}

impl Hold {
    /// Of the interface of this name.
    ///
    /// # Errors
    /// See [`PacketError`].
    pub fn open(name: &InterfaceName) -> Result<Self, PacketError> {
        let (fd, index) = attach(name, Frames::None)?;
        Ok(Self { fd, index })
    }

    /// Whether a descriptor that another process had from [`Hold::open`] is of an interface that is still there.
    #[must_use]
    pub fn is_held(fd: impl AsFd) -> bool {
        sockopt::socket_domain(&fd) == Ok(AddressFamily::PACKET)
            && request::bound(fd).is_ok_and(|bound| bound.index.is_some())
    }

    /// The interface's number.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// What the interface is called now; `None` if it was deleted.
    #[must_use]
    pub fn interface(&self) -> Option<String> {
        let index = request::bound(&self.fd).ok()?.index?;
        index_to_name(&self.fd, index).ok()
    }
}

impl AsFd for Hold {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
