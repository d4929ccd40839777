//! QEMU as a child process with a folder for its files, which is killed on drop.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::chown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::machine;

/// Timeout from the start of QEMU until QEMU connects the control channel, which happens before the machine runs.
const CONNECT: Duration = Duration::from_secs(120);
const TAIL_LINES: usize = 80;

/// Reason why QEMU did not start.
#[derive(Debug, thiserror::Error)]
pub(super) enum QemuStartError {
    #[error(transparent)]
    System(#[from] io::Error),
    #[error("QEMU ended at once ({status}): {tail}")]
    Ended { status: ExitStatus, tail: String },
}

/// QEMU process of a guest, and the folder of its logs and sockets.
#[derive(Debug)]
pub(super) struct QemuProcess {
    child: Child,
    folder: TempDir,
}

impl QemuProcess {
    /// Starts QEMU with the arguments that `arguments` returns for its folder. Also returns the host's end of the
    /// control channel to the guest.
    pub(super) fn start(
        command: Command,
        user: Option<(u32, u32)>,
        arguments: impl FnOnce(&Path) -> Vec<OsString>,
    ) -> Result<(Self, UnixStream), QemuStartError> {
        let folder = tempfile::Builder::new().prefix("softiov-guest-").tempdir()?;
        let socket = machine::control_socket(folder.path());
        let listener = UnixListener::bind(&socket)?;
        let mut command = match user {
            None => command,
            Some((uid, gid)) => {
                for path in [folder.path(), &socket] {
                    chown(path, Some(uid), Some(gid))?;
                }
                as_user(&command, uid, gid)
            }
        };
        let errors = File::create(errors_log(folder.path()))?;
        command.args(arguments(folder.path()));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn()?;
        let mut process = Self { child, folder };
        let accepted = process.accept(&listener);
        accepted.map(|stream| (process, stream))
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the path of QEMU's monitor socket.
    pub(super) fn monitor_socket(&self) -> PathBuf {
        machine::monitor_socket(self.folder.path())
    }

    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn accept(&mut self, listener: &UnixListener) -> Result<UnixStream, QemuStartError> {
        listener.set_nonblocking(true)?;
        let deadline = Instant::now() + CONNECT;
        loop {
            match listener.accept() {
                Ok((stream, _)) => return Ok(stream.set_nonblocking(false).map(|()| stream)?),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline => {}
                Err(error) => return Err(error.into()),
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(QemuStartError::Ended { status, tail: self.tail() });
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for QEMU to end, and returns its exit status; `None` after the timeout.
    pub(super) fn wait(&mut self, timeout: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + timeout;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
                Ok(status) => return status,
                Err(_) => return None,
            }
        }
    }

    /// Kills QEMU with SIGKILL.
    pub(super) fn kill(&mut self) {
        // Both fail only for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Returns the last lines of the guest's console and of QEMU's errors.
    pub(super) fn tail(&self) -> String {
        let folder = self.folder.path();
        let files = [machine::console_log(folder), errors_log(folder)];
        files.iter().map(|path| last_lines(&fs::read(path).unwrap_or_default())).collect()
    }
}

impl Drop for QemuProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns a command that runs the same program as another user, who keeps only root's right to read files.
fn as_user(command: &Command, uid: u32, gid: u32) -> Command {
    let mut other = Command::new("setpriv");
    other.args([format!("--reuid={uid}"), format!("--regid={gid}")]).arg("--clear-groups");
    // Without this bit access(2), by which QEMU looks for its files, would ignore the right.
    other.arg("--securebits=+no_setuid_fixup");
    other.args(["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search", "--"]);
    other.arg(command.get_program()).args(command.get_args());
    other
}

fn errors_log(folder: &Path) -> PathBuf {
    folder.join("errors")
}

fn last_lines(log: &[u8]) -> String {
    let log = String::from_utf8_lossy(log);
    let skip = log.lines().count().saturating_sub(TAIL_LINES);
    log.lines().skip(skip).map(|line| format!("{}\n", line.trim_end())).collect()
}
