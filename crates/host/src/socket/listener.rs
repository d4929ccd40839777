//! A socket file that clients connect to.
//!
//! Binding tells a socket left behind by a dead process from one in use, and never removes anything else. At no moment
//! may anybody connect who may not in the end. Left out: making the folder it is in.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::fchmod;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, getsockname, listen,
    socket_with, sockopt,
};

use super::{Access, Stream};
use crate::folder::{self, FolderError};

/// `sun_path` of `sockaddr_un` holds 108 bytes, the last of them a zero.
const MAX_PATH: usize = 107;
/// Clients that may wait to be accepted: one is served at a time, and its successor may wait.
const BACKLOG: i32 = 8;

/// Why a socket file could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The path does not fit into a socket address.
    #[error("socket path {} is longer than the {MAX_PATH} bytes that are possible", path.display())]
    PathTooLong {
        /// The path asked for.
        path: PathBuf,
    },
    /// A living process listens there.
    #[error("socket {} is in use by another process", path.display())]
    AddrInUse {
        /// The path asked for.
        path: PathBuf,
    },
    /// Something is there that is not a socket, and stays.
    #[error("{} exists and is not a socket", path.display())]
    NotASocket {
        /// The path asked for.
        path: PathBuf,
    },
    /// The folder is missing, or others could replace what is in it.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Only root may give files away, and only to a group of its own may anybody else.
    #[error(
        "socket {} could not be {doing}: start the host as root, or as a member of that group",
        path.display()
    )]
    NotGiven {
        /// The path asked for.
        path: PathBuf,
        /// Which step failed.
        doing: &'static str,
    },
    /// Another process put something in the socket's place at once.
    #[error("socket {} was replaced by somebody else while it was made", path.display())]
    Replaced {
        /// The path asked for.
        path: PathBuf,
    },
    /// The kernel refused.
    #[error("socket {} could not be {doing}", path.display())]
    System {
        /// The path asked for.
        path: PathBuf,
        /// Which step failed.
        doing: &'static str,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
}

/// Device and inode: whether a file is still the one it was.
type FileId = (u64, u64);

/// A listening socket and its file, which goes when the listener does.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    path: PathBuf,
    file: FileId,
    /// A descriptor kept to be given up when there is no other, so that a client can be turned away rather
    /// than be left to wake us again and again.
    spare: Option<OwnedFd>,
    /// The file stays when the listener goes.
    left: bool,
}

impl Listener {
    /// Makes the socket file at `path` for those who may connect, replacing one that nobody listens on any more.
    ///
    /// # Errors
    /// See [`BindError`].
    pub fn bind(path: &Path, access: Access) -> Result<Self, BindError> {
        let address = match SocketAddrUnix::new(path) {
            Err(Errno::NAMETOOLONG) => return Err(BindError::PathTooLong { path: path.to_owned() }),
            other => other.map_err(failure(path, "named"))?,
        };
        folder::check(folder_of(path))?;
        remove_stale(path, &address)?;
        let fd = new_socket().map_err(failure(path, "created"))?;
        // Before there is a file: the file takes the mode of the socket, and is never open to others.
        fchmod(&fd, access.first_mode()).map_err(failure(path, "protected"))?;
        match bind(&fd, &address) {
            Err(Errno::ADDRINUSE) => return Err(BindError::AddrInUse { path: path.to_owned() }),
            other => other.map_err(failure(path, "bound"))?,
        }
        let file = file_id(path).map_err(|source| system(path, "examined", source))?;
        let spare = spare(&fd);
        let listener = Self { fd, path: path.to_owned(), file, spare, left: false };
        // Before it listens: nobody can connect yet.
        access.grant(path)?;
        listen(&listener.fd, BACKLOG).map_err(failure(path, "listened on"))?;
        Ok(listener)
    }

    /// Takes over a predecessor's listening socket, if it is the one behind the file at `path`. The file stays when this
    /// goes, until [`Listener::own`] is called: the predecessor may yet go on.
    #[must_use]
    pub fn adopt(fd: OwnedFd, path: &Path) -> Option<Self> {
        let address = SocketAddrUnix::try_from(getsockname(&fd).ok()?).ok()?;
        let same =
            address.path().is_some_and(|bound| bound.to_bytes() == path.as_os_str().as_encoded_bytes());
        let listens = sockopt::socket_acceptconn(&fd) == Ok(true);
        let file = file_id(path).ok().filter(|_| same && listens)?;
        let spare = spare(&fd);
        Some(Self { fd, path: path.to_owned(), file, spare, left: true })
    }

    /// The file goes with this from now on.
    pub fn own(&mut self) {
        self.left = false;
    }

    /// Lets go of the socket and leaves its file: somebody else listens there from now on.
    pub fn leave(mut self) {
        self.left = true;
    }

    /// The socket file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Accepts a client, if one waits. When the process is out of descriptors the client is turned away and
    /// the error says so; the next one can be accepted again.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn accept(&mut self) -> io::Result<Option<Stream>> {
        match self.accept_once() {
            Ok(fd) => Ok(Some(Stream::accepted(fd))),
            Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => Ok(None),
            Err(error @ (Errno::MFILE | Errno::NFILE)) => self.turn_away(error),
            Err(error) => Err(error.into()),
        }
    }

    /// The kernel wants a descriptor before it looks whether anyone waits, so someone need not be there.
    fn turn_away(&mut self, error: Errno) -> io::Result<Option<Stream>> {
        drop(self.spare.take());
        let waiting = self.accept_once().map(drop);
        self.spare = spare(&self.fd);
        if waiting == Err(Errno::AGAIN) { Ok(None) } else { Err(error.into()) }
    }

    fn accept_once(&self) -> rustix::io::Result<OwnedFd> {
        accept_with(&self.fd, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Whoever replaced our file keeps theirs. A thread that panics may have a successor with a copy of the socket.
        if !self.left && !std::thread::panicking() && file_id(&self.path).is_ok_and(|file| file == self.file)
        {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Removes the socket file of a process that is no more. Only a refused connection proves that.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> Result<(), BindError> {
    let found = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(|source| system(path, "examined", source))?,
    };
    if !found.file_type().is_socket() {
        return Err(BindError::NotASocket { path: path.to_owned() });
    }
    let probe = new_socket().map_err(failure(path, "created"))?;
    match connect(&probe, address) {
        Err(Errno::CONNREFUSED) => {}
        Err(Errno::NOENT) => return Ok(()),
        // A full backlog is a sign of life; a datagram socket is somebody's, if not one of ours.
        Ok(()) | Err(Errno::AGAIN | Errno::PROTOTYPE) => {
            return Err(BindError::AddrInUse { path: path.to_owned() });
        }
        Err(error) => return Err(system(path, "probed", error.into())),
    }
    // Another process may have replaced the stale file while we asked; then theirs stays.
    if file_id(path).is_ok_and(|file| file == (found.dev(), found.ino())) {
        std::fs::remove_file(path).map_err(|source| system(path, "replaced", source))?;
    }
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn new_socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Another one of the same socket, since a port's thread may open no file.
fn spare(listener: &OwnedFd) -> Option<OwnedFd> {
    fcntl_dupfd_cloexec(listener, 0).ok()
}

fn file_id(path: &Path) -> io::Result<FileId> {
    std::fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

fn failure(path: &Path, doing: &'static str) -> impl FnOnce(Errno) -> BindError + use<> {
    let path = path.to_owned();
    move |errno| BindError::System { path, doing, source: errno.into() }
}

fn system(path: &Path, doing: &'static str, source: io::Error) -> BindError {
    BindError::System { path: path.to_owned(), doing, source }
}
