//! Folders for sockets: creates folders with given rights, and refuses folders whose contents other users could
//! replace.
//!
//! A socket is as safe as the folders on its path. A user who may write to one of them can replace the socket. So
//! root or this user must own each folder, and no other user may write to it. A sticky folder such as `/tmp` may be
//! on the path, because only a file's owner can move files in it. Folders are never removed: a container that has
//! mounted one would keep the removed one and never see the sockets of the next host.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Mode, OFlags, Uid, fchmod, fchown, open};
use rustix::process::geteuid;

use crate::user::is_private_group;

/// Reason why a folder cannot hold the host's sockets.
#[derive(Debug, thiserror::Error)]
pub enum SocketFolderError {
    /// A system call on the socket folder failed.
    #[error("cannot {doing} folder {}: {source}", path.display())]
    System {
        /// Path of the socket folder on which the call failed.
        path: PathBuf,
        /// Action on the socket folder that failed, as an infinitive.
        doing: &'static str,
        /// Kernel's error for the failed call on the socket folder.
        source: io::Error,
    },
    /// The socket folder's path leads to a file, or to a symbolic link.
    #[error("{} is a file or a link where a folder is needed; remove it, or choose another path", path.display())]
    NotAFolder {
        /// Path of the file or link at the socket folder's path.
        path: PathBuf,
    },
    /// Another user owns the socket folder.
    #[error(
        "folder {} belongs to user {owner}, who could replace the sockets in the folder; it must belong to \
         root or to user {wanted}",
        path.display()
    )]
    NotOurs {
        /// Path of the folder, or of a parent folder, that the other user owns.
        path: PathBuf,
        /// User id of the socket folder's owner.
        owner: u32,
        /// User id that must own the socket folder.
        wanted: u32,
    },
    /// The user that the host becomes does not own the socket folder.
    #[error(
        "folder {0} belongs to user {owner}, and user {uid} could not remove the host's sockets there; chown \
         -R {uid} {0}",
        path.display()
    )]
    NotTheirs {
        /// Path of the folder that the host's user does not own.
        path: PathBuf,
        /// User id of the socket folder's owner.
        owner: u32,
        /// User id that the host becomes.
        uid: u32,
    },
    /// Other users may write to the socket folder.
    #[error(
        "folder {0} is writable by other users (mode {mode:04o}), who could replace the sockets in the \
         folder; chmod go-w {0}",
        path.display()
    )]
    Writable {
        /// Path of the folder, or of a parent folder, that others may write to.
        path: PathBuf,
        /// Permission bits of the socket folder.
        mode: u32,
    },
    /// The user that the host becomes cannot enter the socket folder.
    #[error("user {uid} cannot enter folder {}; choose another path", path.display())]
    Closed {
        /// Path of the folder, or of a parent folder, that the user cannot enter.
        path: PathBuf,
        /// User id that the host becomes.
        uid: u32,
    },
}

/// Mode of a folder that every user may pass through and only its owner may list.
pub const PASSABLE: u32 = 0o711;
/// Mode of a folder that only its owner may enter.
pub const PRIVATE: u32 = 0o700;

/// Creates the folder at `path` with mode `mode` if it does not exist, and checks the folder in any case. The folder's
/// parents must exist.
///
/// # Errors
/// See [`SocketFolderError`].
pub fn make(path: &Path, mode: u32) -> Result<(), SocketFolderError> {
    if create(path)? {
        set_rights(path, mode, None, None)?;
    }
    check(path)
}

/// Creates a folder for another user, who becomes its owner, and checks that the user can enter the folder and no other
/// user can change it.
///
/// # Errors
/// See [`SocketFolderError`].
pub fn make_for(path: &Path, mode: u32, (uid, gid): (u32, u32)) -> Result<(), SocketFolderError> {
    if create(path)? {
        set_rights(path, mode, Some(uid), Some(gid))?;
    }
    check_as(path, uid)?;
    let owner = look(path)?.uid();
    if owner != uid {
        return Err(SocketFolderError::NotTheirs { path: path.to_owned(), owner, uid });
    }
    barrier(path, uid, gid).map_or(Ok(()), |path| Err(SocketFolderError::Closed { path, uid }))
}

/// Sets mode and group of an existing folder of this user.
///
/// # Errors
/// [`SocketFolderError::System`].
pub fn restrict(path: &Path, mode: u32, group: Option<u32>) -> Result<(), SocketFolderError> {
    set_rights(path, mode, None, group)
}

