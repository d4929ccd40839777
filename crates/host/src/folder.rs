//! Folders for sockets: creates folders with given rights, and refuses folders whose contents other users could
//! replace.
//!
//! A socket is as safe as the folders on its path. A user who may write to one of them can replace the socket. So
//! root or this user must own each folder, and no other user may write to it. A sticky folder such as `/tmp` may be
//! on the path, because only a file's owner can move files in it. Folders are never removed: a container that has
//! mounted one would keep the removed one and never see the sockets of the next host.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Gid, Mode, OFlags, Uid, fchmod, fchown, flock, open};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::user::is_private_group;

#[cfg(test)]
mod tests;

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
    /// This process may not give the folder to its owner or group.
    #[error(
        "cannot set the {what} of folder {0} to {id}: only root, or a process with CAP_CHOWN, may do that; create the folder as \
         root (mkdir, chown, chmod {mode:04o}), or give the host CAP_CHOWN (in a unit: AmbientCapabilities=CAP_CHOWN and \
         CapabilityBoundingSet=CAP_CHOWN)",
        path.display()
    )]
    NotGiven {
        /// Path of the folder, which was removed again.
        path: PathBuf,
        /// Right that was to be set: owner or group.
        what: &'static str,
        /// User or group id that was to own the folder.
        id: u32,
        /// Permission bits that the folder needs.
        mode: u32,
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

/// Creates the folder in which other users create a socket for this process to connect to, if it does not exist. An existing
/// folder keeps its rights.
///
/// # Errors
/// See [`SocketFolderError`].
pub fn make_shared(
    path: &Path,
    mode: u32,
    (owner, group): (Option<u32>, Option<u32>),
) -> Result<(), SocketFolderError> {
    if create(path)? {
        // A folder without its rights would be treated as one that exists at the next attempt.
        return set_rights(path, mode, owner, group).inspect_err(|_| drop(std::fs::remove_dir(path)));
    }
    match look(path)?.is_dir() {
        true => Ok(()),
        false => Err(SocketFolderError::NotAFolder { path: path.to_owned() }),
    }
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

/// Interval between two attempts to lock a folder that another process has locked.
const LOCK_INTERVAL: Duration = Duration::from_millis(1);

/// Locks the folder at `path` against other hosts, until the returned descriptor is closed. Returns `None` without a lock: if
/// the file system has none, if this user may not list the folder, or if the folder is still locked after `timeout`. Any
/// user who may list a folder can lock it for ever, and must not stop the host by that.
pub(crate) fn lock(path: &Path, timeout: Duration) -> Option<OwnedFd> {
    let deadline = Instant::now() + timeout;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = open(path, flags, Mode::empty()).ok()?;
    loop {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(folder),
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => thread::sleep(LOCK_INTERVAL),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
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
    let failure = |errno: Errno| system(path, "set the rights of")(errno.into());
    let folder = open(path, flags, Mode::empty()).map_err(failure)?;
    let given = |what, id: Option<u32>| {
        move |errno| match (errno, id) {
            (Errno::PERM, Some(id)) => SocketFolderError::NotGiven { path: path.to_owned(), what, id, mode },
            (other, _) => failure(other),
        }
    };
    fchown(&folder, None, gid.map(Gid::from_raw)).map_err(given("group", gid))?;
    fchmod(&folder, Mode::from_raw_mode(mode)).map_err(failure)?;
    // Last, because only the owner may set the mode.
    fchown(&folder, uid.map(Uid::from_raw), None).map_err(given("owner", uid))
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
