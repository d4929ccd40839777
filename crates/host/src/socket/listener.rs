//! Socket file that clients connect to.
//!
//! Binding distinguishes a dead process's socket from one in use, and removes nothing else. Hosts that bind in one folder
//! do so one after the other. At no moment may a user connect who has no access in the end. The socket's folder must
//! exist.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::fchmod;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, getsockname, listen,
    socket_with, sockopt,
};

use super::door::{BACKLOG, ListenerDoor};
use super::{SocketFilePermissions, StreamSocket};
use crate::folder::{self, SocketFolderError};

/// Maximum path length in bytes: `sun_path` of `sockaddr_un` holds 108 bytes, the last of them a zero.
const MAX_PATH: usize = 107;

/// Timeout of the lock on a socket's folder. Another host holds it for a few system calls; a test holds it for longer.
const LOCK_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 600 } else { 1 });

/// True once another process has held the lock of a folder for the whole timeout. Any user who may list the folder can: that delays a
/// host once, and not for each of its sockets.
static LOCK_IS_HELD: AtomicBool = AtomicBool::new(false);

/// Reason why a socket file could not be created.
#[derive(Debug, thiserror::Error)]
pub enum SocketFileError {
    /// The path of the socket does not fit into a socket address.
    #[error("socket path {} is longer than {MAX_PATH} bytes; choose a shorter path", path.display())]
    PathTooLong {
        /// Path of the socket that is too long.
        path: PathBuf,
    },
    /// A running process listens on the socket's path.
    #[error(
        "socket {} is in use by another process, perhaps by another host; end that process, or choose another path",
        path.display()
    )]
    AddrInUse {
        /// Path of the socket on which a running process listens.
        path: PathBuf,
    },
    /// The socket's path leads to a file that is not a socket. The file is not removed.
    #[error(
        "cannot create socket {}: a file that is not a socket has this path; remove the file, or choose another path",
        path.display()
    )]
    NotASocket {
        /// Path of the file that is not a socket.
        path: PathBuf,
    },
    /// The socket's folder is missing, or other users could replace the folder's contents.
    #[error(transparent)]
    Folder(#[from] SocketFolderError),
    /// The process may not give the socket file to its owner or group: only root may give files away, and other users
    /// only to groups of their own.
    #[error(
        "cannot {doing} socket {}: start the host as root, or as a member of that group",
        path.display()
    )]
    NotGiven {
        /// Path of the socket file.
        path: PathBuf,
        /// Failed action on the socket file, as an infinitive.
        doing: &'static str,
    },
    /// Another file has the path of this process's socket, or the socket file has a second name.
    #[error(
        "another process has replaced socket {}, or has linked its file: remove the file, and restart the host",
        path.display()
    )]
    Replaced {
        /// Path of the socket file.
        path: PathBuf,
    },
    /// The kernel refused to create the socket file.
    #[error("cannot {doing} socket {}", path.display())]
    System {
        /// Path of the socket file.
        path: PathBuf,
        /// Failed action on the socket file, as an infinitive.
        doing: &'static str,
        /// Kernel's error for the socket file.
        #[source]
        source: io::Error,
    },
}

/// Device and inode numbers, which identify a file.
pub(super) type SocketFileId = (u64, u64);

/// Listening socket with its socket file, which is removed on drop unless the file was left to another process.
#[derive(Debug)]
pub struct SocketListener {
    fd: OwnedFd,
    path: PathBuf,
    file: SocketFileId,
    /// Spare descriptor, released when the process is out of file descriptors, so that a client can be rejected instead
    /// of waking the port for ever.
    spare: Option<OwnedFd>,
    /// True if dropping the listener leaves the socket file in place.
    left: bool,
}

impl SocketListener {
    /// Creates the socket file at `path` with the given access, and replaces the file of a dead process.
    ///
    /// # Errors
    /// See [`SocketFileError`].
    pub fn bind(path: &Path, access: SocketFilePermissions) -> Result<Self, SocketFileError> {
        let address = match SocketAddrUnix::new(path) {
            Err(Errno::NAMETOOLONG) => return Err(SocketFileError::PathTooLong { path: path.to_owned() }),
            other => other.map_err(failure(path, "use the path of"))?,
        };
        folder::check(folder_of(path))?;
        // Until it listens: before that, this socket refuses connections like that of a dead process, and another host that
        // starts now would remove its file.
        let _lock = lock_folder_of(path);
        remove_stale(path, &address)?;
        let fd = new_socket().map_err(failure(path, "create"))?;
        // The file inherits the socket's mode, which excludes other users from the start.
        fchmod(&fd, access.first_mode()).map_err(failure(path, "set the mode of"))?;
        match bind(&fd, &address) {
            Err(Errno::ADDRINUSE) => return Err(SocketFileError::AddrInUse { path: path.to_owned() }),
            other => other.map_err(failure(path, "bind"))?,
        }
        let file = file_id(path).map_err(|source| system(path, "examine", source))?;
        let spare = spare(&fd);
        let listener = Self { fd, path: path.to_owned(), file, spare, left: false };
        // Before it listens: no client can connect yet.
        access.grant(path)?;
        listen(&listener.fd, BACKLOG).map_err(failure(path, "listen on"))?;
        Ok(listener)
    }

