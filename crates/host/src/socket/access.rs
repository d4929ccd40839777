//! Access to a socket file: its owner, its group and its mode.
//!
//! [`crate::folder`] checks the folders of its path.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid, chmod, chownat, fstat, open, stat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

use super::SocketFileError;
use super::listener::{SocketFileId, folder_of};

/// Owner, group and mode of a socket file. Connecting takes write permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketFilePermissions {
    /// User id of the socket file's owner; `None` is the user of this process.
    pub owner: Option<u32>,
    /// Group id of the socket file; `None` is the group of this process.
    pub group: Option<u32>,
    /// Permission bits of the socket file, such as 0o660.
    pub mode: u32,
}

impl SocketFilePermissions {
    /// Access to a socket file for the user of this process only.
    pub const PRIVATE: Self = Self { owner: None, group: None, mode: 0o600 };

    /// Returns the mode to create the socket file with, before its owner is set. It grants no user more than the
    /// final mode.
    pub(super) fn first_mode(self) -> Mode {
        Mode::from_raw_mode(self.mode) & Mode::RWXU
    }

    /// Sets group, mode and owner of the socket file that was just bound; the owner last, since only an owner may set
    /// the mode. Uses a file descriptor of the file, so that no other file can replace it meanwhile.
    pub(super) fn grant(self, path: &Path) -> Result<(), SocketFileError> {
        if self == Self::PRIVATE {
            return Ok(());
        }
        let failure = |doing| move |source: Errno| denied(path, doing, source);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = open(path, flags, Mode::empty()).map_err(failure("examine"))?;
        let found = fstat(&file).map_err(failure("examine"))?;
        let ours = FileType::from_raw_mode(found.st_mode) == FileType::Socket
            && found.st_uid == geteuid().as_raw()
            && found.st_nlink == 1;
        if !ours {
            return Err(SocketFileError::Replaced { path: path.to_owned() });
        }
        if let Some(group) = self.group.filter(|group| *group != found.st_gid) {
            give(&file, None, Some(group)).map_err(failure("set the group of"))?;
        }
        if self.first_mode() != Mode::from_raw_mode(self.mode) {
            // An O_PATH descriptor does not accept fchmod; its name in /proc does.
            let name = format!("/proc/self/fd/{}", file.as_raw_fd());
            chmod(name, Mode::from_raw_mode(self.mode)).map_err(failure("set the mode of"))?;
        }
        if let Some(owner) = self.owner.filter(|owner| *owner != found.st_uid) {
            give(&file, Some(owner), None).map_err(failure("set the owner of"))?;
        }
        Ok(())
    }

    /// Sets group, mode and owner of the socket file of a listener, if they differ. Between the former access and this one, and
    /// after an error, only the user of this process may connect. Nothing is changed if this process may not become the file's
    /// owner, if another file has the path, or if the file has several hard links: then the former users may still connect.
    pub(super) fn renew(self, path: &Path, listener: SocketFileId) -> Result<(), SocketFileError> {
        let failure = |doing| move |source: Errno| denied(path, doing, source);
        let file = open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
        let file = file.map_err(failure("examine"))?;
        let found = fstat(&file).map_err(failure("examine"))?;
        let ours = FileType::from_raw_mode(found.st_mode) == FileType::Socket
            && (found.st_dev, found.st_ino) == listener
            && found.st_nlink == 1;
        if !ours {
            return Err(SocketFileError::Replaced { path: path.to_owned() });
        }
        let (us, mode) = (geteuid().as_raw(), Mode::from_raw_mode(self.mode));
        let owner = self.owner.unwrap_or(us);
        let group = match self.group {
            Some(group) => group,
            // A group without rights does not matter.
            None if self.mode & 0o070 == 0 => found.st_gid,
            None => group_of_new_files(folder_of(path)).map_err(failure("examine the folder of"))?,
        };
        if (found.st_uid, found.st_gid, Mode::from_raw_mode(found.st_mode)) == (owner, group, mode) {
            return Ok(());
        }
        // Only an owner may set the mode, and an O_PATH descriptor accepts it by its name in /proc alone.
        let name = format!("/proc/self/fd/{}", file.as_raw_fd());
        give(&file, Some(us), None).map_err(failure("set the owner of"))?;
        chmod(&name, mode & Mode::RWXU).map_err(failure("set the mode of"))?;
        give(&file, None, Some(group)).map_err(failure("set the group of"))?;
        chmod(&name, mode).map_err(failure("set the mode of"))?;
        let given = give(&file, Some(owner), None).map_err(failure("set the owner of"));
        if given.is_err() {
            chmod(&name, mode & Mode::RWXU).map_err(failure("set the mode of"))?;
        }
        given
    }
}

