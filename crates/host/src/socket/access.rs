//! Who may connect to a socket file: its owner, its group and its mode.
//!
//! Left out: the folders on the way ([`crate::folder`]).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid, chmod, chownat, fstat, open};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::BindError;

/// Owner, group and mode of a socket file. To connect takes the right to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The owner's number; `None` is the user of this process.
    pub owner: Option<u32>,
    /// The group's number; `None` is the group of this process.
    pub group: Option<u32>,
    /// The mode, such as 0o660.
    pub mode: u32,
}

impl Access {
    /// For the user of this process only.
    pub const PRIVATE: Self = Self { owner: None, group: None, mode: 0o600 };

    /// The mode to make the file with: nobody has more than in the end, whoever its owner and group are meanwhile.
    pub(super) fn first_mode(self) -> Mode {
        Mode::from_raw_mode(self.mode) & Mode::RWXU
    }

    /// Gives the file that was just bound its group, its mode, and last its owner, since only an owner may set the
    /// mode. All by a descriptor of the file, so that nothing else can be put in its place meanwhile.
    pub(super) fn grant(self, path: &Path) -> Result<(), BindError> {
        if self == Self::PRIVATE {
            return Ok(());
        }
        let failure = |doing| move |source: Errno| denied(path, doing, source);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = open(path, flags, Mode::empty()).map_err(failure("examined"))?;
        let found = fstat(&file).map_err(failure("examined"))?;
        let ours = FileType::from_raw_mode(found.st_mode) == FileType::Socket
            && found.st_uid == geteuid().as_raw()
            && found.st_nlink == 1;
        if !ours {
            return Err(BindError::Replaced { path: path.to_owned() });
        }
        if let Some(group) = self.group.filter(|group| *group != found.st_gid) {
            give(&file, None, Some(group)).map_err(failure("given to its group"))?;
        }
        if self.first_mode() != Mode::from_raw_mode(self.mode) {
            // A descriptor that is only a place takes no fchmod; its name in /proc does.
            let name = format!("/proc/self/fd/{}", file.as_raw_fd());
            chmod(name, Mode::from_raw_mode(self.mode)).map_err(failure("given its mode"))?;
        }
        if let Some(owner) = self.owner.filter(|owner| *owner != found.st_uid) {
            give(&file, Some(owner), None).map_err(failure("given to its owner"))?;
        }
        Ok(())
    }
}

fn give(file: &OwnedFd, owner: Option<u32>, group: Option<u32>) -> rustix::io::Result<()> {
    chownat(file, "", owner.map(Uid::from_raw), group.map(Gid::from_raw), AtFlags::EMPTY_PATH)
}

fn denied(path: &Path, doing: &'static str, errno: Errno) -> BindError {
    let path = path.to_owned();
    match errno {
        Errno::PERM => BindError::NotGiven { path, doing },
        other => BindError::System { path, doing, source: io::Error::from(other) },
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
    use crate::socket::{Listener, Stream};
    use crate::test_support::skipped;

    const OWNER: u32 = 65_533;
    const GROUP: u32 = 65_532;
    const STRANGER: u32 = 65_531;

    /// What a process of this user and group, and no other group, finds when it connects.
    fn connect_as(uid: u32, gid: u32, path: &Path) -> Result<(), ErrorKind> {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        let attempt = || {
            // Of this thread alone, which ends with the attempt.
            set_thread_groups(&[]).unwrap();
            set_thread_res_gid(gid, gid, gid).unwrap();
            set_thread_res_uid(uid, uid, uid).unwrap();
            Stream::connect(path).map(drop).map_err(|error| error.kind())
        };
        thread::scope(|scope| scope.spawn(attempt).join().unwrap())
    }

    /// A folder that everybody may pass through; none if this is not root.
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
    fn owner_and_group_connect_and_nobody_else() {
        let Some(folder) = folder("owner_and_group_connect_and_nobody_else") else { return };
        let path = folder.path().join("vf.sock");
        let denied = Err(ErrorKind::PermissionDenied);
        for (mode, owner, group, stranger) in [
            (0o600, Ok(()), denied, denied),
            (0o660, Ok(()), Ok(()), denied),
            (0o666, Ok(()), Ok(()), Ok(())),
        ] {
            let access = Access { owner: Some(OWNER), group: Some(GROUP), mode };
            let listener = Listener::bind(&path, access).unwrap();
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
    fn a_dead_hosts_socket_is_replaced_whoevers_it_was() {
        let Some(folder) = folder("a_dead_hosts_socket_is_replaced_whoevers_it_was") else { return };
        let path = folder.path().join("vf.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        std::os::unix::fs::chown(&path, Some(OWNER), Some(GROUP)).unwrap();
        drop(Listener::bind(&path, Access::PRIVATE).unwrap());
    }

    #[test]
    fn who_may_not_give_files_away_is_told_so_and_leaves_nothing() {
        let Some(folder) = folder("who_may_not_give_files_away_is_told_so_and_leaves_nothing") else {
            return;
        };
        std::os::unix::fs::chown(folder.path(), Some(STRANGER), Some(STRANGER)).unwrap();
        let path = folder.path().join("vf.sock");
        let attempt = || {
            let uid = Uid::from_raw(STRANGER);
            set_thread_res_uid(uid, uid, uid).unwrap();
            let to = |owner, group| Access { owner, group, mode: 0o660 };
            let denied = |access| Listener::bind(&path, access).unwrap_err().to_string();
            [denied(to(None, Some(GROUP))), denied(to(Some(OWNER), None))]
        };
        for refused in thread::scope(|scope| scope.spawn(attempt).join().unwrap()) {
            assert!(refused.contains("start the host as root"), "{refused}");
            assert!(!path.exists());
        }
    }
}
