//! Packet socket: whole Ethernet frames to and from an existing network interface (packet(7)).
//!
//! The interface is put into promiscuous mode, so that frames for other addresses arrive too. Frames that the host
//! itself sends, by this socket or others, are not received. Frames are sent and received in bursts (`burst`),
//! without blocking. Opening takes CAP_NET_RAW; an open socket takes no privilege. It sees the network namespace of
//! the thread that opened it.
//!
//! The socket stays with its interface on a rename, and when it goes down and up. When the interface is deleted or
//! moved to another namespace, the socket is unusable from then on.
//!
//! Rings shared with the kernel (TPACKET) are not used: they save a copy, but hold memory for the longest frame in
//! each slot. Segments that the kernel has merged (GRO) or not yet made (TSO) are not received.

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
pub use burst::{LONGEST, PacketReceiveResult, ReceiveBurst, SendBurst, UnsentFrameCounts};
pub use hold::InterfaceHoldSocket;
use request::ReceivedFrameSelection;

/// Reason why a packet socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum PacketSocketError {
    /// The process lacks CAP_NET_RAW, which a packet socket requires.
    #[error(
        "cannot attach to interface {name}: that needs root or CAP_NET_RAW; a tap that root has created needs neither"
    )]
    NotPermitted {
        /// Interface that the socket was to receive from.
        name: InterfaceName,
    },
    /// No interface has the requested name.
    #[error("interface {name} does not exist; name one that `ip link` lists, or use a tap, which is created")]
    NoInterface {
        /// Requested name, which no interface has.
        name: InterfaceName,
    },
    /// The interface has another link type than Ethernet.
    #[error("interface {name} carries no Ethernet frames; name one that does (link/ether in `ip link`)")]
    NotEthernet {
        /// Interface of another link type than Ethernet.
        name: InterfaceName,
    },
    /// The kernel refused to open the packet socket.
    #[error("cannot attach to interface {name}: {source}")]
    System {
        /// Interface that the socket was to receive from.
        name: InterfaceName,
        /// Kernel's error for the packet socket.
        source: io::Error,
    },
}

impl PacketSocketError {
    fn of(error: io::Error, name: &InterfaceName) -> Self {
        let name = name.clone();
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::NotPermitted { name },
            Some(libc::ENODEV | libc::ENXIO) => Self::NoInterface { name },
            _ => Self::System { name, source: error },
        }
    }
}

/// Receive buffer of the socket in bytes, for a port that is late to read frames. The kernel may grant less.
const BACKLOG: libc::c_int = 4 << 20;

/// Opens a packet socket on an interface, and returns it with the interface index. While the socket is open, the
/// interface accepts frames for any address.
fn attach(name: &InterfaceName, frames: ReceivedFrameSelection) -> Result<(OwnedFd, u32), PacketSocketError> {
    let system = |error: io::Error| PacketSocketError::of(error, name);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // Without a protocol no frame arrives before the socket is bound to its interface.
    let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)
        .map_err(|errno| system(errno.into()))?;
    let index = name_to_index(&fd, name.as_str()).map_err(|errno| system(errno.into()))?;
    if let ReceivedFrameSelection::All = frames {
        request::prepare(&fd, BACKLOG).map_err(system)?;
    }
    request::bind(&fd, index, frames).map_err(system)?;
    request::listen_to_all(&fd, index).map_err(system)?;
    if !request::bound(&fd).map_err(system)?.is_ethernet {
        return Err(PacketSocketError::NotEthernet { name: name.clone() });
    }
    Ok((fd, index))
}

/// Packet socket that sends and receives the frames of an interface.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    name: InterfaceName,
    missed: AtomicU64,
    /// Number of received packets that the kernel cannot describe and has reported to a call that sends. [`Self::receive`] returns
    /// them.
    undescribed: AtomicU64,
}

impl PacketSocket {
    /// Opens a packet socket on the interface of this name.
    ///
    /// # Errors
    /// See [`PacketSocketError`].
    pub fn open(name: &InterfaceName) -> Result<Self, PacketSocketError> {
        let (fd, _) = attach(name, ReceivedFrameSelection::All)?;
        Ok(Self { fd, name: name.clone(), missed: AtomicU64::new(0), undescribed: AtomicU64::new(0) })
    }

    /// Opens a packet socket on the interface of this name, or returns `None` if there is none.
    ///
    /// # Errors
    /// See [`PacketSocketError`].
    pub fn open_existing(name: &InterfaceName) -> Result<Option<Self>, PacketSocketError> {
        match Self::open(name) {
            Err(PacketSocketError::NoInterface { .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Adopts a file descriptor of another process's [`PacketSocket`] with this name. Returns `None` if it is not a
    /// packet socket, or its interface was deleted.
    #[must_use]
    pub fn adopt(fd: OwnedFd, name: &InterfaceName) -> Option<Self> {
        if sockopt::socket_domain(&fd) != Ok(AddressFamily::PACKET) {
            return None;
        }
        fcntl_setfl(&fd, fcntl_getfl(&fd).ok()? | OFlags::NONBLOCK).ok()?;
        let socket =
            Self { fd, name: name.clone(), missed: AtomicU64::new(0), undescribed: AtomicU64::new(0) };
        socket.interface().is_some().then_some(socket)
    }

    /// Returns the interface name that the socket was opened with.
    #[must_use]
    pub fn name(&self) -> &InterfaceName {
        &self.name
    }

    /// Returns the interface's current name, or `None` if it was deleted.
    #[must_use]
    pub fn interface(&self) -> Option<String> {
        let index = request::bound(&self.fd).ok()?.index?;
        index_to_name(&self.fd, index).ok()
    }

    /// Receives up to a burst of pending frames, if every frame of the last burst was taken.
    ///
    /// # Errors
    /// The kernel's error, except that the interface is down or deleted, or that the kernel cannot describe a packet.
    pub fn receive(&self, burst: &mut ReceiveBurst) -> io::Result<()> {
        let take = |left: u64| left.checked_sub(1);
        if burst.is_empty()
            && self.undescribed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
        {
            burst.put_malformed();
            return Ok(());
        }
        match burst.fill(&self.fd) {
            Err(Errno::AGAIN | Errno::INTR | Errno::NETDOWN) => Ok(()),
            other => Ok(other?),
        }
    }

    /// Sends a burst of frames on the interface. Frames that cannot be sent are dropped and counted in the result.
    pub fn send(&self, burst: &mut SendBurst) -> UnsentFrameCounts {
        let (lost, is_received) = burst.send(&self.fd);
        self.undescribed.fetch_add(is_received.into(), Ordering::Relaxed);
        lost
    }

    /// Returns the number of frames dropped by the kernel for a full receive buffer since the socket was opened.
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
