//! Folders for sockets: made with the rights they shall have, and refused where others could replace what is in them.
//!
//! A socket is as safe as the folders on the way to it. Whoever may write to one of them can put a socket of their own
//! in the place of ours. So each of them must belong to root or to us, and nobody else may write to it. A sticky folder
//! such as `/tmp` may be on the way, because there only a file's owner can move it. Left out: removing folders. A
//! container that has mounted one would keep the removed one and never see the sockets of the next host.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Mode, OFlags, Uid, fchmod, fchown, open};
use rustix::process::geteuid;

use crate::user::is_private_group;

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It could not be made, looked at or given its rights.
    #[error("{} could not be {doing}: {source}", path.display())]
    System {
        /// The folder.
        path: PathBuf,
        /// Which step failed.
        doing: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// Something else is there, perhaps a symbolic link to a folder.
    #[error("{} is not a folder; remove it, or choose another place", path.display())]
    NotAFolder {
        /// What is there.
        path: PathBuf,
    },
    /// Somebody else owns it.
    #[error(
        "{} belongs to user {owner}, who could replace the sockets in it; it must belong to root or to user {wanted}",
        path.display()
    )]
    NotOurs {
        /// The folder, or one on the way to it.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Whose it should be.
        wanted: u32,
    },
    /// It is not the user's that the host becomes.
    #[error(
        "{0} belongs to user {owner}, and user {uid} could not remove its sockets there; chown -R {uid} {0}",
        path.display()
    )]
    NotTheirs {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// The user.
        uid: u32,
    },
    /// Others may write to it.
    #[error(
        "{0} can be written to by others (mode {mode:04o}), who could replace the sockets in it; chmod go-w {0}",
        path.display()
    )]
    Writable {
        /// The folder, or one on the way to it.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The user that the host becomes cannot get there.
    #[error("{} cannot be entered by user {uid}; choose another place", path.display())]
    Closed {
        /// The folder, or one on the way to it.
        path: PathBuf,
        /// The user.
        uid: u32,
    },
}

/// Everybody may pass through such a folder, and only its owner may list it.
pub const PASSABLE: u32 = 0o711;
/// Only its owner may enter such a folder.
pub const PRIVATE: u32 = 0o700;

/// Makes the folder with this mode if it is not there, and checks it either way. Folders on the way must exist.
///
/// # Errors
/// See [`FolderError`].
pub fn make(path: &Path, mode: u32) -> Result<(), FolderError> {
    if create(path)? {
        set_rights(path, mode, None, None)?;
    }
    check(path)
}

/// As [`make`], for a folder of which another user makes use: it is theirs.
///
/// # Errors
/// See [`FolderError`].
pub fn make_for(path: &Path, mode: u32, (uid, gid): (u32, u32)) -> Result<(), FolderError> {
    if create(path)? {
        set_rights(path, mode, Some(uid), Some(gid))?;
    }
    check_as(path, uid)?;
    let owner = look(path)?.uid();
    if owner != uid {
        return Err(FolderError::NotTheirs { path: path.to_owned(), owner, uid });
    }
    barrier(path, uid, gid).map_or(Ok(()), |path| Err(FolderError::Closed { path, uid }))
}

/// Sets mode and group of a folder of ours, as it is made or as an earlier host left it.
///
/// # Errors
/// [`FolderError::System`].
pub fn restrict(path: &Path, mode: u32, group: Option<u32>) -> Result<(), FolderError> {
    set_rights(path, mode, None, group)
}

/// Refuses a folder where somebody else than root and this user could replace a socket.
///
/// # Errors
/// See [`FolderError`].
pub fn check(path: &Path) -> Result<(), FolderError> {
    check_as(path, geteuid().as_raw())
}

/// The first folder on the way to `path`, itself included, that a user with this one group cannot enter. What the
/// user's further groups allow is not looked at.
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

