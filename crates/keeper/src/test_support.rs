//! Helpers of tests of other crates: finds and kills the processes of a keeper.
//!
//! Compiled for tests and for the `test-support` feature only.

use std::fs;
use std::os::fd::OwnedFd;
use std::process::Child;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// End of the name of the process that starts hosts for a keeper process.
const STARTER: &str = "-starter";

/// Returns the running host processes of a keeper process.
#[must_use]
pub fn hosts(keeper: u32) -> Vec<Pid> {
    children(keeper).into_iter().filter(|pid| !is_starter(*pid)).collect()
}

/// Returns the process that starts a keeper's hosts.
#[must_use]
pub fn starter(keeper: u32) -> Option<Pid> {
    // A copy of the starter, which is about to become a host, comes later in the list.
    children(keeper).into_iter().find(|pid| is_starter(*pid))
}

fn children(parent: u32) -> Vec<Pid> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let children = children.unwrap_or_default();
    children.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

fn is_starter(pid: Pid) -> bool {
    let name = fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero()));
    name.is_ok_and(|name| name.trim_end().ends_with(STARTER))
}

/// Kills a keeper process and its children, and waits until none runs. Does nothing if the keeper's end was already
/// waited for.
pub fn kill_all(keeper: &mut Child) {
    if !matches!(keeper.try_wait(), Ok(None)) {
        return;
    }
    let end = |handle: OwnedFd| {
        // The descriptor of a process that has ended is readable too.
        let _ = pidfd_send_signal(&handle, Signal::KILL);
        while poll(&mut [PollFd::new(&handle, PollFlags::IN)], None) == Err(Errno::INTR) {}
    };
    let opened = |pid| pidfd_open(pid, PidfdFlags::empty()).ok();
    // A stopped keeper reaps no child, so process ids stay valid, and without a starter it gets no new ones.
    let _ = kill_process(Pid::from_child(keeper), Signal::STOP);
    let _ = starter(keeper.id()).and_then(opened).map(end);
    let hosts: Vec<_> = children(keeper.id()).into_iter().filter_map(opened).collect();
    let _ = keeper.kill();
    let _ = keeper.wait();
    hosts.into_iter().for_each(end);
}
