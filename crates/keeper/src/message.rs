//! Messages between keeper and host with at most one file descriptor each, and the keeper's shelf (descriptors by
//! name), which the messages change.

use std::collections::BTreeMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// Longest message between keeper and host in bytes, and longest name of a kept file descriptor (systemd's limit).
const MAX_MESSAGE: usize = 1024;
const MAX_NAME: usize = 255;
/// Maximum number of file descriptors that a keeper process holds: enough for clients on 64 VFs of each of three ports,
/// with 131 descriptors each: 32 rings with two eventfds each, listening socket, connection, state and 64 regions of
/// memory.
pub(crate) const MAX_KEPT: usize = 32_768;

/// Message with at most one file descriptor between a keeper process and its host.
#[derive(Debug)]
pub(crate) struct KeeperMessage {
    pub(crate) text: String,
    pub(crate) fd: Option<OwnedFd>,
}

/// Sends one message between a keeper process and its host. Blocks if the socket does.
pub(crate) fn send(socket: impl AsFd, text: &str, fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = fd.map(|fd| [fd]);
    if let Some(fds) = &fds {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    loop {
        match sendmsg(&socket, &[IoSlice::new(text.as_bytes())], &mut control, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Receives one message between a keeper process and its host. Returns `None` if the peer has closed the socket. Blocks
/// if the socket does.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Option<KeeperMessage>> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut buffer = [0; MAX_MESSAGE];
    let received = loop {
        let into = &mut [IoSliceMut::new(&mut buffer)];
        match recvmsg(&socket, into, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(message) => break message,
            Err(Errno::INTR) => {}
            Err(Errno::CONNRESET) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    };
    let mut fd = None;
    for control in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut fds) = control {
            fd = fds.next();
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&buffer[..received.bytes.min(MAX_MESSAGE)]).into_owned();
    Ok(Some(KeeperMessage { text, fd }))
}

/// Returns the value of a key, in a message of `KEY=value` lines.
pub(crate) fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
}

/// Returns the number in the line `KEY=n` of a message, for the key `key`.
#[must_use]
pub fn number(text: &str, key: &str) -> Option<i32> {
    value(text, key)?.trim().parse().ok()
}

/// Returns true if systemd accepts the name of a stored file descriptor.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && !name.contains(|c: char| c == ':' || c.is_ascii_control())
}

/// Reason why a keeper process does not store a file descriptor that a host has sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeepFailure {
    /// The kernel has closed the descriptor, because the keeper process may open no more files.
    #[error(
        "the keeper process is out of file descriptors; raise LimitNOFILE= of the host's unit, or ulimit -Hn"
    )]
    OpenFiles,
    /// The keeper process holds its maximum number of file descriptors.
    #[error("the keeper process holds its maximum of {MAX_KEPT} file descriptors")]
    Full,
    /// The name is empty, too long, or has a colon or control characters.
    #[error("a name must have 1 to {MAX_NAME} bytes, no colon and no control characters")]
    Name,
    /// The names of one open file are too long together.
    #[error(
        "systemd stores an open file once under all of its names, which have more than {MAX_NAME} bytes: another keeper \
         process would lack it"
    )]
    JoinedNames,
}

/// File descriptors that the keeper process holds, by name.
#[derive(Debug, Default)]
pub struct KeptFileDescriptors(BTreeMap<String, OwnedFd>);

impl KeptFileDescriptors {
    /// Returns the reason why [`apply`](Self::apply) would not store the file descriptor of a message, or `None` if it would
    /// or the message stores none.
    pub(crate) fn refusal(&self, message: &KeeperMessage) -> Option<KeepFailure> {
        let text = &message.text;
        if value(text, "FDSTORE").is_none() || value(text, "FDSTOREREMOVE").is_some() {
            return None;
        }
        match value(text, "FDNAME").filter(|name| is_name(name)) {
            None => Some(KeepFailure::Name),
            Some(_) if message.fd.is_none() => Some(KeepFailure::OpenFiles),
            Some(name) => {
                (self.0.len() >= MAX_KEPT && !self.0.contains_key(name)).then_some(KeepFailure::Full)
            }
        }
    }

    /// Applies the file descriptor commands of a message and ignores the rest. Returns a descriptor that is no longer
    /// needed; closing it may block.
    #[must_use]
    pub(crate) fn apply(&mut self, message: KeeperMessage) -> Option<OwnedFd> {
        let refused = self.refusal(&message).is_some();
        let name = value(&message.text, "FDNAME").filter(|name| is_name(name));
        let (Some(name), false) = (name, refused) else { return message.fd };
        if value(&message.text, "FDSTOREREMOVE").is_some() {
            return self.0.remove(name);
        }
        match message.fd {
            Some(fd) if value(&message.text, "FDSTORE").is_some() => self.0.insert(name.to_owned(), fd),
            other => other,
        }
    }

    /// Stores a file descriptor under a name, in place of an earlier one. Returns the former descriptor of that name.
    pub fn put(&mut self, name: &str, fd: OwnedFd) -> Option<OwnedFd> {
        self.0.insert(name.to_owned(), fd)
    }

    /// Removes and returns the file descriptor stored under a name.
    pub fn take(&mut self, name: &str) -> Option<OwnedFd> {
        self.0.remove(name)
    }

    /// Returns the file descriptor stored under a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<BorrowedFd<'_>> {
        self.0.get(name).map(OwnedFd::as_fd)
    }

    /// Returns every file descriptor with its name, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, BorrowedFd<'_>)> {
        self.0.iter().map(|(name, fd)| (name.as_str(), fd.as_fd()))
    }

    /// Lends every file descriptor exclusively, in the order of names.
    pub(crate) fn descriptors_mut(&mut self) -> impl Iterator<Item = &mut OwnedFd> {
        self.0.values_mut()
    }

    /// Returns the number of kept file descriptors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if no file descriptor is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
