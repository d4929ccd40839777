//! Tests folders of sockets: their rights, and folders that are refused.

use std::os::unix::fs::{PermissionsExt, symlink};

use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

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
fn folder_of_a_vmms_socket_admits_the_vmm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sockets");
    make_shared(&path, 0o1777, (None, None)).unwrap();
    assert_eq!(mode(&path), 0o1777);
    set_mode(&path, 0o750);
    make_shared(&path, 0o1777, (None, None)).unwrap();
    assert_eq!(mode(&path), 0o750, "an existing folder keeps its mode");
    symlink(&path, folder.path().join("link")).unwrap();
    let refused = make_shared(&folder.path().join("link"), 0o711, (None, None));
    assert!(matches!(refused, Err(SocketFolderError::NotAFolder { .. })));
    if geteuid().is_root() {
        let path = folder.path().join("given");
        make_shared(&path, 0o2771, (Some(65_533), Some(65_532))).unwrap();
        let found = fs::metadata(&path).unwrap();
        assert_eq!((found.uid(), found.gid(), mode(&path)), (65_533, 65_532, 0o2771));
    }
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
    assert!(matches!(check(&path), Err(SocketFolderError::Writable { mode: 0o775, .. })), "the group may");
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
    assert!(matches!(&refused, SocketFolderError::Closed { path, .. } if path == folder.path()), "{refused}");
    set_mode(folder.path(), 0o711);
    make_for(&path, PASSABLE, (65_533, 65_533)).unwrap();
    assert_eq!((fs::metadata(&path).unwrap().uid(), mode(&path)), (65_533, 0o711));
    assert_eq!(barrier(&path, 65_534, 65_534), None);
    set_mode(&path, 0o710);
    assert_eq!(barrier(&path, 65_534, 65_533), None, "the group may");
    assert_eq!(barrier(&path, 65_534, 65_534), Some(path));
}

#[test]
fn folder_that_cannot_be_given_away_names_the_remedy() {
    let name = "folder_that_cannot_be_given_away_names_the_remedy";
    if !geteuid().is_root() {
        return skipped(name, "only root can become another user");
    }
    let folder = tempfile::tempdir().unwrap();
    let user = 65_531;
    std::os::unix::fs::chown(folder.path(), Some(user), Some(user)).unwrap();
    let path = folder.path().join("vms");
    let give = |owner, group| {
        let attempt = || {
            // Restricts this thread alone, which ends with the attempt.
            set_thread_groups(&[]).unwrap();
            set_thread_res_gid(Gid::from_raw(user), Gid::from_raw(user), Gid::from_raw(user)).unwrap();
            set_thread_res_uid(Uid::from_raw(user), Uid::from_raw(user), Uid::from_raw(user)).unwrap();
            make_shared(&path, 0o711, (owner, group)).unwrap_err().to_string()
        };
        std::thread::scope(|scope| scope.spawn(attempt).join().unwrap())
    };
    for (refused, what) in [(give(Some(65_533), None), "owner"), (give(None, Some(65_533)), "group")] {
        let start = format!("cannot set the {what} of folder {} to 65533", path.display());
        assert!(refused.starts_with(&start) && refused.contains("CAP_CHOWN"), "{refused}");
        assert!(!path.exists());
    }
}

#[test]
fn locked_folder_is_not_locked_again_until_released() {
    let folder = tempfile::tempdir().unwrap();
    let lock = || super::lock(folder.path(), Duration::ZERO);
    let first = lock().unwrap();
    assert!(lock().is_none(), "the wait has a bound");
    drop(first);
    assert!(lock().is_some());
    assert!(super::lock(&folder.path().join("missing"), Duration::ZERO).is_none());
}
