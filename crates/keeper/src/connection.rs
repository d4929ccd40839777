//! Host's connection to its keeper process, which holds the host's file descriptors. Each call may block while the
//! keeper is busy, for a bounded time, so threads that move frames must not make such calls.

use std::collections::BTreeSet;
use std::env;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with,
    sockopt::{Timeout, set_socket_timeout},
};
use rustix::process::{Resource, getrlimit};

use crate::channel::{self, HandOverChannel, PATIENCE};
use crate::log::becomes_ready;
use crate::message::{self, KeepFailure, KeptFileDescriptors, MAX_KEPT};

/// Request to the keeper process to start a replacement of this process. systemd does not support it.
pub(crate) const SUCCEED: &str = "SUCCEED=1";
/// Request to the keeper process to end the replacement of this process. systemd does not support it.
pub(crate) const ABANDON: &str = "ABANDON=1";

/// Number of file descriptors that a keeper process opens for itself: sockets, processes, pollers and the standard ones.
const OWN: usize = 64;

/// Connection to the keeper process, which holds this process's file descriptors.
#[derive(Debug)]
pub struct KeeperConnection {
    socket: OwnedFd,
    limit: KeepLimit,
    /// Names of the file descriptors that the keeper process holds. The keeper does not reply, so this process counts.
    names: Mutex<BTreeSet<String>>,
}

/// Maximum number of file descriptors that a keeper process can hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeepLimit {
    pub(crate) most: usize,
    /// Source of the limit, and the remedy.
    pub(crate) source: &'static str,
}

impl KeepLimit {
    /// Returns the limit of a keeper process. The keeper has the limit of open files that this process was started with,
    /// since its starter has started this process.
    fn of_keeper() -> Self {
        let files = getrlimit(Resource::Nofile).current.and_then(|limit| usize::try_from(limit).ok());
        match files.map(|files| files.saturating_sub(OWN)).filter(|most| *most < MAX_KEPT) {
            Some(most) => {
                let source =
                    "by its limit of open files; raise LimitNOFILE= of the host's unit, or ulimit -Hn";
                Self { most, source }
            }
            None => Self {
                most: MAX_KEPT,
                source: "at most; reduce the number of VFs or of their clients' memory regions",
            },
        }
    }
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

    /// States which file descriptors the keeper process holds already: those of the process before. [`keep`](Self::keep)
    /// counts them.
    #[must_use]
    pub fn holding(self, shelf: &KeptFileDescriptors) -> Self {
        let names = shelf.iter().map(|(name, _)| name.to_owned()).collect();
        Self { names: Mutex::new(names), ..self }
    }

    /// Creates a connection to a keeper process over `socket`, which must preserve message boundaries.
    ///
    /// # Errors
    /// The descriptor is not a socket.
    pub fn over(socket: OwnedFd) -> io::Result<Self> {
        Self::with_limit(socket, KeepLimit::of_keeper())
    }

    pub(crate) fn with_limit(socket: OwnedFd, limit: KeepLimit) -> io::Result<Self> {
        set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))?;
        Ok(Self { socket, limit, names: Mutex::default() })
    }

    /// Has the keeper process store a copy of a file descriptor under an unused name. Names have up to 255 bytes, no
    /// colon and no control characters.
    ///
    /// # Errors
    /// `InvalidInput` for an invalid name; `QuotaExceeded`, with the limit and its remedy, if the keeper can hold no more
    /// descriptors; the keeper has ended, or reads no message for two seconds.
    pub fn keep(&self, name: &str, fd: BorrowedFd<'_>) -> io::Result<()> {
        if !message::is_name(name) {
            let length = name.len();
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("invalid name of a file descriptor {name:?} ({length} bytes): {}", KeepFailure::Name),
            ));
        }
        let mut names = self.names();
        if names.len() >= self.limit.most && !names.contains(name) {
            let KeepLimit { most, source } = self.limit;
            return Err(io::Error::new(
                io::ErrorKind::QuotaExceeded,
                format!(
                    "cannot keep file descriptor {name:?}: the keeper holds {most} file descriptors {source}"
                ),
            ));
        }
        message::send(&self.socket, &format!("FDSTORE=1\nFDNAME={name}\nFDPOLL=0"), Some(fd))?;
        names.insert(name.to_owned());
        Ok(())
    }

    /// Asks the keeper process to close the file descriptor stored under a name.
    ///
    /// # Errors
    /// Returns the errors of [`KeeperConnection::keep`].
    pub fn forget(&self, name: &str) -> io::Result<()> {
        let mut names = self.names();
        message::send(&self.socket, &format!("FDSTOREREMOVE=1\nFDNAME={name}"), None)?;
        names.remove(name);
        Ok(())
    }

    /// Returns true if the keeper process holds a file descriptor under this name.
    #[must_use]
    pub fn holds(&self, name: &str) -> bool {
        self.names().contains(name)
    }

    /// Waits at most `time` until there is room for a message to the keeper process. Returns false after `time`.
    #[must_use]
    pub fn has_room_within(&self, time: Duration) -> bool {
        becomes_ready(&self.socket, PollFlags::OUT, time)
    }

    fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
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
