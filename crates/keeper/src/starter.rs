//! The starter: a process that starts hosts for the keeper process, since the keeper's seccomp filter forbids it to
//! start processes.
//!
//! ```text
//!   keeper ---- forks, before it gives anything up ----> starter
//!          ---- "keeper" or "predecessor", a socket ---->  copies itself; the copy becomes a host,
//!          <--- STARTED, a handle of the host -----------  which is the keeper's child
//! ```
//!
//! The starter holds its end of a socket to the keeper and the standard descriptors, and none of the kept ones. An
//! order is one of two words with the socket from which the host reads its heritage. Program, arguments and
//! environment were fixed when it was forked. It ends when the keeper does. It drops no rights, since hosts would
//! inherit that.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use host::fork;
use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::process::{Signal, setpgid};
use rustix::thread::set_name;

use crate::channel::{self, PATIENCE};
use crate::heritage::{self, KEEPER, PREDECESSOR};
use crate::log::say;
use crate::message::{self, KeeperMessage, KeptFileDescriptors, number};
use crate::process::ChildProcess;

/// Reply of the starter after it has started a host; it carries the host's pidfd. The next constant is the reply with
/// an errno.
const STARTED: &str = "STARTED=1";
const FAILED: &str = "FAILED";
/// Timeout of the starter's reply to the keeper process, generous for a machine that swaps: after a timeout no host can
/// be started any more.
const ANSWER: Duration = Duration::from_secs(10);
/// Exit status of a host whose program cannot be run (as in shells).
const NO_PROGRAM: i32 = 127;

/// Keeper's connection to the starter, the process that forks hosts.
#[derive(Debug)]
pub(crate) struct StarterProcessConnection {
    /// Name of the starter process, for messages.
    name: String,
    /// Socket to the starter process; `None` after a failure.
    line: Option<OwnedFd>,
    process: ChildProcess,
}

impl StarterProcessConnection {
    /// Forks the starter process of a service. `command` builds a host's command line, in the starter. `shelf` holds the
    /// other descriptors that this process has opened.
    ///
    /// # Errors
    /// This process has a second thread, or has opened another descriptor. The system is out of processes.
    pub(crate) fn fork(
        service: &str,
        shelf: &mut KeptFileDescriptors,
        command: &mut dyn FnMut() -> Command,
    ) -> io::Result<Self> {
        let (mut ours, theirs) = channel::pair()?;
        let name = name_of(service);
        let obey = |line| i32::from(obey(&line, service, command).is_err());
        let handle = fork::start_only_copy(theirs, shelf.descriptors_mut().chain([&mut ours]), obey)?;
        set_socket_timeout(&ours, Timeout::Send, Some(PATIENCE))?;
        set_socket_timeout(&ours, Timeout::Recv, Some(ANSWER))?;
        Ok(Self { name, line: Some(ours), process: ChildProcess::of(handle) })
    }

    /// Has a host started that receives kept file descriptors from `socket`; see [`heritage::arrange`].
    ///
    /// # Errors
    /// The starter has ended, or the system is out of processes. A program that cannot be run shows as the host's
    /// exit.
    pub(crate) fn start(&mut self, from: &str, socket: OwnedFd) -> io::Result<ChildProcess> {
        let gone = || io::Error::other(format!("the process that starts hosts, {}, has ended", self.name));
        let line = self.line.as_ref().ok_or_else(gone)?;
        let asked = message::send(line, from, Some(socket.as_fd()));
        // From now on only the host holds this end, so that its exit closes the connection.
        drop(socket);
        match asked.and_then(|()| message::receive(line)) {
            Ok(Some(KeeperMessage { fd: Some(handle), .. })) => Ok(ChildProcess::of(handle)),
            Ok(Some(KeeperMessage { text, .. })) => {
                // Without room for the pidfd here the kernel drops it: the host then finds no heritage, and ends.
                Err(io::Error::from_raw_os_error(
                    number(&text, FAILED).unwrap_or(Errno::MFILE.raw_os_error()),
                ))
            }
            Ok(None) | Err(_) => {
                // A late reply would be read as the reply to the next order.
                self.process.signal(Signal::KILL);
                let error = gone();
                self.line = None;
                Err(error)
            }
        }
    }

    /// Returns the name of the starter process.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the starter process, so that the keeper process can wait for its end.
    pub(crate) fn process(&self) -> &ChildProcess {
        &self.process
    }

    /// Returns true if the starter process can start hosts.
    pub(crate) fn is_alive(&self) -> bool {
        self.line.is_some()
    }

    /// Reaps the starter process after its end.
    pub(crate) fn reap(&mut self) {
        self.line = None;
        let _ = self.process.death();
    }
}

/// Returns the name in `ps` of the process that forks a service's hosts. The kernel keeps 15 bytes of it.
fn name_of(service: &str) -> String {
    format!("{service}-starter")
}

/// Forks hosts on the keeper's requests until the keeper process has ended: the main function of the starter process.
fn obey(line: &OwnedFd, service: &str, command: &mut dyn FnMut() -> Command) -> io::Result<()> {
    set_name(&CString::new(name_of(service))?)?;
    // Blocks all signals: neither the terminal's, nor those sent to every process of a unit, are meant for it.
    setpgid(None, None)?;
    let signals = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    while let Some(KeeperMessage { text, fd }) = message::receive(line)? {
        let from = [KEEPER, PREDECESSOR].into_iter().find(|word| *word == text);
        let (Some(from), Some(socket)) = (from, fd) else {
            message::send(line, &format!("{FAILED}={}", Errno::INVAL.raw_os_error()), None)?;
            continue;
        };
        let become_host = || match signals.thread_set_mask() {
            Ok(()) => run_host(command(), service, from, socket),
            Err(_) => NO_PROGRAM,
        };
        match fork::start_sibling(become_host) {
            Ok(handle) => message::send(line, STARTED, Some(handle.as_fd()))?,
            Err(error) => {
                let number = error.raw_os_error().unwrap_or(Errno::AGAIN.raw_os_error());
                message::send(line, &format!("{FAILED}={number}"), None)?;
            }
        }
    }
    Ok(())
}

/// Runs the host's program in this process. On failure reports the error, and returns the exit status of the process.
fn run_host(mut command: Command, service: &str, from: &str, socket: OwnedFd) -> i32 {
    let error = heritage::arrange(&mut command, from, socket).exec();
    say(service, &format!("cannot run the host's program {}: {error}", command.get_program().display()));
    NO_PROGRAM
}
