//! Where sockets live when nobody says otherwise.
//!
//! A folder that only its owner can enter, so that a socket in it is nobody else's to connect to or to
//! replace. Left out: removing it; other instances of the same user may be at home there.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// Why there is no folder for sockets.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeDirError {
    /// Something is there that is not a folder of ours, and others could get at what we put inside.
    #[error("{} must be a directory of user {uid} that nobody else can enter (mode 0700)", path.display())]
    NotPrivate {
        /// The folder.
        path: PathBuf,
        /// Whose it must be.
        uid: u32,
    },
    /// It could not be made.
    #[error("{} could not be created", path.display())]
    Create {
        /// The folder.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
}

/// The folder, made if need be: `$XDG_RUNTIME_DIR/softiov`, or without that variable `/run/softiov` for root
/// and `/tmp/softiov-UID` for others.
///
/// # Errors
/// See [`RuntimeDirError`].
pub fn runtime_dir() -> Result<PathBuf, RuntimeDirError> {
    let uid = geteuid().as_raw();
    private_dir(&location(env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from), uid), uid)
}

fn location(session: Option<PathBuf>, uid: u32) -> PathBuf {
    match session {
        // The XDG specification: a relative path is to be ignored.
        Some(session) if session.is_absolute() => session.join("softiov"),
        _ if uid == 0 => PathBuf::from("/run/softiov"),
        _ => PathBuf::from(format!("/tmp/softiov-{uid}")),
    }
}

fn private_dir(path: &Path, uid: u32) -> Result<PathBuf, RuntimeDirError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(RuntimeDirError::Create { path: path.to_owned(), source: error });
        }
        _ => {}
    }
    // Whoever made it: a link could lead anywhere, and another owner could take our sockets away.
    let ours = fs::symlink_metadata(path)
        .is_ok_and(|found| found.file_type().is_dir() && found.uid() == uid && found.mode() & 0o077 == 0);
    if ours { Ok(path.to_owned()) } else { Err(RuntimeDirError::NotPrivate { path: path.to_owned(), uid }) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_session_comes_first_then_the_system_then_tmp() {
        let session = |path: &str| Some(PathBuf::from(path));
        assert_eq!(location(session("/run/user/1000"), 1000), Path::new("/run/user/1000/softiov"));
        assert_eq!(location(session("relative"), 1000), Path::new("/tmp/softiov-1000"));
        assert_eq!(location(session(""), 0), Path::new("/run/softiov"));
        assert_eq!(location(None, 0), Path::new("/run/softiov"));
        assert_eq!(location(None, 1000), Path::new("/tmp/softiov-1000"));
    }

    #[test]
    fn it_is_made_private_and_found_again() {
        let (folder, uid) = (tempfile::tempdir().unwrap(), geteuid().as_raw());
        let path = folder.path().join("softiov");
        assert_eq!(private_dir(&path, uid).unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert_eq!(private_dir(&path, uid).unwrap(), path);
    }

    #[test]
    fn a_folder_others_can_get_at_is_refused() {
        let (folder, uid) = (tempfile::tempdir().unwrap(), geteuid().as_raw());
        let refused =
            |path: &Path, uid| matches!(private_dir(path, uid), Err(RuntimeDirError::NotPrivate { .. }));

        let others = folder.path().join("others");
        private_dir(&others, uid).unwrap();
        assert!(refused(&others, uid + 1), "owned by somebody else");

        let open = folder.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(refused(&open, uid));

        let link = folder.path().join("link");
        symlink(&others, &link).unwrap();
        assert!(refused(&link, uid));

        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(refused(&file, uid));
        let nowhere = private_dir(&folder.path().join("a/b"), uid);
        assert!(matches!(nowhere, Err(RuntimeDirError::Create { .. })));
    }
}
