//! Socket option SO_PEEK_OFF (the offset of the next peek), which rustix lacks.

#![expect(unsafe_code, reason = "setsockopt and getsockopt with an option that rustix lacks")]

#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Sets the next peek's offset in bytes from the first unread byte. Each later peek begins where the last one
/// ended.
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

/// Returns the next peek's offset in bytes from the first unread byte. Peeks advance it, and receives reduce it.
pub(super) fn offset(socket: impl AsFd) -> io::Result<usize> {
    let mut offset: libc::c_int = 0;
    let mut length = size_of_val(&offset) as libc::socklen_t;
    // SAFETY: the option is an int, and the kernel writes no more than `length` bytes of it.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEEK_OFF,
            (&raw mut offset).cast(),
            &raw mut length,
        )
    };
    if result == 0 {
        usize::try_from(offset).map_err(io::Error::other)
    } else {
        Err(io::Error::last_os_error())
    }
}