    /// Adopts the previous host process's listening socket, if it is bound to the file at `path`. The file stays on
    /// drop until [`SocketListener::own`] is called: the predecessor may resume.
    #[must_use]
    pub fn adopt(fd: OwnedFd, path: &Path) -> Option<Self> {
        let address = SocketAddrUnix::try_from(getsockname(&fd).ok()?).ok()?;
        // The predecessor may have bound another spelling of the path.
        let same = address.path().is_some_and(|bound| Path::new(OsStr::from_bytes(bound.to_bytes())) == path);
        let listens = sockopt::socket_acceptconn(&fd) == Ok(true);
        let file = file_id(path).ok().filter(|_| same && listens)?;
        let spare = spare(&fd);
        Some(Self { fd, path: path.to_owned(), file, spare, left: true })
    }

    /// Gives the adopted socket's file the access that the configuration grants now, which may differ from that of the previous
    /// host process.
    ///
    /// # Errors
    /// See [`SocketFileError`]. Then only the user of this process may connect, or the former users if this process may not
    /// change the file or its file is [replaced or linked](SocketFileError::Replaced).
    pub fn set_access(&self, access: SocketFilePermissions) -> Result<(), SocketFileError> {
        access.renew(&self.path, self.file)
    }

    /// Sets the maximum number of clients that wait to be accepted. Further ones wait in connect(2), or get `EAGAIN` if they do
    /// not block. Any process that has the socket may call it.
    ///
    /// # Errors
    /// None for a listening socket.
    pub fn set_backlog(&self, backlog: i32) -> io::Result<()> {
        Ok(listen(&self.fd, backlog)?)
    }

    /// Makes dropping the listener remove the socket file.
    pub fn own(&mut self) {
        self.left = false;
    }

    /// Closes the listening socket and leaves the socket's file, since another process listens on it from now on.
    pub fn leave(mut self) {
        self.left = true;
    }

    /// Returns the socket file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a copy of the listening socket by which another thread shuts and opens it for clients.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn door(&self) -> io::Result<ListenerDoor> {
        Ok(ListenerDoor::new(fcntl_dupfd_cloexec(&self.fd, 0)?, self.path.clone()))
    }

    /// Accepts a pending client, if there is one. When the process is out of file descriptors, rejects the client and
    /// returns an error; later clients can be accepted.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn accept(&mut self) -> io::Result<Option<StreamSocket>> {
        match self.accept_once() {
            Ok(fd) => Ok(Some(StreamSocket::accepted(fd))),
            Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => Ok(None),
            Err(error @ (Errno::MFILE | Errno::NFILE)) => self.turn_away(error),
            Err(error) => Err(error.into()),
        }
    }

    /// Rejects a pending client, when the process is out of file descriptors. The client may be missing: the kernel
    /// allocates the descriptor before it looks for one.
    fn turn_away(&mut self, error: Errno) -> io::Result<Option<StreamSocket>> {
        drop(self.spare.take());
        let waiting = self.accept_once().map(drop);
        self.spare = spare(&self.fd);
        if waiting == Err(Errno::AGAIN) { Ok(None) } else { Err(error.into()) }
    }

    fn accept_once(&self) -> rustix::io::Result<OwnedFd> {
        accept_with(&self.fd, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
    }
}

impl AsFd for SocketListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for SocketListener {
    fn drop(&mut self) {
        // A file that has replaced this one stays. So does that of a panicking thread, whose successor may have a
        // copy of the socket.
        if !self.left && !std::thread::panicking() && file_id(&self.path).is_ok_and(|file| file == self.file)
        {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Removes the socket file of a dead process. Only a refused connection proves that the process is dead.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> Result<(), SocketFileError> {
    let found = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(|source| system(path, "examine", source))?,
    };
    if !found.file_type().is_socket() {
        return Err(SocketFileError::NotASocket { path: path.to_owned() });
    }
    let probe = new_socket().map_err(failure(path, "create"))?;
    match connect(&probe, address) {
        Err(Errno::CONNREFUSED) => {}
        Err(Errno::NOENT) => return Ok(()),
        // A full backlog means a running listener; a datagram socket belongs to another program.
        Ok(()) | Err(Errno::AGAIN | Errno::PROTOTYPE) => {
            return Err(SocketFileError::AddrInUse { path: path.to_owned() });
        }
        Err(error) => return Err(system(path, "connect to", error.into())),
    }
    // Another process may have replaced the stale file meanwhile; then its file stays.
    if file_id(path).is_ok_and(|file| file == (found.dev(), found.ino())) {
        std::fs::remove_file(path).map_err(|source| system(path, "replace", source))?;
    }
    Ok(())
}

/// Locks the folder of a socket as [`folder::lock`] does. Waits at most once in a process for a lock that is not released.
fn lock_folder_of(path: &Path) -> Option<OwnedFd> {
    let began = Instant::now();
    let timeout = if LOCK_IS_HELD.load(Ordering::Relaxed) { Duration::ZERO } else { LOCK_TIMEOUT };
    let lock = folder::lock(folder_of(path), timeout);
    if lock.is_none() && began.elapsed() >= LOCK_TIMEOUT {
        LOCK_IS_HELD.store(true, Ordering::Relaxed);
    }
    lock
}

pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn new_socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Duplicates the listening socket as a spare file descriptor, since a port's thread may open no file.
fn spare(listener: &OwnedFd) -> Option<OwnedFd> {
    fcntl_dupfd_cloexec(listener, 0).ok()
}

fn file_id(path: &Path) -> io::Result<SocketFileId> {
    std::fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

fn failure(path: &Path, doing: &'static str) -> impl FnOnce(Errno) -> SocketFileError + use<> {
    let path = path.to_owned();
    move |errno| SocketFileError::System { path, doing, source: errno.into() }
}

fn system(path: &Path, doing: &'static str, source: io::Error) -> SocketFileError {
    SocketFileError::System { path: path.to_owned(), doing, source }
}
