//! Default folder of the host's sockets.
//!
//! [`crate::folder`] creates and checks the folder.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::process::geteuid;

/// Error: the default folder for sockets belongs to another user, who may run a host there.
#[derive(Debug, thiserror::Error)]
#[error("runtime folder {} does not belong to user {uid}; choose another with --runtime-dir", path.display())]
pub struct ForeignRuntimeDir {
    /// Path of the default folder for sockets.
    pub path: PathBuf,
    /// User id that must own the default folder for sockets.
    pub uid: u32,
}

/// Returns the default folder for sockets: `$XDG_RUNTIME_DIR/softiov`, or without that variable `/run/softiov` for root
/// and `/tmp/softiov-UID` for other users. The folder may not exist yet.
///
/// # Errors
/// Another user has created the folder in `/tmp`, where every user may.
pub fn runtime_dir() -> Result<PathBuf, ForeignRuntimeDir> {
    let uid = geteuid().as_raw();
    let path = location(env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from), uid);
    if path == shared_place(uid) { ours(path, uid) } else { Ok(path) }
}

fn location(session: Option<PathBuf>, uid: u32) -> PathBuf {
    match session {
        // The XDG Base Directory specification ignores relative paths.
        Some(session) if session.is_absolute() => session.join("softiov"),
        _ if uid == 0 => PathBuf::from("/run/softiov"),
        _ => shared_place(uid),
    }
}

fn shared_place(uid: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/softiov-{uid}"))
}

fn ours(path: PathBuf, uid: u32) -> Result<PathBuf, ForeignRuntimeDir> {
    match fs::symlink_metadata(&path) {
        Ok(found) if !found.is_dir() || found.uid() != uid => Err(ForeignRuntimeDir { path, uid }),
        _ => Ok(path),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn session_runtime_folder_is_preferred_to_system_and_tmp() {
        let session = |path: &str| Some(PathBuf::from(path));
        assert_eq!(location(session("/run/user/1000"), 1000), Path::new("/run/user/1000/softiov"));
        assert_eq!(location(session("relative"), 1000), Path::new("/tmp/softiov-1000"));
        assert_eq!(location(session(""), 0), Path::new("/run/softiov"));
        assert_eq!(location(None, 0), Path::new("/run/softiov"));
        assert_eq!(location(None, 1000), Path::new("/tmp/softiov-1000"));
    }

    #[test]
    fn default_runtime_folder_in_tmp_must_belong_to_the_user() {
        let (folder, uid) = (tempfile::tempdir().unwrap(), geteuid().as_raw());
        let path = folder.path().join("softiov");
        assert_eq!(ours(path.clone(), uid).unwrap(), path, "the folder does not exist yet");
        fs::create_dir(&path).unwrap();
        assert_eq!(ours(path.clone(), uid).unwrap(), path);
        assert!(ours(path.clone(), uid + 1).is_err(), "owned by another user");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(ours(link, uid).is_err());
    }
}
