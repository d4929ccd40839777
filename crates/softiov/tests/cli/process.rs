//! Runs the program `softiov` for a test, to its end or in the background.

use keeper::test_support;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Timeout of every wait in a test, far longer than any wait should take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

/// Polls a condition until `holds` returns true. After [`PATIENCE`] fails with the message `what`.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Path of the tested program `softiov`.
pub(crate) const SOFTIOV: &str = env!("CARGO_BIN_EXE_softiov");

/// Copies the program under test. Another process does it: while this one has the copy open for writing, a child that another
/// test's thread starts would inherit the descriptor, and the kernel would not run the copy (ETXTBSY).
pub(crate) fn copy_program(to: &Path) {
    let copied = Command::new("cp").arg("-p").arg(SOFTIOV).arg(to).status().unwrap();
    assert!(copied.success(), "cp ended with {copied}");
}

/// Output and exit status of a command that has ended.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs a command of `softiov` against the host whose sockets are in `folder`.
pub(crate) fn softiov(folder: &Path, arguments: &[&str]) -> CommandOutput {
    let mut command = Command::new(SOFTIOV);
    // No test may touch the user's state files.
    let keeping = folder.with_file_name("state");
    // Options cannot follow the words of other tools.
    let of_others =
        arguments.first().is_some_and(|first| ["devlink", "ethtool", "ip", "lspci"].contains(first));
    let before = if of_others { 1 } else { arguments.len() };
    let (first, rest) = arguments.split_at(before);
    command.args(first).arg("--runtime-dir").arg(folder).arg("--state-dir").arg(keeping);
    finish(command.args(rest))
}

/// Runs a command to its end, and returns its exit status and output.
pub(crate) fn finish(command: &mut Command) -> CommandOutput {
    let output = command.env_remove("RUST_LOG").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    CommandOutput { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Keeper and host of a test, started by `softiov serve`. Dropping this value kills both.
pub(crate) struct ServeProcess {
    pub(crate) child: Child,
    folder: PathBuf,
    log: PathBuf,
}

impl ServeProcess {
    /// Starts `softiov serve` with its sockets in `folder`, and waits until it serves.
    #[track_caller]
    pub(crate) fn start(folder: &TempDir, arguments: &[&str]) -> Self {
        Self::spawn(folder, Command::new(SOFTIOV).arg("serve").args(arguments))
    }

    /// Starts a host like [`Self::start`] with a command of the caller, such as one that runs in a network namespace.
    #[track_caller]
    pub(crate) fn spawn(folder: &TempDir, command: &mut Command) -> Self {
        Self::spawn_keeping(folder, command, &folder.path().join("state"))
    }

    /// Starts a host like [`Self::spawn`] that stores changed settings in the folder `keeping`.
    #[track_caller]
    pub(crate) fn spawn_keeping(folder: &TempDir, command: &mut Command, keeping: &Path) -> Self {
        let sockets = folder.path().join("sockets");
        let log = folder.path().join("log");
        let file = std::fs::File::create(&log).unwrap();
        let command = command.arg("--runtime-dir").arg(&sockets).arg("--state-dir").arg(keeping);
        let child = command.env_remove("RUST_LOG").stderr(file);
        let child = child.stdout(Stdio::null()).spawn().unwrap();
        let mut serve = Self { child, folder: sockets, log };
        let deadline = Instant::now() + PATIENCE;
        while !serve.log().contains("serving") {
            let over = serve.child.try_wait().unwrap().is_some() || Instant::now() > deadline;
            assert!(!over, "the host does not start:\n{}", serve.log());
            std::thread::sleep(Duration::from_millis(5));
        }
        serve
    }

    /// Starts `softiov serve` with debug logging to a file descriptor that the test cannot read, and waits until it
    /// answers.
    #[track_caller]
    pub(crate) fn with_log(folder: &TempDir, log: Stdio) -> Self {
        let sockets = folder.path().join("sockets");
        let mut command = Command::new(SOFTIOV);
        command.arg("serve").arg("--runtime-dir").arg(&sockets).env("RUST_LOG", "debug");
        let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let mut serve = Self { child, folder: sockets, log: folder.path().join("none") };
        let deadline = Instant::now() + PATIENCE;
        while UnixStream::connect(serve.folder.join("control/control.sock")).is_err() {
            let over = serve.child.try_wait().unwrap();
            assert!(over.is_none() && Instant::now() < deadline, "the host does not start: {over:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
        serve
    }

    /// Returns the folder of the host's sockets.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the log of keeper and host so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Returns the keeper's process id.
    pub(crate) fn keeper(&self) -> u32 {
        self.child.id()
    }

    /// Returns the process ids of the running hosts that the keeper process has started.
    pub(crate) fn hosts(&self) -> Vec<Pid> {
        test_support::hosts(self.keeper())
    }

    /// Returns the process id of the starter, which starts hosts for the keeper process.
    pub(crate) fn starter(&self) -> Option<Pid> {
        test_support::starter(self.keeper())
    }

    /// Waits until the host's log contains the text `words`.
    #[track_caller]
    pub(crate) fn wait_logged(&self, words: &str) {
        self.wait_until(words, || self.log().contains(words));
    }

    /// Waits until the condition `holds` returns true. After [`PATIENCE`] fails with the message `what` and the host's
    /// log.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, holds: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < deadline, "timeout waiting for {what:?}:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the keeper process ends by itself.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the host does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the `/proc` folder of the host's process.
    #[track_caller]
    pub(crate) fn proc(&self) -> PathBuf {
        let [host] = self.hosts()[..] else { panic!("not one host: {:?}", self.hosts()) };
        PathBuf::from(format!("/proc/{}", host.as_raw_nonzero()))
    }

    /// Kills keeper and host, and waits until neither runs.
    pub(crate) fn kill_all(&mut self) {
        test_support::kill_all(&mut self.child);
    }

    /// Returns the files in the subfolders of the host's folder, sorted: `pf0vf0/vf.sock`.
    pub(crate) fn files(&self) -> Vec<String> {
        let within = |folder: String| {
            let names = files(&self.folder.join(&folder));
            names.into_iter().map(move |name| format!("{folder}/{name}"))
        };
        files(&self.folder).into_iter().flat_map(within).collect()
    }

    /// Sends a signal to the keeper process.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Sends a signal to the keeper process, waits for its end, and returns its exit status.
    pub(crate) fn end(&mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        self.wait()
    }
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        self.kill_all();
    }
}

/// Returns the names of the files in a folder in sorted order.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
