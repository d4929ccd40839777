//! Where sockets live when nobody says otherwise.
//!
//! Left out: making the folder, and checking it for a host ([`crate::folder`]).

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::process::geteuid;

/// Somebody else's folder is in the place of ours, with a host of theirs perhaps.
#[derive(Debug, thiserror::Error)]
#[error("{} is not a folder of user {uid}; choose another with --runtime-dir", path.display())]
pub struct NotOurs {
    /// The folder.
    pub path: PathBuf,
    /// Whose it must be.
    pub uid: u32,
}

/// The folder: `$XDG_RUNTIME_DIR/softiov`, or without that variable `/run/softiov` for root and
/// `/tmp/softiov-UID` for others. It need not exist.
///
/// # Errors
/// Everybody may make a folder in `/tmp`, and somebody else made this one.
pub fn runtime_dir() -> Result<PathBuf, NotOurs> {
    let uid = geteuid().as_raw();
    let path = location(env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from), uid);
    if path == shared_place(uid) { ours(path, uid) } else { Ok(path) }
}

fn location(session: Option<PathBuf>, uid: u32) -> PathBuf {
    match session {
        // The XDG specification: a relative path is to be ignored.
        Some(session) if session.is_absolute() => session.join("softiov"),
        _ if uid == 0 => PathBuf::from("/run/softiov"),
        _ => shared_place(uid),
    }
}

fn shared_place(uid: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/softiov-{uid}"))
}

fn ours(path: PathBuf, uid: u32) -> Result<PathBuf, NotOurs> {
    match fs::symlink_metadata(&path) {
        Ok(found) if !found.is_dir() || found.uid() != uid => Err(NotOurs { path, uid }),
        _ => Ok(path),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

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
    fn in_a_place_of_everybody_it_must_be_ours() {
        let (folder, uid) = (tempfile::tempdir().unwrap(), geteuid().as_raw());
        let path = folder.path().join("softiov");
        assert_eq!(ours(path.clone(), uid).unwrap(), path, "nothing is there yet");
        fs::create_dir(&path).unwrap();
        assert_eq!(ours(path.clone(), uid).unwrap(), path);
        assert!(ours(path.clone(), uid + 1).is_err(), "owned by somebody else");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(ours(link, uid).is_err());
    }
}
