//! Connects to a socket file that another process listens on, in a folder in which that process may create files.
//!
//! A virtual machine monitor that creates its socket in such a folder could put a link there instead, to the socket of
//! another user's machine, and have this process, which may be root, connect to it. So a link is not followed, and the
//! socket must belong to the user or group that the administrator has named.

use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, open, readlink};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::{SocketFilePermissions, StreamSocket};
use crate::folder;

/// Reason why this process cannot connect to another process's socket file now, with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum PeerConnectError {
    /// The other process has not created the socket file.
    #[error("the socket does not exist yet: start the VMM so that it listens on {}", path.display())]
    Missing {
        /// Path of the socket file.
        path: PathBuf,
    },
    /// The socket file's process has ended, or does not listen.
    #[error("no process listens on the socket: start the VMM again so that it listens on {}", path.display())]
    NoListener {
        /// Path of the socket file.
        path: PathBuf,
    },
    /// The listening process accepts no connection, and its queue is full.
    #[error("the process that listens on the socket {} accepts no connection: restart the VMM", path.display())]
    QueueFull {
        /// Path of the socket file.
        path: PathBuf,
    },
    /// The path leads to a link, to a file of another kind, or to a socket that has a second name.
    #[error(
        "{} is a link, or a file that is not a socket of its own: remove the file, and start the VMM again",
        path.display()
    )]
    NotASocket {
        /// Path of the file.
        path: PathBuf,
    },
    /// The socket file belongs to a user that the administrator has not named.
    #[error(
        "the socket {} belongs to user {uid}, group {gid}: set access = {{ owner = {uid} }} to allow that",
        path.display()
    )]
    Foreign {
        /// Path of the socket file.
        path: PathBuf,
        /// User id of the socket file's owner.
        uid: u32,
        /// Group id of the socket file.
        gid: u32,
    },
    /// This process may not search a folder on the path, or may not write to the socket file.
    #[error(
        "user {uid} may not connect to the socket {}: run the host as root or as the VMM's user, or let user {uid} search the \
         folders of the path (chmod o+x) and write to the socket",
        path.display()
    )]
    Denied {
        /// Path of the socket file.
        path: PathBuf,
        /// User id of this process.
        uid: u32,
    },
    /// The kernel refuses to open the socket file, or to connect.
    #[error("cannot connect to the socket {}: {source}", path.display())]
    System {
        /// Path of the socket file.
        path: PathBuf,
        /// Kernel's error for the socket file.
        source: io::Error,
    },
}

impl PeerConnectError {
    fn of(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::Missing { path },
            io::ErrorKind::ConnectionRefused => Self::NoListener { path },
            io::ErrorKind::WouldBlock => Self::QueueFull { path },
            io::ErrorKind::PermissionDenied => Self::Denied { path, uid: geteuid().as_raw() },
            _ => Self::System { path, source },
        }
    }
}

impl SocketFilePermissions {
    /// Returns the mode of a folder in which these users may create sockets: the owner of the folder only; its group too,
    /// which new files get (the setgid bit); or every user. No user may remove another's sockets (the sticky bit).
    #[must_use]
    pub fn folder_mode(self) -> u32 {
        match self.mode & 0o066 {
            0 => folder::PASSABLE,
            0o060 => 0o3771,
            _ => 0o1777,
        }
    }

    /// Returns true if a socket file of this owner and group may be connected to: a socket of the named owner, who is
    /// the user of this process by default, or of the named group if the mode admits it, or any if the
    /// mode admits every user.
    #[must_use]
    fn admits(self, uid: u32, gid: u32) -> bool {
        let owner = self.owner.unwrap_or_else(|| geteuid().as_raw());
        uid == owner || self.mode & 0o060 != 0 && self.group == Some(gid) || self.mode & 0o006 != 0
    }
}

