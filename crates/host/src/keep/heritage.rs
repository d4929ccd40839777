//! Receives the file descriptors that were kept for a process when it starts.
//!
//! systemd passes them as open descriptors from 3 on (`sd_listen_fds(3)`). A keeper, or a predecessor that is still
//! running, sends them over a socket, which is the process's standard input: so nothing has to be arranged between
//! fork and exec. [`HandOverChannel`] carries the messages of a hand-over.

#![expect(unsafe_code, reason = "taking over descriptors that the parent has opened")]

use std::env;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::process::Command;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, socketpair,
    sockopt::{Timeout, set_socket_timeout},
};

use super::backing;
use super::message::{self, KeptFileDescriptors, value};
use super::store::{KeeperConnection, PATIENCE};

/// Environment variable that names the sender of kept file descriptors, and states that standard input is the socket
/// for receiving them.
const HERITAGE: &str = "SOFTIOV_HERITAGE";
pub(super) const KEEPER: &str = "keeper";
pub(super) const PREDECESSOR: &str = "predecessor";
/// Number of the first file descriptor that systemd passes (`SD_LISTEN_FDS_START`).
const FIRST: RawFd = 3;
/// Message by which the successor process announces itself, with its process id, before it takes the kept file
/// descriptors.
pub const STARTED: &str = "STARTED";
/// Message that ends a transfer: the sender has sent all kept file descriptors.
const END: &str = "END=1";

/// Reason why a process could not receive the file descriptors kept for it.
#[derive(Debug, thiserror::Error)]
pub enum InheritedFileDescriptorsError {
    /// The socket that receives the kept file descriptors failed.
    #[error("cannot receive the file descriptors kept for this process: {0}")]
    Socket(#[from] io::Error),
    /// The sender of kept file descriptors ended before it had sent all.
    #[error("the process that started this host has ended")]
    Gone,
    /// An environment variable by which a keeper or systemd passes file descriptors has an invalid value.
    #[error(
        "environment variable {0} is invalid: systemd or a keeper sets it, so unset it in the environment of `softiov serve`"
    )]
    Environment(&'static str),
}

/// Sender of kept file descriptors.
#[derive(Debug)]
pub enum FileDescriptorSender {
    /// The process was started by hand and received no kept file descriptors.
    NoSender,
    /// The keeper (the process that starts hosts) sent the kept file descriptors and keeps them.
    Keeper(KeeperConnection),
    /// The previous host process, which waits for the hand-over's result.
    Predecessor(HandOverChannel),
}

/// File descriptors that were kept for this process, and their sender.
#[derive(Debug)]
pub struct InheritedFileDescriptors {
    /// Kept file descriptors by their names.
    pub shelf: KeptFileDescriptors,
    /// Process that sent the kept file descriptors.
    pub from: FileDescriptorSender,
}

impl InheritedFileDescriptors {
    /// Returns true if the keeper process or the previous host process started this process.
    #[must_use]
    pub fn is_left_by_ours() -> bool {
        env::var_os(HERITAGE).is_some()
    }

    /// Receives the kept file descriptors, once in a process. Announces this process to the previous host process first
    /// ([`STARTED`]), which stops its ports only after the announcement.
    ///
    /// # Errors
    /// [`InheritedFileDescriptorsError`].
    pub fn take() -> Result<Self, InheritedFileDescriptorsError> {
        let Some(from) = env::var_os(HERITAGE) else {
            return Ok(Self { shelf: KeptFileDescriptors::default(), from: FileDescriptorSender::NoSender });
        };
        let socket = fcntl_dupfd_cloexec(io::stdin(), FIRST).map_err(io::Error::from)?;
        if from == PREDECESSOR {
            message::send(&socket, &format!("{STARTED}={}", std::process::id()), None)?;
        }
        let shelf = receive(&socket)?;
        let from = match from.to_str() {
            Some(KEEPER) => FileDescriptorSender::Keeper(KeeperConnection::over(socket)?),
            Some(PREDECESSOR) => FileDescriptorSender::Predecessor(HandOverChannel::over(socket)?),
            _ => return Err(InheritedFileDescriptorsError::Environment(HERITAGE)),
        };
        Ok(Self { shelf, from })
    }
}

/// Takes the file descriptors that systemd has stored for this process. No other code may have opened descriptors
/// before.
///
/// # Errors
/// [`InheritedFileDescriptorsError::Environment`].
pub(super) fn of_systemd() -> Result<KeptFileDescriptors, InheritedFileDescriptorsError> {
    let number = |name| env::var(name).ok().map(|text| text.parse::<u32>());
    let mut shelf = KeptFileDescriptors::default();
    let count = match (number("LISTEN_FDS"), number("LISTEN_PID")) {
        (None, _) => return Ok(shelf),
        (_, Some(Ok(pid))) if pid != std::process::id() => return Ok(shelf),
        (Some(Ok(count)), _) if count < 1 << 16 => count,
        _ => return Err(InheritedFileDescriptorsError::Environment("LISTEN_FDS")),
    };
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    for (fd, name) in (FIRST..).take(count as usize).zip(names.split(':')) {
        // SAFETY: systemd has opened this descriptor for us, and this process has taken none yet.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        fcntl_setfd(&fd, FdFlags::CLOEXEC).map_err(io::Error::from)?;
        for name in backing::split(name) {
            drop(shelf.put(name, fd.try_clone()?));
        }
    }
    Ok(shelf)
}

fn receive(socket: &OwnedFd) -> Result<KeptFileDescriptors, InheritedFileDescriptorsError> {
    let mut shelf = KeptFileDescriptors::default();
    while let Some(message) = message::receive(socket)? {
        if message.text == END {
            return Ok(shelf);
        }
        drop(shelf.apply(message));
    }
    Err(InheritedFileDescriptorsError::Gone)
}

/// Creates two connected sockets that preserve message boundaries.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Passes `command` the socket from which the process receives kept file descriptors. `from` names the sender:
/// [`KEEPER`] or [`PREDECESSOR`]. The process gets a process group of its own, so that a terminal's Ctrl-C reaches it
/// only through the keeper process.
pub(super) fn arrange<'a>(command: &'a mut Command, from: &str, socket: OwnedFd) -> &'a mut Command {
    use std::os::unix::process::CommandExt as _;
    command.env(HERITAGE, from).env_remove("LISTEN_FDS").env_remove("NOTIFY_SOCKET");
    command.stdin(socket).process_group(0)
}

/// Message channel between a process and its replacement.
#[derive(Debug)]
pub struct HandOverChannel(OwnedFd);

impl HandOverChannel {
    pub(super) fn over(socket: OwnedFd) -> io::Result<Self> {
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

/// Returns the number in the line `KEY=n` of a message, for the key `key`.
#[must_use]
pub fn number(text: &str, key: &str) -> Option<i32> {
    value(text, key)?.trim().parse().ok()
}
