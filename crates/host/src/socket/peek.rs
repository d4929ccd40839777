//! SO_PEEK_OFF, which rustix does not have.

#![expect(unsafe_code, reason = "setsockopt with an option that rustix lacks")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Has the next peek begin so many bytes behind the first in the socket, and each one after where the last has ended.
pub(super) fn begin_at(socket: impl AsFd, offset: usize) -> io::Result<()> {
    let offset = libc::c_int::try_from(offset).map_err(io::Error::other)?;
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
