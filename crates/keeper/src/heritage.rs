//! Receives the file descriptors that were kept for a process when it starts.
//!
//! systemd passes them as open descriptors from 3 on (`sd_listen_fds(3)`). A keeper, or a predecessor that is still
//! running, sends them over a socket, which is the process's standard input: so nothing has to be arranged between
//! fork and exec. [`HandOverChannel`] carries the messages of a hand-over.

use std::env;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::process::Command;

use host::descriptors::take_passed;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::stdio::dup2_stdin;

use crate::backing;
use crate::channel::{END, HandOverChannel, STARTED};
use crate::connection::KeeperConnection;
use crate::message::{self, KeptFileDescriptors};

/// Environment variable that names the sender of kept file descriptors, and states that standard input is the socket
/// for receiving them.
const HERITAGE: &str = "SOFTIOV_HERITAGE";
pub(crate) const KEEPER: &str = "keeper";
pub(crate) const PREDECESSOR: &str = "predecessor";
/// Lowest number for the copy of standard input: above the standard descriptors.
const ABOVE_STANDARD: RawFd = 3;

/// Reason why a process could not receive the file descriptors kept for it.
#[derive(Debug, thiserror::Error)]
pub enum InheritedFileDescriptorsError {
    /// The socket that receives the kept file descriptors failed.
    #[error("cannot receive the file descriptors kept for this process: {0}")]
    Socket(#[from] io::Error),
    /// The sender of kept file descriptors ended before it had sent all.
    #[error("the process that started this process has ended")]
    Gone,
    /// An environment variable by which a keeper or systemd passes file descriptors has an invalid value.
    #[error(
        "environment variable {0} is invalid: systemd or a keeper sets it, so start this program without it"
    )]
    Environment(&'static str),
}

/// Sender of kept file descriptors.
#[derive(Debug)]
pub enum FileDescriptorSender {
    /// The process was started by hand and received no kept file descriptors.
    NoSender,
    /// The keeper (the process that starts hosts) sent the kept file descriptors and keeps them.
    Keeper(KeeperConnection),
    /// The previous host process, which waits for the hand-over's result.
    Predecessor(HandOverChannel),
}

/// File descriptors that were kept for this process, and their sender.
#[derive(Debug)]
pub struct InheritedFileDescriptors {
    /// Kept file descriptors by their names.
    pub shelf: KeptFileDescriptors,
    /// Process that sent the kept file descriptors.
    pub from: FileDescriptorSender,
}

impl InheritedFileDescriptors {
    /// Returns true if a keeper process has started this process, and descriptors wait for [`take`](Self::take).
    #[must_use]
    pub fn exist() -> bool {
        env::var_os(HERITAGE).is_some()
    }

    /// Receives the kept file descriptors, once in a process. Announces this process to the previous host process first
    /// ([`STARTED`]), which stops its ports only after the announcement.
    ///
    /// # Errors
    /// [`InheritedFileDescriptorsError`].
    pub fn take() -> Result<Self, InheritedFileDescriptorsError> {
        let Some(from) = env::var_os(HERITAGE) else {
            return Ok(Self { shelf: KeptFileDescriptors::default(), from: FileDescriptorSender::NoSender });
        };
        let socket = fcntl_dupfd_cloexec(io::stdin(), ABOVE_STANDARD).map_err(io::Error::from)?;
        empty_stdin()?;
        if from == PREDECESSOR {
            message::send(&socket, &format!("{STARTED}={}", std::process::id()), None)?;
        }
        let shelf = receive(&socket)?;
        let from = match from.to_str() {
            Some(KEEPER) => FileDescriptorSender::Keeper(KeeperConnection::over(socket)?.holding(&shelf)),
            Some(PREDECESSOR) => FileDescriptorSender::Predecessor(HandOverChannel::over(socket)?),
            _ => return Err(InheritedFileDescriptorsError::Environment(HERITAGE)),
        };
        Ok(Self { shelf, from })
    }
}

/// Takes the file descriptors that systemd has stored for this process. No other code may have opened descriptors
/// before.
///
/// # Errors
/// [`InheritedFileDescriptorsError::Environment`].
pub(crate) fn of_systemd() -> Result<KeptFileDescriptors, InheritedFileDescriptorsError> {
    let number = |name| env::var(name).ok().map(|text| text.parse::<u32>());
    let mut shelf = KeptFileDescriptors::default();
    let count = match (number("LISTEN_FDS"), number("LISTEN_PID")) {
        (None, _) => return Ok(shelf),
        (_, Some(Ok(pid))) if pid != std::process::id() => return Ok(shelf),
        (Some(Ok(count)), _) => u16::try_from(count).ok(),
        _ => None,
    };
    let count = count.ok_or(InheritedFileDescriptorsError::Environment("LISTEN_FDS"))?;
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    for (fd, name) in take_passed(count)?.into_iter().zip(names.split(':')) {
        for name in backing::split(name) {
            drop(shelf.put(&name, fd.try_clone()?));
        }
    }
    Ok(shelf)
}

/// Replaces the standard input by an empty file. Otherwise programs that this process starts would inherit the socket, and
/// could speak for this process. A pipe works where this process may open no file.
fn empty_stdin() -> io::Result<()> {
    let (empty, _) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok(dup2_stdin(empty)?)
}

fn receive(socket: &OwnedFd) -> Result<KeptFileDescriptors, InheritedFileDescriptorsError> {
    let mut shelf = KeptFileDescriptors::default();
    while let Some(message) = message::receive(socket)? {
        if message.text == END {
            return Ok(shelf);
        }
        drop(shelf.apply(message));
    }
    Err(InheritedFileDescriptorsError::Gone)
}

/// Passes `command` the socket from which the process receives kept file descriptors. `from` names the sender:
/// [`KEEPER`] or [`PREDECESSOR`]. The process gets a process group of its own, so that a terminal's Ctrl-C reaches it
/// only through the keeper process.
pub(crate) fn arrange<'a>(command: &'a mut Command, from: &str, socket: OwnedFd) -> &'a mut Command {
    use std::os::unix::process::CommandExt as _;
    command.env(HERITAGE, from).env_remove("LISTEN_FDS").env_remove("NOTIFY_SOCKET");
    command.stdin(socket).process_group(0)
}