impl StreamSocket {
    /// Connects to the socket file at `path`, which another process has created, without waiting for that process to
    /// accept. `access` names the users whose sockets are connected to. Follows no link at the end of the path.
    ///
    /// # Errors
    /// See [`PeerConnectError`].
    pub fn connect_to_peer(path: &Path, access: SocketFilePermissions) -> Result<Self, PeerConnectError> {
        let failure = |errno: Errno| PeerConnectError::of(path, errno.into());
        let not_a_socket = || PeerConnectError::NotASocket { path: path.to_owned() };
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = open(path, flags, Mode::empty()).map_err(failure)?;
        let found = fstat(&file).map_err(failure)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::Socket || found.st_nlink != 1 {
            return Err(not_a_socket());
        }
        let (uid, gid) = (found.st_uid, found.st_gid);
        if !access.admits(uid, gid) {
            return Err(PeerConnectError::Foreign { path: path.to_owned(), uid, gid });
        }
        // The name in /proc leads to the file that was examined, whatever has its path by now.
        let name = format!("/proc/self/fd/{}", file.as_raw_fd());
        // A second name of a foreign socket may have been removed between `open` and `fstat`.
        if readlink(&name, Vec::new()).map_err(failure)?.as_bytes().ends_with(b" (deleted)") {
            return Err(not_a_socket());
        }
        Self::connect(Path::new(&name)).map_err(|error| PeerConnectError::of(path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::skipped;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, chown, symlink};
    use std::os::unix::net::UnixListener;

    const MINE: SocketFilePermissions = SocketFilePermissions::PRIVATE;

    #[test]
    fn connection_to_a_peer_tells_a_missing_file_from_a_dead_peer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vf.sock");
        let refusal = || StreamSocket::connect_to_peer(&path, MINE).unwrap_err();
        assert!(matches!(refusal(), PeerConnectError::Missing { .. }));
        let listener = UnixListener::bind(&path).unwrap();
        let stream = StreamSocket::connect_to_peer(&path, MINE).unwrap();
        assert_eq!(stream.peer().unwrap().pid, std::process::id().cast_signed());
        listener.accept().unwrap();
        drop(listener);
        assert!(matches!(refusal(), PeerConnectError::NoListener { .. }));
    }

    #[test]
    fn refusal_names_the_path_and_the_remedy() {
        let path = Path::new("/run/vms/web.sock");
        for (kind, parts) in [
            (io::ErrorKind::NotFound, ["does not exist yet", "start the VMM"]),
            (io::ErrorKind::ConnectionRefused, ["no process listens", "start the VMM"]),
            (io::ErrorKind::WouldBlock, ["accepts no connection", "restart the VMM"]),
            (
                io::ErrorKind::PermissionDenied,
                ["may not connect", "run the host as root or as the VMM's user"],
            ),
            (io::ErrorKind::OutOfMemory, ["cannot connect", "memory"]),
        ] {
            let text = PeerConnectError::of(path, kind.into()).to_string();
            assert!(
                text.contains("/run/vms/web.sock") && parts.iter().all(|part| text.contains(part)),
                "{text}"
            );
        }
    }

    #[test]
    fn full_queue_of_a_peer_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vf.sock");
        let _listener = UnixListener::bind(&path).unwrap();
        let mut streams = Vec::new();
        let error = loop {
            match StreamSocket::connect_to_peer(&path, MINE) {
                Ok(stream) => streams.push(stream),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, PeerConnectError::QueueFull { .. }), "{error}");
    }

    #[test]
    fn links_and_other_files_are_not_connected_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        let _listener = UnixListener::bind(path("real")).unwrap();
        symlink(path("real"), path("link")).unwrap();
        fs::write(path("file"), "").unwrap();
        for name in ["link", "file"] {
            let refused = StreamSocket::connect_to_peer(&path(name), MINE).unwrap_err();
            assert!(matches!(refused, PeerConnectError::NotASocket { .. }), "{name}: {refused}");
        }
        fs::hard_link(path("real"), path("second")).unwrap();
        let refused = StreamSocket::connect_to_peer(&path("second"), MINE).unwrap_err();
        assert!(matches!(refused, PeerConnectError::NotASocket { .. }), "{refused}");
    }

    #[test]
    fn named_group_counts_only_if_the_mode_admits_it() {
        let (mine, other, group) = (geteuid().as_raw(), geteuid().as_raw() + 1, 65_532);
        let of_mode = |mode| SocketFilePermissions { owner: None, group: Some(group), mode };
        for (mode, admits_group, folder_mode) in
            [(0o600, false, folder::PASSABLE), (0o660, true, 0o3771), (0o666, true, 0o1777)]
        {
            let access = of_mode(mode);
            assert_eq!(access.admits(other, group), admits_group, "{mode:o}");
            assert_eq!(access.admits(other, group + 1), mode == 0o666, "{mode:o}");
            assert!(access.admits(mine, group + 1), "{mode:o}");
            assert_eq!(access.folder_mode(), folder_mode, "{mode:o}");
        }
    }

    #[test]
    fn socket_of_an_unnamed_user_is_not_connected_to() {
        let name = "socket_of_an_unnamed_user_is_not_connected_to";
        if !geteuid().is_root() {
            return skipped(name, "only root can give a socket away");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vf.sock");
        let _listener = UnixListener::bind(&path).unwrap();
        chown(&path, Some(65_533), Some(65_532)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().uid(), 65_533);
        let refused = StreamSocket::connect_to_peer(&path, MINE).unwrap_err().to_string();
        assert!(refused.contains("owner = 65533"), "{refused}");
        let owner = SocketFilePermissions { owner: Some(65_533), ..MINE };
        let group = SocketFilePermissions { group: Some(65_532), mode: 0o660, ..MINE };
        let all = SocketFilePermissions { mode: 0o666, ..MINE };
        for access in [owner, group, all] {
            StreamSocket::connect_to_peer(&path, access).unwrap();
        }
        let other = SocketFilePermissions { owner: Some(65_531), group: Some(65_531), mode: 0o660 };
        assert!(StreamSocket::connect_to_peer(&path, other).is_err());
    }
}
