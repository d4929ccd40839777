//! Helpers of tests of this and other crates: network namespaces, free ports, and reports of skipped tests.
//!
//! Compiled for tests and for the `test-support` feature only.

#![expect(unsafe_code, reason = "descriptors are copied between fork and exec")]

use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Reports that the test `what` did not run, past the capture of the test harness: `SKIPPED: what: why`.
pub fn skipped(what: &str, why: &str) {
    // An error cannot be reported anywhere. One write, so that parallel tests do not split the line.
    let _ = io::stderr().write_all(format!("SKIPPED: {what}: {why}\n").as_bytes());
}

/// Runs `body` on a thread of its own in a new network namespace, and returns its result. Without the privilege for a
/// namespace, reports the test as skipped and returns `None`.
///
/// # Panics
/// If `body` does.
pub fn in_network_namespace<T: Send>(what: &str, body: impl FnOnce() -> T + Send) -> Option<T> {
    let run = || crate::namespace::enter_new_network().map(|()| body());
    let outcome = thread::scope(|scope| scope.spawn(run).join());
    match outcome {
        Ok(Ok(value)) => Some(value),
        Ok(Err(error)) => {
            skipped(what, &format!("a network namespace needs root or CAP_SYS_ADMIN ({error})"));
            None
        }
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Longest wait for a process to enter its network namespace.
const NAMESPACE_TIMEOUT: Duration = Duration::from_secs(60);

/// Network namespace of another process, which ends with this value.
#[derive(Debug)]
pub struct OtherNetworkNamespace(Child);

impl OtherNetworkNamespace {
    /// Starts a process in a new network namespace, and waits until the process has entered it: an interface that is moved earlier
    /// stays here.
    ///
    /// # Panics
    /// The program `unshare` is missing or not permitted.
    #[must_use]
    pub fn new() -> Self {
        let other = Command::new("unshare").args(["-n", "sleep", "600"]).spawn();
        let other = Self(other.expect("unshare is installed"));
        let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
        let (here, deadline) = (namespace("thread-self"), Instant::now() + NAMESPACE_TIMEOUT);
        while namespace(&other.pid().to_string()).is_none_or(|there| Some(there) == here) {
            assert!(Instant::now() < deadline, "the process has not entered its network namespace");
            thread::sleep(Duration::from_millis(2));
        }
        other
    }

    /// Returns the number of the process, by which `ip` names the namespace.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Returns a command that runs a program in the namespace.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.pid().to_string(), "-n", program]);
        command
    }

    /// Runs `ip` with the arguments `words` in the namespace.
    ///
    /// # Panics
    /// `ip` fails.
    #[track_caller]
    pub fn ip(&self, words: &str) {
        let status = self.command("ip").args(words.split(' ')).status().expect("nsenter is installed");
        assert!(status.success(), "ip {words}");
    }
}

impl Default for OtherNetworkNamespace {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for OtherNetworkNamespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Environment variable that names the only test whose body this process must run.
const ALONE: &str = "SOFTIOV_TEST_ALONE";

/// Runs a test's body in a process of its own, for bodies that exhaust or end the process: the test binary is
/// started again for that one test. Returns `None` inside that process, after the body; else the process's output.
///
/// # Errors
/// The process could not be started.
pub fn in_own_process(test: &str, body: impl FnOnce()) -> std::io::Result<Option<std::process::Output>> {
    if std::env::var_os(ALONE).is_some_and(|name| name == *test) {
        body();
        return Ok(None);
    }
    let this = std::env::current_exe()?;
    std::process::Command::new(this).args(["--exact", test]).env(ALONE, test).output().map(Some)
}

/// Makes a command start with the file descriptors `fds`, numbered from 3 on, as systemd passes them.
///
/// # Errors
/// The process is out of descriptors.
pub fn pass(command: &mut std::process::Command, fds: &[std::os::fd::OwnedFd]) -> io::Result<()> {
    use std::os::unix::process::CommandExt as _;
    const FIRST: i32 = 3;
    // Above the target numbers, so that dup2 overwrites none of them.
    let beyond = FIRST + fds.len() as i32;
    let copies: Result<Vec<_>, _> =
        fds.iter().map(|fd| rustix::io::fcntl_dupfd_cloexec(fd, beyond)).collect();
    let copies = copies?;
    let copy = move || {
        for (fd, target) in copies.iter().zip(FIRST..) {
            // SAFETY: only system calls between fork and exec; overwritten descriptors are the child's own copies.
            if unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(fd), target) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls only.
    unsafe { command.pre_exec(copy) };
    Ok(())
}

/// Returns a loopback address with a free port. Parallel tests get different ports, and outgoing connections use ports
/// from 32,768 on.
///
/// # Panics
/// No port is free.
#[must_use]
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut addresses = FREE_PORTS.map(|_| {
        let number = std::process::id().wrapping_mul(16).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = FREE_PORTS.start + (number % FREE_PORTS.len() as u32) as u16;
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    });
    addresses.find(|address| TcpListener::bind(address).is_ok()).expect("a TCP port must be free")
}

/// Ports outside the ranges of usual servers and of outgoing connections.
const FREE_PORTS: Range<u16> = 10_000..32_000;
