//! The binary, run to its end or kept running.

use host::test_support;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take before a test gives up: far longer than it ever does.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Asks again and again until the answer is yes.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The binary.
pub(crate) const SOFTIOV: &str = env!("CARGO_BIN_EXE_softiov");

/// What a command said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs a command of the binary on the host in `folder`.
pub(crate) fn softiov(folder: &Path, arguments: &[&str]) -> Said {
    let mut command = Command::new(SOFTIOV);
    // No test may touch what the user keeps.
    let keeping = folder.with_file_name("state");
    // Behind the words of other programs there are no options.
    let of_others =
        arguments.first().is_some_and(|first| ["devlink", "ethtool", "ip", "lspci"].contains(first));
    let before = if of_others { 1 } else { arguments.len() };
    let (first, rest) = arguments.split_at(before);
    command.args(first).arg("--runtime-dir").arg(folder).arg("--state-dir").arg(keeping);
    finish(command.args(rest))
}

/// Runs a command to its end.
pub(crate) fn finish(command: &mut Command) -> Said {
    let output = command.env_remove("RUST_LOG").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Said { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// A host that runs.
pub(crate) struct Serve {
    child: Child,
    folder: PathBuf,
    log: PathBuf,
}

impl Serve {
    /// `softiov serve` with its sockets in `folder`; waits until it serves.
    #[track_caller]
    pub(crate) fn start(folder: &TempDir, arguments: &[&str]) -> Self {
        Self::spawn(folder, Command::new(SOFTIOV).arg("serve").args(arguments))
    }

    /// As [`Self::start`], from a command of the caller's.
    #[track_caller]
    pub(crate) fn spawn(folder: &TempDir, command: &mut Command) -> Self {
        Self::spawn_keeping(folder, command, &folder.path().join("state"))
    }

    /// As [`Self::spawn`], with another folder for what commands change.
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

    /// `softiov serve` at the level of debugging, whose log goes to a place that cannot be looked at; waits until it
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

    /// Where its sockets are.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// The keeper's process id.
    pub(crate) fn keeper(&self) -> u32 {
        self.child.id()
    }

    /// The process ids of the keeper's hosts that still run.
    pub(crate) fn hosts(&self) -> Vec<Pid> {
        test_support::hosts(self.keeper())
    }

    /// The process that starts hosts for the keeper.
    pub(crate) fn starter(&self) -> Option<Pid> {
        test_support::starter(self.keeper())
    }

    /// Waits until the log has this.
    #[track_caller]
    pub(crate) fn wait_logged(&self, words: &str) {
        self.wait_until(words, || self.log().contains(words));
    }

    /// Waits until something is so.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < deadline, "waited in vain for {what:?}:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the keeper ends by itself.
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

    /// Where the system tells of the host's process.
    #[track_caller]
    pub(crate) fn proc(&self) -> PathBuf {
        let [host] = self.hosts()[..] else { panic!("not one host: {:?}", self.hosts()) };
        PathBuf::from(format!("/proc/{}", host.as_raw_nonzero()))
    }

    /// Kills keeper and host; afterwards nothing of them runs.
    pub(crate) fn kill_all(&mut self) {
        test_support::kill_all(&mut self.child);
    }

    /// The files in the folders of its folder, sorted: `pf0vf0/vf.sock`.
    pub(crate) fn files(&self) -> Vec<String> {
        let within = |folder: String| {
            let names = files(&self.folder.join(&folder));
            names.into_iter().map(move |name| format!("{folder}/{name}"))
        };
        files(&self.folder).into_iter().flat_map(within).collect()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Sends a signal and waits for the end.
    pub(crate) fn end(&mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        self.wait()
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        self.kill_all();
    }
}

/// The files of a folder, sorted.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