/// Refuses a socket folder in which a user other than root and this process's user could replace a socket.
///
/// # Errors
/// See [`SocketFolderError`].
pub fn check(path: &Path) -> Result<(), SocketFolderError> {
    check_as(path, geteuid().as_raw())
}

/// Returns the first folder on `path`, the last one included, that a user with this one group cannot enter. Ignores the
/// user's supplementary groups.
#[must_use]
pub fn barrier(path: &Path, uid: u32, gid: u32) -> Option<PathBuf> {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut ways: Vec<&Path> = real.ancestors().collect();
    ways.reverse();
    let closed = |way: &&Path| {
        fs::metadata(way).is_ok_and(|found| {
            let bit = if found.uid() == uid {
                0o100
            } else if found.gid() == gid {
                0o010
            } else {
                0o001
            };
            found.mode() & bit == 0
        })
    };
    if uid == 0 { None } else { ways.into_iter().find(closed).map(Path::to_owned) }
}

/// Creates a folder that only its owner may enter. Returns false if the folder exists already.
fn create(path: &Path) -> Result<bool, SocketFolderError> {
    match DirBuilder::new().mode(PRIVATE).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(source) => Err(system(path, "create")(source)),
    }
}

/// Sets owner, group and mode of a folder through a file descriptor, so that a link cannot replace the folder
/// meanwhile.
fn set_rights(path: &Path, mode: u32, uid: Option<u32>, gid: Option<u32>) -> Result<(), SocketFolderError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let failure = |errno: rustix::io::Errno| system(path, "set the rights of")(errno.into());
    let folder = open(path, flags, Mode::empty()).map_err(failure)?;
    fchown(&folder, None, gid.map(Gid::from_raw)).map_err(failure)?;
    fchmod(&folder, Mode::from_raw_mode(mode)).map_err(failure)?;
    // Last, because only the owner may set the mode.
    fchown(&folder, uid.map(Uid::from_raw), None).map_err(failure)
}

fn check_as(path: &Path, uid: u32) -> Result<(), SocketFolderError> {
    let failure = |source| system(path, "read the rights of")(source);
    let absolute = std::path::absolute(path).map_err(failure)?;
    let found = look(&absolute)?;
    if !found.is_dir() {
        return Err(SocketFolderError::NotAFolder { path: path.to_owned() });
    }
    judge(&absolute, &found, uid, false)?;
    let real = fs::canonicalize(&absolute).map_err(failure)?;
    // A link is trusted if its folder is, and its target's path is checked as well.
    let mut ways: Vec<&Path> = absolute.ancestors().skip(1).collect();
    if real != absolute {
        ways.extend(real.ancestors().skip(1));
    }
    ways.into_iter().try_for_each(|way| judge(way, &look(way)?, uid, true))
}

/// Checks that only root and user `uid` can change the contents of the folder at `path`.
fn judge(path: &Path, found: &Metadata, uid: u32, on_the_way: bool) -> Result<(), SocketFolderError> {
    let owner = found.uid();
    if owner != 0 && owner != uid && !(on_the_way && owner == outside_owner()) {
        return Err(SocketFolderError::NotOurs { path: path.to_owned(), owner, wanted: uid });
    }
    let sticky = on_the_way && found.mode() & 0o1000 != 0;
    let writable = match found.mode() & 0o022 {
        0 => false,
        0o020 => !is_private_group(owner, found.gid()),
        _ => true,
    };
    // The mode of a link has no meaning.
    if !writable || sticky || found.is_symlink() {
        return Ok(());
    }
    Err(SocketFolderError::Writable { path: path.to_owned(), mode: found.mode() & 0o7777 })
}

/// Returns the user id that stands for users outside this user namespace, the machine's root among them. Returns 0
/// outside a namespace.
fn outside_owner() -> u32 {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let knows_all = map.split_whitespace().eq(["0", "0", "4294967295"]);
    let owner = fs::read_to_string("/proc/sys/kernel/overflowuid").ok();
    owner.and_then(|owner| owner.trim().parse().ok()).filter(|_| !knows_all).unwrap_or(0)
}

fn look(path: &Path) -> Result<Metadata, SocketFolderError> {
    fs::symlink_metadata(path).map_err(system(path, "read the rights of"))
}

