//! Log of a keeper: lines on standard error.

use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Writes a line of the keeper's log to standard error, unless that would block: the keeper process waits for no
/// reader. `service` is the name of the service that the keeper supervises.
pub(crate) fn say(service: &str, text: &str) {
    if is_ready(io::stderr(), PollFlags::OUT) {
        // An error cannot be reported anywhere.
        let _ = writeln!(io::stderr(), "{service} keeper: {text}");
    }
}

/// Returns true if a descriptor can be read or written without blocking, as `what` says.
pub(crate) fn is_ready(fd: impl AsFd, what: PollFlags) -> bool {
    becomes_ready(fd, what, Duration::ZERO)
}

/// Waits at most `time` until a descriptor can be read or written without blocking, as `what` says. Returns false after
/// `time`, or if a signal has arrived before.
pub(crate) fn becomes_ready(fd: impl AsFd, what: PollFlags, time: Duration) -> bool {
    let mut asked = [PollFd::new(&fd, what)];
    let timeout = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    poll(&mut asked, Some(&timeout)).is_ok() && asked[0].revents().contains(what)
}