/// Answers whether it was not there before. It is private then, until it gets its rights.
fn create(path: &Path) -> Result<bool, FolderError> {
    match DirBuilder::new().mode(PRIVATE).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(source) => Err(system(path, "made")(source)),
    }
}

/// By descriptor, so that no link can be put in the folder's place meanwhile.
fn set_rights(path: &Path, mode: u32, uid: Option<u32>, gid: Option<u32>) -> Result<(), FolderError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let failure = |errno: rustix::io::Errno| system(path, "given its rights")(errno.into());
    let folder = open(path, flags, Mode::empty()).map_err(failure)?;
    fchown(&folder, None, gid.map(Gid::from_raw)).map_err(failure)?;
    fchmod(&folder, Mode::from_raw_mode(mode)).map_err(failure)?;
    // Last, because only the owner may set the mode.
    fchown(&folder, uid.map(Uid::from_raw), None).map_err(failure)
}

fn check_as(path: &Path, uid: u32) -> Result<(), FolderError> {
    let failure = |source| system(path, "found")(source);
    let absolute = std::path::absolute(path).map_err(failure)?;
    let found = look(&absolute)?;
    if !found.is_dir() {
        return Err(FolderError::NotAFolder { path: path.to_owned() });
    }
    judge(&absolute, &found, uid, false)?;
    let real = fs::canonicalize(&absolute).map_err(failure)?;
    // A link on the way can be trusted if its folder can be, and what it leads to is looked at as well.
    let mut ways: Vec<&Path> = absolute.ancestors().skip(1).collect();
    if real != absolute {
        ways.extend(real.ancestors().skip(1));
    }
    ways.into_iter().try_for_each(|way| judge(way, &look(way)?, uid, true))
}

/// Whether root and this user alone decide what is in it.
fn judge(path: &Path, found: &Metadata, uid: u32, on_the_way: bool) -> Result<(), FolderError> {
    let owner = found.uid();
    if owner != 0 && owner != uid && !(on_the_way && owner == outside_owner()) {
        return Err(FolderError::NotOurs { path: path.to_owned(), owner, wanted: uid });
    }
    let sticky = on_the_way && found.mode() & 0o1000 != 0;
    let writable = match found.mode() & 0o022 {
        0 => false,
        0o020 => !is_private_group(owner, found.gid()),
        _ => true,
    };
    // The mode of a link says nothing.
    if !writable || sticky || found.is_symlink() {
        return Ok(());
    }
    Err(FolderError::Writable { path: path.to_owned(), mode: found.mode() & 0o7777 })
}

/// Who seems to own the files of the users that this user namespace does not know, root's of the machine among them.
/// Outside of such a namespace nobody does.
fn outside_owner() -> u32 {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let knows_all = map.split_whitespace().eq(["0", "0", "4294967295"]);
    let owner = fs::read_to_string("/proc/sys/kernel/overflowuid").ok();
    owner.and_then(|owner| owner.trim().parse().ok()).filter(|_| !knows_all).unwrap_or(0)
}

fn look(path: &Path) -> Result<Metadata, FolderError> {
    fs::symlink_metadata(path).map_err(system(path, "found"))
}

