//! What a process finds when it starts: descriptors that were kept for it, and from whom.
//!
//! systemd passes them as open descriptors from 3 on (`sd_listen_fds(3)`). A keeper of ours, or a predecessor that is
//! still there, sends them over a socket, which is the process's standard input: so nothing has to be arranged
//! between fork and exec. The words of a hand-over are in [`Line`].

#![expect(unsafe_code, reason = "taking over descriptors that the parent has opened")]

use std::env;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::process::Command;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, socketpair,
    sockopt::{Timeout, set_socket_timeout},
};

use super::backing;
use super::message::{self, Shelf, value};
use super::store::{PATIENCE, Store};

/// Tells a process that its standard input is such a socket, and who is at its other end.
const HERITAGE: &str = "SOFTIOV_HERITAGE";
pub(super) const KEEPER: &str = "keeper";
pub(super) const PREDECESSOR: &str = "predecessor";
/// The first descriptor that systemd passes.
const FIRST: RawFd = 3;
/// What a successor says before it takes its heritage, with its process number: it is ready to.
pub const STARTED: &str = "STARTED";
/// The last message of a heritage.
const END: &str = "END=1";

/// Why a heritage cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum HeritageError {
    /// The socket failed.
    #[error("what was kept for this process cannot be had: {0}")]
    Socket(#[from] io::Error),
    /// Whoever had it is gone in the middle.
    #[error("the process that had started this one is gone")]
    Gone,
    /// The environment is not one that systemd or a keeper makes.
    #[error("the environment variable {0} makes no sense here")]
    Environment(&'static str),
}

/// Who had it.
#[derive(Debug)]
pub enum From {
    /// Nobody: this process was started by hand.
    Nobody,
    /// A keeper of ours: it goes on keeping.
    Keeper(Store),
    /// A process that is still there and waits to hear how it went.
    Predecessor(Line),
}

/// What was kept, and by whom.
#[derive(Debug)]
pub struct Heritage {
    /// The descriptors.
    pub shelf: Shelf,
    /// Who had them.
    pub from: From,
}

impl Heritage {
    /// Whether this process was started by a keeper, or by a predecessor.
    #[must_use]
    pub fn is_left_by_ours() -> bool {
        env::var_os(HERITAGE).is_some()
    }

    /// Takes what is there. Once in a process. A predecessor that is still there hears [`STARTED`] before, and stops only
    /// then.
    ///
    /// # Errors
    /// [`HeritageError`].
    pub fn take() -> Result<Self, HeritageError> {
        let Some(from) = env::var_os(HERITAGE) else {
            return Ok(Self { shelf: Shelf::default(), from: From::Nobody });
        };
        let socket = fcntl_dupfd_cloexec(io::stdin(), FIRST).map_err(io::Error::from)?;
        if from == PREDECESSOR {
            message::send(&socket, &format!("{STARTED}={}", std::process::id()), None)?;
        }
        let shelf = receive(&socket)?;
        let from = match from.to_str() {
            Some(KEEPER) => From::Keeper(Store::over(socket)?),
            Some(PREDECESSOR) => From::Predecessor(Line::over(socket)?),
            _ => return Err(HeritageError::Environment(HERITAGE)),
        };
        Ok(Self { shelf, from })
    }
}

/// What systemd has kept for this process, which nobody else may have taken yet.
///
/// # Errors
/// [`HeritageError::Environment`].
pub(super) fn of_systemd() -> Result<Shelf, HeritageError> {
    let number = |name| env::var(name).ok().map(|text| text.parse::<u32>());
    let mut shelf = Shelf::default();
    let count = match (number("LISTEN_FDS"), number("LISTEN_PID")) {
        (None, _) => return Ok(shelf),
        (_, Some(Ok(pid))) if pid != std::process::id() => return Ok(shelf),
        (Some(Ok(count)), _) if count < 1 << 16 => count,
        _ => return Err(HeritageError::Environment("LISTEN_FDS")),
    };
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    for (fd, name) in (FIRST..).take(count as usize).zip(names.split(':')) {
        // SAFETY: systemd has opened this descriptor for us, and this process has taken none yet.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        fcntl_setfd(&fd, FdFlags::CLOEXEC).map_err(io::Error::from)?;
        for name in backing::split(name) {
            drop(shelf.put(name, fd.try_clone()?));
        }
    }
    Ok(shelf)
}

fn receive(socket: &OwnedFd) -> Result<Shelf, HeritageError> {
    let mut shelf = Shelf::default();
    while let Some(message) = message::receive(socket)? {
        if message.text == END {
            return Ok(shelf);
        }
        drop(shelf.apply(message));
    }
    Err(HeritageError::Gone)
}

/// Two ends of a socket that keeps messages apart.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Has `command` read its heritage from `socket`, at whose other end is whom `from` says: [`KEEPER`] or [`PREDECESSOR`].
/// It gets a process group of its own, so that a Ctrl-C in the terminal is passed on once and not twice.
pub(super) fn arrange<'a>(command: &'a mut Command, from: &str, socket: OwnedFd) -> &'a mut Command {
    use std::os::unix::process::CommandExt as _;
    command.env(HERITAGE, from).env_remove("LISTEN_FDS").env_remove("NOTIFY_SOCKET");
    command.stdin(socket).process_group(0)
}

/// A line to a process that hands over or takes over: words in both directions.
#[derive(Debug)]
pub struct Line(OwnedFd);

impl Line {
    pub(super) fn over(socket: OwnedFd) -> io::Result<Self> {
        set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))?;
        Ok(Self(socket))
    }

    /// Gives the other side everything on a shelf.
    ///
    /// # Errors
    /// It is gone.
    pub fn give<'a>(&self, shelf: impl Iterator<Item = (&'a str, BorrowedFd<'a>)>) -> io::Result<()> {
        for (name, fd) in shelf {
            message::send(&self.0, &format!("FDSTORE=1\nFDNAME={name}"), Some(fd))?;
        }
        message::send(&self.0, END, None)
    }

    /// Says one word.
    ///
    /// # Errors
    /// The other side is gone, or listens to nothing for two seconds.
    pub fn tell(&self, word: &str) -> io::Result<()> {
        message::send(&self.0, word, None)
    }

    /// Waits for one word, so long at most. `None` if the other side is gone.
    ///
    /// # Errors
    /// `WouldBlock` when the time is over.
    pub fn hear(&self, patience: Duration) -> io::Result<Option<String>> {
        set_socket_timeout(&self.0, Timeout::Recv, Some(patience))?;
        Ok(message::receive(&self.0)?.map(|message| message.text))
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The number that a line `KEY=n` gives.
#[must_use]
pub fn number(text: &str, key: &str) -> Option<i32> {
    value(text, key)?.trim().parse().ok()
}