/// Returns the group of a file that this process creates in the folder.
fn group_of_new_files(folder: &Path) -> rustix::io::Result<u32> {
    let folder = stat(folder)?;
    let inherits = Mode::from_raw_mode(folder.st_mode).contains(Mode::SGID);
    Ok(if inherits { folder.st_gid } else { getegid().as_raw() })
}

fn give(file: &OwnedFd, owner: Option<u32>, group: Option<u32>) -> rustix::io::Result<()> {
    chownat(file, "", owner.map(Uid::from_raw), group.map(Gid::from_raw), AtFlags::EMPTY_PATH)
}

fn denied(path: &Path, doing: &'static str, errno: Errno) -> SocketFileError {
    let path = path.to_owned();
    match errno {
        Errno::PERM => SocketFileError::NotGiven { path, doing },
        other => SocketFileError::System { path, doing, source: io::Error::from(other) },
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, metadata, set_permissions};
    use std::io::ErrorKind;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::thread;

    use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

    use super::*;
    use crate::socket::{SocketListener, StreamSocket};
    use crate::test_support::skipped;

    const OWNER: u32 = 65_533;
    const GROUP: u32 = 65_532;
    const STRANGER: u32 = 65_531;

    /// Connects to the socket at `path` as a process of this user and group, without other groups.
    fn connect_as(uid: u32, gid: u32, path: &Path) -> Result<(), ErrorKind> {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        let attempt = || {
            // Restricts this thread alone, which ends with the attempt.
            set_thread_groups(&[]).unwrap();
            set_thread_res_gid(gid, gid, gid).unwrap();
            set_thread_res_uid(uid, uid, uid).unwrap();
            StreamSocket::connect(path).map(drop).map_err(|error| error.kind())
        };
        thread::scope(|scope| scope.spawn(attempt).join().unwrap())
    }

    /// Creates a temporary folder that all users may pass through. Returns `None` unless the test runs as root.
    fn folder(test: &str) -> Option<tempfile::TempDir> {
        if !geteuid().is_root() {
            skipped(test, "only root can give a socket away and become its owner");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        set_permissions(folder.path(), Permissions::from_mode(0o711)).unwrap();
        Some(folder)
    }

    #[test]
    fn only_owner_and_group_can_connect_to_a_socket() {
        let Some(folder) = folder("only_owner_and_group_can_connect_to_a_socket") else { return };
        let path = folder.path().join("vf.sock");
        let denied = Err(ErrorKind::PermissionDenied);
        for (mode, owner, group, stranger) in [
            (0o600, Ok(()), denied, denied),
            (0o660, Ok(()), Ok(()), denied),
            (0o666, Ok(()), Ok(()), Ok(())),
        ] {
            let access = SocketFilePermissions { owner: Some(OWNER), group: Some(GROUP), mode };
            let listener = SocketListener::bind(&path, access).unwrap();
            let found = metadata(&path).unwrap();
            assert_eq!((found.uid(), found.gid(), found.mode() & 0o7777), (OWNER, GROUP, mode));
            assert_eq!(connect_as(OWNER, STRANGER, &path), owner, "{mode:o}");
            assert_eq!(connect_as(STRANGER, GROUP, &path), group, "{mode:o}");
            assert_eq!(connect_as(STRANGER, STRANGER, &path), stranger, "{mode:o}");
            drop(listener);
            assert!(!path.exists());
        }
    }

    #[test]
    fn adopted_socket_gets_the_access_of_its_new_process() {
        let Some(folder) = folder("adopted_socket_gets_the_access_of_its_new_process") else { return };
        let path = folder.path().join("vf.sock");
        let access = |owner, group, mode| SocketFilePermissions { owner, group, mode };
        let listener = SocketListener::bind(&path, access(Some(OWNER), Some(GROUP), 0o660)).unwrap();
        let denied = Err(ErrorKind::PermissionDenied);
        for (next, owner, group, stranger) in [
            (access(Some(STRANGER), None, 0o600), denied, denied, Ok(())),
            (access(None, Some(GROUP), 0o660), denied, Ok(()), denied),
            (SocketFilePermissions::PRIVATE, denied, denied, denied),
            (access(Some(OWNER), None, 0o600), Ok(()), denied, denied),
        ] {
            listener.set_access(next).unwrap();
            assert_eq!(connect_as(OWNER, OWNER, &path), owner, "{next:?}");
            assert_eq!(connect_as(STRANGER - 1, GROUP, &path), group, "{next:?}");
            assert_eq!(connect_as(STRANGER, STRANGER, &path), stranger, "{next:?}");
        }
    }

    #[test]
    fn new_access_that_is_denied_admits_no_other_user() {
        let Some(folder) = folder("new_access_that_is_denied_admits_no_other_user") else { return };
        std::os::unix::fs::chown(folder.path(), Some(STRANGER), Some(STRANGER)).unwrap();
        let path = folder.path().join("vf.sock");
        let attempt = || {
            let uid = Uid::from_raw(STRANGER);
            set_thread_res_uid(uid, uid, uid).unwrap();
            let access = |owner, group, mode| SocketFilePermissions { owner, group, mode };
            let listener = SocketListener::bind(&path, access(None, None, 0o666)).unwrap();
            for denied in [access(None, Some(GROUP), 0o660), access(Some(OWNER), None, 0o660)] {
                listener.set_access(access(None, None, 0o666)).unwrap();
                let error = listener.set_access(denied).unwrap_err().to_string();
                assert!(error.contains("start the host as root"), "{error}");
                let found = metadata(&path).unwrap();
                assert_eq!((found.uid(), found.mode() & 0o7777), (STRANGER, 0o600), "{denied:?}");
            }
        };
        thread::scope(|scope| scope.spawn(attempt).join().unwrap());
    }

    #[test]
    fn another_file_at_the_path_is_not_given_away() {
        let Some(folder) = folder("another_file_at_the_path_is_not_given_away") else { return };
        let path = folder.path().join("vf.sock");
        let access = SocketFilePermissions { owner: Some(OWNER), group: Some(GROUP), mode: 0o660 };
        let listener = SocketListener::bind(&path, SocketFilePermissions::PRIVATE).unwrap();
        std::fs::rename(&path, folder.path().join("former.sock")).unwrap();
        let _other = SocketListener::bind(&path, SocketFilePermissions::PRIVATE).unwrap();
        let error = listener.set_access(access).unwrap_err().to_string();
        assert!(error.contains("replaced") && error.contains("restart the host"), "{error}");
        assert_eq!(metadata(&path).unwrap().uid(), 0);
    }

    /// A new file of a folder with the setgid bit has the folder's group.
    #[test]
    fn same_access_leaves_a_socket_its_folders_group() {
        let Some(folder) = folder("same_access_leaves_a_socket_its_folders_group") else { return };
        std::os::unix::fs::chown(folder.path(), None, Some(GROUP)).unwrap();
        set_permissions(folder.path(), Permissions::from_mode(0o2711)).unwrap();
        let path = folder.path().join("vf.sock");
        let access = |group| SocketFilePermissions { owner: None, group, mode: 0o660 };
        let listener = SocketListener::bind(&path, access(None)).unwrap();
        assert_eq!(metadata(&path).unwrap().gid(), GROUP);
        for (next, group) in [(None, GROUP), (Some(STRANGER), STRANGER), (None, GROUP)] {
            listener.set_access(access(next)).unwrap();
            assert_eq!(metadata(&path).unwrap().gid(), group, "{next:?}");
        }
    }

    #[test]
    fn dead_hosts_socket_of_another_owner_is_replaced() {
        let Some(folder) = folder("dead_hosts_socket_of_another_owner_is_replaced") else { return };
        let path = folder.path().join("vf.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        std::os::unix::fs::chown(&path, Some(OWNER), Some(GROUP)).unwrap();
        drop(SocketListener::bind(&path, SocketFilePermissions::PRIVATE).unwrap());
    }

    #[test]
    fn failed_chown_of_a_socket_is_reported_and_removes_it() {
        let Some(folder) = folder("failed_chown_of_a_socket_is_reported_and_removes_it") else {
            return;
        };
        std::os::unix::fs::chown(folder.path(), Some(STRANGER), Some(STRANGER)).unwrap();
        let path = folder.path().join("vf.sock");
        let attempt = || {
            let uid = Uid::from_raw(STRANGER);
            set_thread_res_uid(uid, uid, uid).unwrap();
            let to = |owner, group| SocketFilePermissions { owner, group, mode: 0o660 };
            let denied = |access| SocketListener::bind(&path, access).unwrap_err().to_string();
            [denied(to(None, Some(GROUP))), denied(to(Some(OWNER), None))]
        };
        for refused in thread::scope(|scope| scope.spawn(attempt).join().unwrap()) {
            assert!(refused.contains("start the host as root"), "{refused}");
            assert!(!path.exists());
        }
    }
}
