//! Network namespaces: interfaces, addresses and routes of their own. Left out: every other kind of namespace.

#![expect(unsafe_code, reason = "unshare can pull a file table away from its descriptors")]

use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::io;

/// Moves the calling thread into a new network namespace, which has a loopback interface that is down and nothing else.
/// What the thread opens and starts from now on is in there; the other threads of the process stay where they are.
///
/// # Errors
/// `PermissionDenied` without CAP_SYS_ADMIN; the kernel has no network namespaces.
pub fn enter_new_network() -> io::Result<()> {
    // SAFETY: NEWNET leaves the file table shared, so every descriptor stays what it was.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?)
}
