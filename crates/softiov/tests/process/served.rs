//! Runs a host as a user starts it: `softiov serve`, which is the keeper process, and the host process that it starts.
//! Checks with stock guests and the soak campaign use it.

use anyhow::{Context, Result, bail, ensure};
use keeper::test_support::{hosts, kill_all};
use rustix::process::Pid;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(240);
const LOOK: Duration = Duration::from_millis(2);

/// Keeper and host, started by `softiov serve` as processes of their own. Dropping this value kills both.
#[derive(Debug)]
pub(crate) struct HostWithKeeper {
    pub(crate) keeper: Child,
    /// Path of the `softiov` that the keeper process runs, and that sends requests to the host.
    program: PathBuf,
    folder: TempDir,
}

impl HostWithKeeper {
    /// Starts a host with the configuration text `config`, and waits until it serves.
    pub(crate) fn start(config: &str) -> Result<Self> {
        Self::start_program(env!("CARGO_BIN_EXE_softiov").into(), config)
    }

    /// Starts a host of the `softiov` at the path `program`, and waits until it serves.
    pub(crate) fn start_program(program: PathBuf, config: &str) -> Result<Self> {
        let folder = TempDir::new()?;
        // VMMs of other users must reach their sockets.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o711))?;
        fs::write(folder.path().join("softiov.toml"), config)?;
        let mut command = Command::new(&program);
        command.arg("serve").arg("--config").arg(folder.path().join("softiov.toml"));
        let log = File::create(folder.path().join("log"))?;
        let keeper = in_folder(&mut command, &folder).stdout(Stdio::null()).stderr(log).spawn()?;
        // From here on, the keeper is killed on every error.
        let mut served = Self { keeper, program, folder };
        let deadline = Instant::now() + PATIENCE;
        while !served.log().contains("serving") {
            let over = served.keeper.try_wait()?.is_some() || Instant::now() > deadline;
            ensure!(!over, "the host does not start:\n{}", served.log());
            std::thread::sleep(LOOK);
        }
        Ok(served)
    }

    /// Returns the path of a VF's socket.
    pub(crate) fn socket(&self, vf: &str) -> PathBuf {
        self.runtime_dir().join(vf).join("vf.sock")
    }

    /// Returns the folder of the host's sockets.
    pub(crate) fn runtime_dir(&self) -> PathBuf {
        self.folder.path().join("sockets")
    }

    /// Returns the log of keeper and host so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Waits until the keeper process has exactly one host process, other than `former`, and returns its process id.
    /// The host may not serve yet.
    pub(crate) fn host(&self, former: Option<Pid>) -> Result<Pid> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match hosts(self.keeper.id())[..] {
                [host] if Some(host) != former => return Ok(host),
                ref hosts if Instant::now() > deadline => bail!("the keeper's hosts are {hosts:?}"),
                _ => std::thread::sleep(LOOK),
            }
        }
    }

    /// Runs a command of `softiov` on this host, which must succeed, and returns its output.
    pub(crate) fn softiov(&self, words: &str) -> Result<String> {
        let mut command = Command::new(&self.program);
        let output = in_folder(command.args(words.split(' ')), &self.folder).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "softiov {words}: {}: {said}", output.status);
        String::from_utf8(output.stdout).context("the output is not UTF-8")
    }
}

/// Adds the options for this host's socket folder and state folder to a command.
fn in_folder<'a>(command: &'a mut Command, folder: &TempDir) -> &'a mut Command {
    let command = command.arg("--runtime-dir").arg(folder.path().join("sockets"));
    command.arg("--state-dir").arg(folder.path().join("state")).env_remove("RUST_LOG")
}

impl Drop for HostWithKeeper {
    fn drop(&mut self) {
        kill_all(&mut self.keeper);
    }
}