fn system(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> FolderError + use<> {
    let path = path.to_owned();
    move |source| FolderError::System { path, doing, source }
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
    fn it_is_made_with_its_mode_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sockets");
        make(&path, PASSABLE).unwrap();
        assert_eq!(mode(&path), 0o711);
        make(&path, PRIVATE).unwrap();
        assert_eq!(mode(&path), 0o711, "what is there keeps its mode");
        restrict(&path, PRIVATE, None).unwrap();
        assert_eq!(mode(&path), 0o700);
        let nowhere = make(&folder.path().join("a/b"), PASSABLE);
        assert!(matches!(nowhere, Err(FolderError::System { doing: "made", .. })));
    }

    #[test]
    fn a_folder_others_can_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sockets");
        make(&path, PASSABLE).unwrap();
        for open in [0o777, 0o1777, 0o702] {
            set_mode(&path, open);
            let refused = check(&path).unwrap_err();
            assert!(matches!(refused, FolderError::Writable { .. }), "{open:o}: {refused}");
            assert!(refused.to_string().contains("chmod go-w"), "{refused}");
        }
        for closed in [0o755, 0o711, 0o750, 0o700] {
            set_mode(&path, closed);
            check(&path).unwrap();
        }
        if !geteuid().is_root() {
            return skipped("a_folder_others_can_write_to_is_refused", "only root has groups to give it to");
        }
        set_mode(&path, 0o775);
        check(&path).unwrap();
        std::os::unix::fs::chown(&path, None, Some(65_532)).unwrap();
        assert!(matches!(check(&path), Err(FolderError::Writable { mode: 0o775, .. })), "the group may");
    }

    #[test]
    fn so_is_one_on_the_way_but_not_a_sticky_one() {
        let folder = tempfile::tempdir().unwrap();
        let way = folder.path().join("way");
        let path = way.join("sockets");
        make(&way, PASSABLE).unwrap();
        make(&path, PASSABLE).unwrap();
        set_mode(&way, 0o777);
        assert!(matches!(check(&path), Err(FolderError::Writable { path, .. }) if path == way));
        set_mode(&way, 0o1777);
        check(&path).unwrap();
        // What a link on the way leads to counts too.
        set_mode(&way, 0o777);
        let link = folder.path().join("link");
        symlink(&way, &link).unwrap();
        assert!(
            matches!(check(&link.join("sockets")), Err(FolderError::Writable { path, .. }) if path == way)
        );
        set_mode(&way, 0o755);
        check(&link.join("sockets")).unwrap();
    }

    #[test]
    fn links_and_files_are_no_folders() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link, file) = (folder.path().join("r"), folder.path().join("l"), folder.path().join("f"));
        make(&real, PASSABLE).unwrap();
        symlink(&real, &link).unwrap();
        fs::write(&file, "").unwrap();
        for path in [link, file] {
            assert!(matches!(make(&path, PASSABLE), Err(FolderError::NotAFolder { .. })), "{path:?}");
        }
    }

    #[test]
    fn a_folder_of_somebody_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sockets");
        make(&path, PASSABLE).unwrap();
        let (uid, other) = (geteuid().as_raw(), 65_533);
        if uid != 0 {
            return skipped("a_folder_of_somebody_else_is_refused", "only root can give a folder away");
        }
        std::os::unix::fs::chown(&path, Some(other), None).unwrap();
        assert!(matches!(check(&path), Err(FolderError::NotOurs { owner: 65_533, wanted: 0, .. })));
        check_as(&path, other).unwrap();
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        check_as(&path, other).unwrap();
        let refused = make_for(&path, PASSABLE, (other, other)).unwrap_err();
        assert!(refused.to_string().contains("chown -R 65533"), "{refused}");
    }

    #[test]
    fn a_user_who_cannot_get_there_is_told_where_the_way_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sockets");
        let name = "a_user_who_cannot_get_there_is_told_where_the_way_ends";
        if !geteuid().is_root() {
            return skipped(name, "only root can give a folder away");
        }
        set_mode(folder.path(), PRIVATE);
        let refused = make_for(&path, PASSABLE, (65_533, 65_533)).unwrap_err();
        assert!(matches!(&refused, FolderError::Closed { path, .. } if path == folder.path()), "{refused}");
        set_mode(folder.path(), 0o711);
        make_for(&path, PASSABLE, (65_533, 65_533)).unwrap();
        assert_eq!((fs::metadata(&path).unwrap().uid(), mode(&path)), (65_533, 0o711));
        assert_eq!(barrier(&path, 65_534, 65_534), None);
        set_mode(&path, 0o710);
        assert_eq!(barrier(&path, 65_534, 65_533), None, "the group may");
        assert_eq!(barrier(&path, 65_534, 65_534), Some(path));
    }
}
