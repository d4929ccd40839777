//! Network namespaces, each with its own interfaces, addresses and routes.

#![expect(unsafe_code, reason = "unshare can pull a file table away from its descriptors")]

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// Moves the calling thread into a new network namespace, which has only a loopback interface that is down. The
/// thread's later sockets and children are in it; other threads of the process stay where they are.
///
/// # Errors
/// `PermissionDenied` without CAP_SYS_ADMIN; the kernel has no network namespaces.
pub fn enter_new_network() -> io::Result<()> {
    // SAFETY: NEWNET leaves the file table shared, so every descriptor stays valid.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?)
}

/// Moves the calling thread into a network namespace with a name in the file system, such as `/run/netns/NAME`. The
/// thread's later sockets and children are in it; other threads of the process stay where they are.
///
/// # Errors
/// `NotFound` without such a file, `InvalidInput` if it is no network namespace, `PermissionDenied` without
/// CAP_SYS_ADMIN.
pub fn enter_network(path: &Path) -> io::Result<()> {
    let namespace = File::open(path)?;
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}
