//! Observes network interfaces by rtnetlink: receives notifications of changes, and requests an interface's current
//! state.
//!
//! A notification is only a hint to look again. The state is requested when it matters, so notifications that the
//! kernel dropped (ENOBUFS) cost one request. Both sockets see the network namespace of the thread that created
//! them.
//!
//! Addresses, routes, statistics and other namespaces are not observed; interfaces are not changed.

mod message;
#[cfg(test)]
mod tests;

use std::fs::metadata;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{bind, recv, send, socket_with};

use message::NetlinkReply;
pub use message::NetworkLinkState;

/// Size in bytes of the buffer for netlink messages. The kernel's messages about one interface stay below 8 KiB
/// (NLMSG_GOODSIZE).
const BUFFER: usize = 32 << 10;
/// Maximum number of notifications read in one call of [`LinkMonitor::hear`]; later ones keep the file descriptor
/// readable.
const READS: usize = 64;
/// Multicast group of interface notifications, as a bit (RTMGRP_LINK).
const NEWS: u32 = libc::RTMGRP_LINK as u32;

/// File of the calling thread's network namespace (namespaces(7)).
const NAMESPACE: &str = "/proc/thread-self/ns/net";

/// Result of reading the pending notifications about interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkNotifications {
    /// No pending notification is about an interface of interest.
    Unrelated,
    /// At least one pending notification is about an interface of interest.
    Related,
    /// The kernel has dropped notifications: any interface may have changed.
    Lost,
}

/// Netlink socket that reports the interfaces of a network namespace. Readable when a notification is pending.
#[derive(Debug)]
pub struct LinkMonitor {
    news: OwnedFd,
    questions: OwnedFd,
    /// Inode of the network namespace, or 0 if `/proc` is missing.
    namespace: u64,
    buffer: Box<[u8]>,
}

impl LinkMonitor {
    /// Observes the interfaces of the calling thread's network namespace from now on.
    ///
    /// # Errors
    /// The process is out of descriptors, or may not open netlink sockets.
    pub fn new() -> io::Result<Self> {
        let namespace = metadata(NAMESPACE).map_or(0, |namespace| namespace.ino());
        Ok(Self { news: open(NEWS)?, questions: open(0)?, namespace, buffer: vec![0; BUFFER].into() })
    }

    /// Returns the inode of the network namespace, by which interfaces of different namespaces with the same index differ.
    #[must_use]
    pub fn namespace(&self) -> u64 {
        self.namespace
    }

    /// Reads pending interface notifications without blocking. `related` returns true for an interface of interest,
    /// given its index and name.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn hear(&mut self, mut related: impl FnMut(u32, &str) -> bool) -> io::Result<LinkNotifications> {
        let mut heard = LinkNotifications::Unrelated;
        for _ in 0..READS {
            match recv(&self.news, &mut *self.buffer, RecvFlags::DONTWAIT) {
                Ok((length, _)) => {
                    let changed = message::changes(&self.buffer[..length]);
                    for (index, name) in changed {
                        if related(index, name) {
                            heard = heard.max(LinkNotifications::Related);
                        }
                    }
                }
                Err(Errno::NOBUFS) => heard = LinkNotifications::Lost,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(heard)
    }

    /// Requests the current state of an interface by its name. Returns `None` if no interface has the name. May wait
    /// for the kernel's lock on interfaces.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn look_up(&mut self, name: &str) -> io::Result<Option<NetworkLinkState>> {
        // An unread reply to an earlier request would be read as the reply to this one.
        while recv(&self.questions, &mut *self.buffer, RecvFlags::DONTWAIT).is_ok() {}
        send(&self.questions, &message::question(name), SendFlags::empty())?;
        // The kernel has queued its reply before `send` returns.
        let (length, _) = recv(&self.questions, &mut *self.buffer, RecvFlags::DONTWAIT)?;
        match message::answer(&self.buffer[..length]) {
            Some(NetlinkReply::Link(link)) => Ok(Some(link)),
            Some(NetlinkReply::Error(Errno::NODEV)) => Ok(None),
            Some(NetlinkReply::Error(error)) => Err(error.into()),
            None => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "unexpected rtnetlink reply: not an interface",
            )),
        }
    }
}

impl AsFd for LinkMonitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }
}

fn open(groups: u32) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // Protocol 0 is NETLINK_ROUTE.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    bind(&socket, &SocketAddrNetlink::new(0, groups))?;
    Ok(socket)
}
