//! SO_PEEK_OFF, which rustix does not have.

#![expect(unsafe_code, reason = "setsockopt with an option that rustix lacks")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Has the next peek begin with the first byte in the socket, and each one after where the last has ended.
pub(super) fn start(socket: impl AsFd) -> io::Result<()> {
    let offset: libc::c_int = 0;
    // SAFETY: the option is an int, and the kernel reads the int that is passed.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEEK_OFF,
            (&raw const offset).cast(),
            size_of_val(&offset) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
