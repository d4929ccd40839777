//! Host's connection to its keeper process, which holds the host's file descriptors. Each call may block while the
//! keeper is busy, for a bounded time, so threads that move frames must not make such calls.

use std::env;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with,
    sockopt::{Timeout, set_socket_timeout},
};

use crate::channel::{self, HandOverChannel, PATIENCE};
use crate::message;

/// Request to the keeper process to start a replacement of this process. systemd does not support it.
pub(crate) const SUCCEED: &str = "SUCCEED=1";
/// Request to the keeper process to end the replacement of this process. systemd does not support it.
pub(crate) const ABANDON: &str = "ABANDON=1";

/// Connection to the keeper process, which holds this process's file descriptors.
#[derive(Debug)]
pub struct KeeperConnection {
    socket: OwnedFd,
}

impl KeeperConnection {
    /// Connects to systemd, if systemd has started this process as a unit with a file descriptor store (`$FDSTORE`,
    /// systemd 254).
    ///
    /// # Errors
    /// systemd's socket cannot be reached.
    pub fn of_systemd() -> io::Result<Option<Self>> {
        let room = env::var("FDSTORE").ok().and_then(|room| room.parse::<u32>().ok());
        if room.is_some_and(|room| room > 0) { Self::notify() } else { Ok(None) }
    }

    /// Connects to the service manager that waits for this process's readiness (`$NOTIFY_SOCKET`).
    ///
    /// # Errors
    /// The socket cannot be reached.
    pub fn notify() -> io::Result<Option<Self>> {
        let Some(path) = env::var_os("NOTIFY_SOCKET") else { return Ok(None) };
        let path = path.into_encoded_bytes();
        let address = match path.strip_prefix(b"@") {
            Some(name) => SocketAddrUnix::new_abstract_name(name)?,
            None => SocketAddrUnix::new(path.as_slice())?,
        };
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        connect(&socket, &address)?;
        Self::over(socket).map(Some)
    }

    /// Creates a connection to a keeper process over `socket`, which must preserve message boundaries.
    ///
    /// # Errors
    /// The descriptor is not a socket.
    pub fn over(socket: OwnedFd) -> io::Result<Self> {
        set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))?;
        Ok(Self { socket })
    }

    /// Has the keeper process store a copy of a file descriptor under an unused name. Names have up to 255 bytes, no
    /// colon and no control characters.
    ///
    /// # Errors
    /// `InvalidInput` for an invalid name; the keeper has ended, or reads no message for two seconds.
    pub fn keep(&self, name: &str, fd: BorrowedFd<'_>) -> io::Result<()> {
        if !message::is_name(name) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "invalid name of a file descriptor {name:?}: 1 to 255 bytes, no colon, no control characters"
                ),
            ));
        }
        message::send(&self.socket, &format!("FDSTORE=1\nFDNAME={name}\nFDPOLL=0"), Some(fd))
    }

    /// Asks the keeper process to close the file descriptor stored under a name.
    ///
    /// # Errors
    /// Returns the errors of [`KeeperConnection::keep`].
    pub fn forget(&self, name: &str) -> io::Result<()> {
        message::send(&self.socket, &format!("FDSTOREREMOVE=1\nFDNAME={name}"), None)
    }

    /// Asks the keeper process to start the replacement of this process. Returns the channel to the successor process.
    ///
    /// # Errors
    /// Returns the errors of [`KeeperConnection::keep`].
    pub fn succeed(&self) -> io::Result<HandOverChannel> {
        let (ours, theirs) = channel::pair()?;
        message::send(&self.socket, SUCCEED, Some(theirs.as_fd()))?;
        HandOverChannel::over(ours)
    }

    /// Asks the keeper process to end the replacement that it started last.
    ///
    /// # Errors
    /// Returns the errors of [`KeeperConnection::keep`].
    pub fn abandon(&self) -> io::Result<()> {
        message::send(&self.socket, ABANDON, None)
    }

    /// Reports the state of this process to the keeper: `READY=1`, `STOPPING=1`, `MAINPID=`, `STATUS=`.
    ///
    /// # Errors
    /// Returns the errors of [`KeeperConnection::keep`].
    pub fn say(&self, text: &str) -> io::Result<()> {
        message::send(&self.socket, text, None)
    }
}

impl AsFd for KeeperConnection {
    /// Returns the socket to the keeper process, which the successor process inherits.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
