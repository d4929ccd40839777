//! What systemd is told, so that its store has what a shelf has.
//!
//! systemd keeps an open file once: what it has already it drops, whatever the name. But a guest's VMM gives the same
//! file of memory to each of its VFs, and the same eventfd again when a driver is loaded anew. So an open file goes to
//! systemd under all the names that it has on the shelf, joined to one.

#![expect(unsafe_code, reason = "kcmp, which rustix does not have")]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::message::{Message, Shelf, is_name, value};

/// Between the names of one open file. No name of ours has it.
const AND: char = '+';

/// Does on a shelf what a message says, and tells systemd what has changed. Answers a descriptor that is needed no
/// more, as [`Shelf::apply`] does.
#[must_use]
pub(super) fn apply(
    shelf: &mut Shelf,
    message: Message,
    tell: impl Fn(&str, Option<BorrowedFd<'_>>),
) -> Option<OwnedFd> {
    let name = value(&message.text, "FDNAME")?.to_owned();
    let names = |shelf: &Shelf, fd: Option<BorrowedFd<'_>>| fd.map(|fd| names(shelf, fd)).unwrap_or_default();
    let left = names(shelf, shelf.get(&name));
    let joined = names(shelf, message.fd.as_ref().map(AsFd::as_fd));
    if joined.contains(&name) {
        return message.fd;
    }
    let done = shelf.apply(message);
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
        }
    }
    done
}

/// The names of one open file, as systemd gives them back.
pub(super) fn split(name: &str) -> impl Iterator<Item = &str> {
    name.split(AND)
}

fn join(names: &[String]) -> String {
    names.join(&AND.to_string())
}

/// Under which names an open file is on a shelf.
fn names(shelf: &Shelf, fd: BorrowedFd<'_>) -> Vec<String> {
    shelf.iter().filter(|(_, other)| is_same(*other, fd)).map(|(name, _)| name.to_owned()).collect()
}

/// Whether two descriptors are of one open file, as far as the kernel tells.
#[must_use]
pub fn is_same(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    const KCMP_FILE: libc::c_int = 0;
    let pid = std::process::id();
    // SAFETY: the call compares two descriptors of this process, and touches no memory.
    let order =
        unsafe { libc::syscall(libc::SYS_kcmp, pid, pid, KCMP_FILE, one.as_raw_fd(), other.as_raw_fd()) };
    order == 0
}
