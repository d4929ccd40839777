//! Copies the file descriptors that a keeper holds by name (its shelf) to systemd's file descriptor store.
//!
//! systemd stores an open file once: it drops a second descriptor of the same file, whatever its name. But a VMM
//! sends the same memory file for each of its VFs, and the same eventfd again when a driver is loaded anew. So an
//! open file goes to systemd under all of its names on the shelf, joined to one name.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use host::descriptors::is_same_file;

use crate::message::{KeepFailure, KeeperMessage, KeptFileDescriptors, is_name, value};

/// Separator between the names under which the keeper stores one open file.
const AND: char = '+';
/// Characters that systemd's name has encoded, as in a URL, with their codes. An interface, and so the name of its
/// descriptor, may be called `vm+1`.
const CODES: [(&str, &str); 2] = [("%", "%25"), ("+", "%2b")];

/// Outcome of a message that was applied to a keeper's shelf and to systemd's store.
#[derive(Debug, Default)]
pub(crate) struct BackedChange {
    /// Descriptor that is no longer needed, as [`KeptFileDescriptors::apply`] returns it.
    pub(crate) done: Option<OwnedFd>,
    /// Reason why systemd does not store an open file, if it does not.
    pub(crate) unstored: Option<KeepFailure>,
}

/// Applies a message to a keeper's shelf of file descriptors, and sends the changes to systemd through `tell`.
#[must_use]
pub(crate) fn apply(
    shelf: &mut KeptFileDescriptors,
    message: KeeperMessage,
    tell: impl Fn(&str, Option<BorrowedFd<'_>>),
) -> BackedChange {
    let Some(name) = value(&message.text, "FDNAME").map(str::to_owned) else {
        return BackedChange::default();
    };
    let names = |shelf: &KeptFileDescriptors, fd: Option<BorrowedFd<'_>>| {
        fd.map(|fd| names(shelf, fd)).unwrap_or_default()
    };
    let left = names(shelf, shelf.get(&name));
    let joined = names(shelf, message.fd.as_ref().map(AsFd::as_fd));
    if joined.contains(&name) {
        return BackedChange { done: message.fd, unstored: None };
    }
    let mut change = BackedChange { done: shelf.apply(message), unstored: None };
    let mut stale = vec![left.clone(), joined];
    stale.retain(|names| !names.is_empty());
    for names in stale {
        tell(&format!("FDSTOREREMOVE=1\nFDNAME={}", join(&names)), None);
    }
    let left = left.iter().find(|other| **other != name).and_then(|other| shelf.get(other));
    for fd in [left, shelf.get(&name)].into_iter().flatten() {
        let name = join(&self::names(shelf, fd));
        if is_name(&name) {
            tell(&format!("FDSTORE=1\nFDNAME={name}\nFDPOLL=0"), Some(fd));
        } else {
            change.unstored = Some(KeepFailure::JoinedNames);
        }
    }
    change
}

/// Splits systemd's name of a stored file descriptor into the names under which the keeper stores the open file.
pub(crate) fn split(name: &str) -> impl Iterator<Item = String> {
    let decode = |name: &str| {
        CODES.iter().rev().fold(name.to_owned(), |name, (plain, code)| name.replace(code, plain))
    };
    name.split(AND).map(decode)
}

/// Joins the names under which the keeper stores an open file to one name for systemd.
fn join(names: &[String]) -> String {
    let encode =
        |name: &String| CODES.iter().fold(name.clone(), |name, (plain, code)| name.replace(plain, code));
    names.iter().map(encode).collect::<Vec<_>>().join(&AND.to_string())
}

/// Returns the names under which the keeper stores an open file.
fn names(shelf: &KeptFileDescriptors, fd: BorrowedFd<'_>) -> Vec<String> {
    shelf.iter().filter(|(_, other)| is_same_file(*other, fd)).map(|(name, _)| name.to_owned()).collect()
}
