//! The side that has descriptors kept. Each call may block while the keeper is busy, for a bounded time: not for a
//! thread that moves frames.

use std::env;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with,
    sockopt::{Timeout, set_socket_timeout},
};

use super::message;

/// How long a keeper may take to read a message.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// A keeper of descriptors.
#[derive(Debug)]
pub struct Store {
    socket: OwnedFd,
}

impl Store {
    /// systemd, if it has started this process as a unit with a file descriptor store (`$NOTIFY_SOCKET` and
    /// `$FDSTORE`, systemd 254).
    ///
    /// # Errors
    /// systemd's socket cannot be reached.
    pub fn of_systemd() -> io::Result<Option<Self>> {
        let room = env::var("FDSTORE").ok().and_then(|room| room.parse::<u32>().ok());
        let (Some(path), Some(1..)) = (env::var_os("NOTIFY_SOCKET"), room) else { return Ok(None) };
        let path = path.into_encoded_bytes();
        let address = match path.strip_prefix(b"@") {
            Some(name) => SocketAddrUnix::new_abstract_name(name)?,
            None => SocketAddrUnix::new(path.as_slice())?,
        };
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        connect(&socket, &address)?;
        Self::over(socket).map(Some)
    }

    /// A keeper at the other end of a socket that keeps messages apart.
    ///
    /// # Errors
    /// It is not a socket.
    pub fn over(socket: OwnedFd) -> io::Result<Self> {
        set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))?;
        Ok(Self { socket })
    }

    /// Has a copy of a descriptor kept under a name, which nothing else is kept under. Names have up to 255 bytes, no
    /// colon and no control characters.
    ///
    /// # Errors
    /// `InvalidInput` for a name that cannot be; the keeper is gone, or takes no message for two seconds.
    pub fn keep(&self, name: &str, fd: BorrowedFd<'_>) -> io::Result<()> {
        if !message::is_name(name) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} cannot be a name")));
        }
        message::send(&self.socket, &format!("FDSTORE=1\nFDNAME={name}\nFDPOLL=0"), Some(fd))
    }

    /// Has what is kept under a name given up.
    ///
    /// # Errors
    /// As [`Store::keep`].
    pub fn forget(&self, name: &str) -> io::Result<()> {
        message::send(&self.socket, &format!("FDSTOREREMOVE=1\nFDNAME={name}"), None)
    }

    /// Says something about this process: `READY=1`, `STOPPING=1`, `MAINPID=`, `STATUS=`.
    ///
    /// # Errors
    /// As [`Store::keep`].
    pub fn say(&self, text: &str) -> io::Result<()> {
        message::send(&self.socket, text, None)
    }
}

impl AsFd for Store {
    /// The socket, for a successor.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
