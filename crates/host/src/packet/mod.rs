//! A packet socket: whole Ethernet frames to and from a network interface that is there (packet(7)).
//!
//! The interface is put into promiscuous mode, so that frames for other addresses than its own come too. What the host
//! itself sends through it is not seen, nor is what is sent here. Frames go and come in bursts (`burst`), and nothing
//! blocks. Opening takes CAP_NET_RAW; an open socket takes nothing. It sees the network namespace of the thread that
//! opened it.
//!
//! The socket stays with its interface when that is renamed, or goes down and up. When the interface is deleted or moved
//! to another namespace, the socket is done with for good.
//!
//! Left out: rings shared with the kernel (TPACKET), which save a copy and hold memory for the longest frame in each
//! place; segments that the kernel has merged (GRO) or not yet made (TSO).

#![expect(unsafe_code, reason = "addresses and options of packet sockets, and bursts, are untyped")]

mod burst;
mod hold;
mod request;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::netdevice::{index_to_name, name_to_index};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};

use crate::tap::InterfaceName;
pub use burst::{Arrived, LONGEST, Lost, ReceiveBurst, SendBurst};
pub use hold::Hold;
use request::Frames;

/// Why there is no packet socket.
#[derive(Debug, thiserror::Error)]
pub enum PacketError {
    /// Without privilege.
    #[error(
        "attaching to interface {name} needs root or CAP_NET_RAW; a tap that root has made beforehand needs neither"
    )]
    NotPermitted {
        /// The interface.
        name: InterfaceName,
    },
    /// There is no interface of this name.
    #[error("interface {name} does not exist; name one that `ip link` lists, or use a tap, which is made")]
    NoInterface {
        /// The interface.
        name: InterfaceName,
    },
    /// It carries something else.
    #[error("interface {name} carries no Ethernet frames; name one that does (link/ether in `ip link`)")]
    NotEthernet {
        /// The interface.
        name: InterfaceName,
    },
    /// The kernel refused.
    #[error("attaching to interface {name} failed: {source}")]
    System {
        /// The interface.
        name: InterfaceName,
        /// What the kernel said.
        source: io::Error,
    },
}

impl PacketError {
    fn of(error: io::Error, name: &InterfaceName) -> Self {
        let name = name.clone();
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::NotPermitted { name },
            Some(libc::ENODEV | libc::ENXIO) => Self::NoInterface { name },
            _ => Self::System { name, source: error },
        }
    }
}

/// How much the kernel may hold for a port that is late, bytes, if it may be asked for so much.
const BACKLOG: libc::c_int = 4 << 20;

/// A socket to which these frames of an interface come, and the interface's number. As long as it is open the interface takes in
/// frames for whatever address.
fn attach(name: &InterfaceName, frames: Frames) -> Result<(OwnedFd, u32), PacketError> {
    let system = |error: io::Error| PacketError::of(error, name);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // Without a protocol no frame of any interface comes before it is bound.
    let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)
        .map_err(|errno| system(errno.into()))?;
    let index = name_to_index(&fd, name.as_str()).map_err(|errno| system(errno.into()))?;
    if let Frames::All = frames {
        request::prepare(&fd, BACKLOG).map_err(system)?;
    }
    request::bind(&fd, index, frames).map_err(system)?;
    request::listen_to_all(&fd, index).map_err(system)?;
    if !request::bound(&fd).map_err(system)?.is_ethernet {
        return Err(PacketError::NotEthernet { name: name.clone() });
    }
    Ok((fd, index))
}

/// A packet socket on an interface.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    name: InterfaceName,
    missed: AtomicU64,
}

impl PacketSocket {
    /// Attaches to the interface of this name.
    ///
    /// # Errors
    /// See [`PacketError`].
    pub fn open(name: &InterfaceName) -> Result<Self, PacketError> {
        let (fd, _) = attach(name, Frames::All)?;
        Ok(Self { fd, name: name.clone(), missed: AtomicU64::new(0) })
    }

    /// Attaches to the interface of this name if there is one.
    ///
    /// # Errors
    /// See [`PacketError`].
    pub fn open_existing(name: &InterfaceName) -> Result<Option<Self>, PacketError> {
        match Self::open(name) {
            Err(PacketError::NoInterface { .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Takes over a descriptor that another process had from [`PacketSocket::open`] with this name; `None` if it is none,
    /// or its interface was deleted.
    #[must_use]
    pub fn adopt(fd: OwnedFd, name: &InterfaceName) -> Option<Self> {
        if sockopt::socket_domain(&fd) != Ok(AddressFamily::PACKET) {
            return None;
        }
        fcntl_setfl(&fd, fcntl_getfl(&fd).ok()? | OFlags::NONBLOCK).ok()?;
        let socket = Self { fd, name: name.clone(), missed: AtomicU64::new(0) };
        socket.interface().is_some().then_some(socket)
    }

    /// The name it was opened by.
    #[must_use]
    pub fn name(&self) -> &InterfaceName {
        &self.name
    }

    /// What the interface is called now; `None` if it was deleted.
    #[must_use]
    pub fn interface(&self) -> Option<String> {
        let index = request::bound(&self.fd).ok()?.index?;
        index_to_name(&self.fd, index).ok()
    }

    /// Takes what has come, as much as a burst holds, if everything of the last one was taken out.
    ///
    /// # Errors
    /// What the kernel says, if it is more than that the interface is down or gone.
    pub fn receive(&self, burst: &mut ReceiveBurst) -> io::Result<()> {
        match burst.fill(&self.fd) {
            Err(Errno::AGAIN | Errno::INTR | Errno::NETDOWN) => Ok(()),
            other => Ok(other?),
        }
    }

    /// Sends a burst; what cannot be sent is lost. Answers what that was.
    pub fn send(&self, burst: &mut SendBurst) -> Lost {
        burst.send(&self.fd)
    }

    /// Frames that came and for which the kernel held no more room, since it was opened.
    #[must_use]
    pub fn missed(&self) -> u64 {
        let news = request::take_missed(&self.fd).map_or(0, u64::from);
        self.missed.fetch_add(news, Ordering::Relaxed) + news
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
