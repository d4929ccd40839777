//! A hold on an interface whose frames come by another way.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::netdevice::{index_to_name, name_to_index};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};

use super::{PacketError, request};
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
        let system = |error: io::Error| PacketError::of(error, name);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)
            .map_err(|errno| system(errno.into()))?;
        let index = name_to_index(&fd, name.as_str()).map_err(|errno| system(errno.into()))?;
        request::bind(&fd, index, request::Frames::None).map_err(system)?;
        request::listen_to_all(&fd, index).map_err(system)?;
        if !request::bound(&fd).map_err(system)?.is_ethernet {
            return Err(PacketError::NotEthernet { name: name.clone() });
        }
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
