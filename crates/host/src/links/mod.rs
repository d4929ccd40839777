//! What the kernel tells of network interfaces, by rtnetlink: that one has changed, and how one is now.
//!
//! The kernel's news are taken as a hint to look again. How an interface is, is asked for when it matters, so news
//! that the kernel had to drop (ENOBUFS) cost one question more and nothing else. Both sockets see the network
//! namespace of the thread that made them.
//!
//! Left out: addresses, routes, statistics, changing an interface, and interfaces of other namespaces.

mod message;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{bind, recv, send, socket_with};

use message::Answer;
pub use message::Link;

/// The kernel's messages about one interface stay below 8 KiB (NLMSG_GOODSIZE).
const BUFFER: usize = 32 << 10;
/// Reads in one visit; what is left makes the descriptor readable again.
const READS: usize = 64;
/// The group of news about interfaces, as a bit (RTMGRP_LINK).
const NEWS: u32 = libc::RTMGRP_LINK as u32;

/// What a visit heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heard {
    /// Nothing, or news of interfaces that nobody asked about.
    Unrelated,
    /// News of an interface that was asked about.
    Related,
    /// The kernel has dropped news: anything may have changed.
    Lost,
}

/// The interfaces of a network namespace. Readable when there is news.
#[derive(Debug)]
pub struct Links {
    news: OwnedFd,
    questions: OwnedFd,
    buffer: Box<[u8]>,
}

impl Links {
    /// The interfaces of the calling thread's network namespace; news from now on.
    ///
    /// # Errors
    /// The process is out of descriptors, or may not have netlink sockets.
    pub fn new() -> io::Result<Self> {
        Ok(Self { news: open(NEWS)?, questions: open(0)?, buffer: vec![0; BUFFER].into() })
    }

    /// Takes the news without waiting. `related` is asked about each interface that has changed, by index and name.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn hear(&mut self, mut related: impl FnMut(u32, &str) -> bool) -> io::Result<Heard> {
        let mut heard = Heard::Unrelated;
        for _ in 0..READS {
            match recv(&self.news, &mut *self.buffer, RecvFlags::DONTWAIT) {
                Ok((length, _)) => {
                    let changed = message::changes(&self.buffer[..length]);
                    for (index, name) in changed {
                        if related(index, name) {
                            heard = heard.max(Heard::Related);
                        }
                    }
                }
                Err(Errno::NOBUFS) => heard = Heard::Lost,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(heard)
    }

    /// How the interface of this name is now; `None` if there is none. May wait for the kernel's lock on interfaces.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn look_up(&mut self, name: &str) -> io::Result<Option<Link>> {
        // What an earlier question left unread would be taken for the answer to this one.
        while recv(&self.questions, &mut *self.buffer, RecvFlags::DONTWAIT).is_ok() {}
        send(&self.questions, &message::question(name), SendFlags::empty())?;
        // The kernel has answered before `send` returns.
        let (length, _) = recv(&self.questions, &mut *self.buffer, RecvFlags::DONTWAIT)?;
        match message::answer(&self.buffer[..length]) {
            Some(Answer::Link(link)) => Ok(Some(link)),
            Some(Answer::Error(Errno::NODEV)) => Ok(None),
            Some(Answer::Error(error)) => Err(error.into()),
            None => Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer is no interface")),
        }
    }
}

impl AsFd for Links {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }
}

fn open(groups: u32) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // No protocol is NETLINK_ROUTE.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    bind(&socket, &SocketAddrNetlink::new(0, groups))?;
    Ok(socket)
}