fn system(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> SocketFolderError + use<> {
    let path = path.to_owned();
    move |source| SocketFolderError::System { path, doing, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::test_support::skipped;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn existing_socket_folder_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sockets");
        make(&path, PASSABLE).unwrap();
        assert_eq!(mode(&path), 0o711);
        make(&path, PRIVATE).unwrap();
        assert_eq!(mode(&path), 0o711, "an existing folder keeps its mode");
        restrict(&path, PRIVATE, None).unwrap();
        assert_eq!(mode(&path), 0o700);
        let nowhere = make(&folder.path().join("a/b"), PASSABLE);
        assert!(matches!(nowhere, Err(SocketFolderError::System { doing: "create", .. })));
    }

    #[test]
    fn socket_folder_that_others_can_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sockets");
        make(&path, PASSABLE).unwrap();
        for open in [0o777, 0o1777, 0o702] {
            set_mode(&path, open);
            let refused = check(&path).unwrap_err();
            assert!(matches!(refused, SocketFolderError::Writable { .. }), "{open:o}: {refused}");
            assert!(refused.to_string().contains("chmod go-w"), "{refused}");
        }
        for closed in [0o755, 0o711, 0o750, 0o700] {
            set_mode(&path, closed);
            check(&path).unwrap();
        }
        if !geteuid().is_root() {
            return skipped(
                "socket_folder_that_others_can_write_to_is_refused",
                "only root has groups to give it to",
            );
        }
        set_mode(&path, 0o775);
        check(&path).unwrap();
        std::os::unix::fs::chown(&path, None, Some(65_532)).unwrap();
        assert!(
            matches!(check(&path), Err(SocketFolderError::Writable { mode: 0o775, .. })),
            "the group may"
        );
    }

    #[test]
    fn writable_parent_of_a_socket_folder_is_refused_unless_sticky() {
        let folder = tempfile::tempdir().unwrap();
        let way = folder.path().join("way");
        let path = way.join("sockets");
        make(&way, PASSABLE).unwrap();
        make(&path, PASSABLE).unwrap();
        set_mode(&way, 0o777);
        assert!(matches!(check(&path), Err(SocketFolderError::Writable { path, .. }) if path == way));
        set_mode(&way, 0o1777);
        check(&path).unwrap();
        // The target of a link is checked too.
        set_mode(&way, 0o777);
        let link = folder.path().join("link");
        symlink(&way, &link).unwrap();
        assert!(
            matches!(check(&link.join("sockets")), Err(SocketFolderError::Writable { path, .. }) if path == way)
        );
        set_mode(&way, 0o755);
        check(&link.join("sockets")).unwrap();
    }

    #[test]
    fn links_and_files_are_refused_as_socket_folders() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link, file) = (folder.path().join("r"), folder.path().join("l"), folder.path().join("f"));
        make(&real, PASSABLE).unwrap();
        symlink(&real, &link).unwrap();
        fs::write(&file, "").unwrap();
        for path in [link, file] {
            assert!(matches!(make(&path, PASSABLE), Err(SocketFolderError::NotAFolder { .. })), "{path:?}");
        }
    }

    #[test]
    fn socket_folder_of_another_user_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sockets");
        make(&path, PASSABLE).unwrap();
        let (uid, other) = (geteuid().as_raw(), 65_533);
        if uid != 0 {
            return skipped("socket_folder_of_another_user_is_refused", "only root can give a folder away");
        }
        std::os::unix::fs::chown(&path, Some(other), None).unwrap();
        assert!(matches!(check(&path), Err(SocketFolderError::NotOurs { owner: 65_533, wanted: 0, .. })));
        check_as(&path, other).unwrap();
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        check_as(&path, other).unwrap();
        let refused = make_for(&path, PASSABLE, (other, other)).unwrap_err();
        assert!(refused.to_string().contains("chown -R 65533"), "{refused}");
    }

    #[test]
    fn socket_folder_the_user_cannot_enter_is_named_in_the_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sockets");
        let name = "socket_folder_the_user_cannot_enter_is_named_in_the_error";
        if !geteuid().is_root() {
            return skipped(name, "only root can give a folder away");
        }
        set_mode(folder.path(), PRIVATE);
        let refused = make_for(&path, PASSABLE, (65_533, 65_533)).unwrap_err();
        assert!(
            matches!(&refused, SocketFolderError::Closed { path, .. } if path == folder.path()),
            "{refused}"
        );
        set_mode(folder.path(), 0o711);
        make_for(&path, PASSABLE, (65_533, 65_533)).unwrap();
        assert_eq!((fs::metadata(&path).unwrap().uid(), mode(&path)), (65_533, 0o711));
        assert_eq!(barrier(&path, 65_534, 65_534), None);
        set_mode(&path, 0o710);
        assert_eq!(barrier(&path, 65_534, 65_533), None, "the group may");
        assert_eq!(barrier(&path, 65_534, 65_534), Some(path));
    }
}
