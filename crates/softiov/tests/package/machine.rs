//! Debian 13 with a systemd of its own, in namespaces on this machine, with this machine's kernel and no network.
//! Packages are installed and removed in it, and units started and stopped. Its changes are gone at its end. Needs
//! root.

use anyhow::{Context, Result, bail, ensure};
use linux_guest::DebianRoot;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(50);
const NAMESPACES: [&str; 6] = ["--mount", "--pid", "--cgroup", "--ipc", "--uts", "--net"];

/// Returns the reason why this machine cannot run a Debian 13 in namespaces, or `None`.
pub(crate) fn obstacle() -> Option<&'static str> {
    let runs = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    if !rustix::process::geteuid().is_root() {
        Some("only root can install packages")
    } else if !runs(Command::new("mmdebstrap").arg("--version")) {
        Some("`mmdebstrap` is missing (Debian package mmdebstrap)")
    } else if !runs(
        Command::new("unshare").args(NAMESPACES).args(["--fork", "mount", "-t", "tmpfs", "t", "/mnt"]),
    ) {
        Some("this machine does not allow namespaces, or mounts in them")
    } else {
        None
    }
}

/// Running Debian 13 in namespaces of this machine. Dropping this value ends all of its processes.
#[derive(Debug)]
pub(crate) struct DebianMachine {
    /// Process of `unshare` that started systemd; its end ends systemd.
    unshare: Child,
    init: u32,
    folder: TempDir,
}

impl DebianMachine {
    /// Boots a Debian machine that shares the given folders, and the folder of [`Self::files`], with this machine.
    /// Waits for the Debian machine's systemd.
    pub(crate) fn boot(folders: &[&Path]) -> Result<Self> {
        let root = DebianRoot::prepare()?;
        let folder = TempDir::new()?;
        let log = File::create(folder.path().join("console"))?;
        let mut unshare = Command::new("unshare");
        unshare.args(NAMESPACES).args([
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            include_str!("machine.sh"),
            "machine",
        ]);
        unshare.arg(root.folder()).arg(folder.path()).args(folders);
        let unshare = unshare.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
        let mut machine = Self { unshare, init: 0, folder };
        let deadline = Instant::now() + PATIENCE;
        while !machine.is_up() {
            let over = machine.unshare.try_wait()?.is_some() || Instant::now() > deadline;
            ensure!(!over, "systemd does not start: {}", machine.console());
            sleep(LOOK);
        }
        Ok(machine)
    }

    fn is_up(&mut self) -> bool {
        let id = self.unshare.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        let Some(init) = children.split_whitespace().next().and_then(|pid| pid.parse().ok()) else {
            return false;
        };
        self.init = init;
        let state = self.command("systemctl is-system-running").output();
        state.is_ok_and(|state| matches!(state.stdout.trim_ascii(), b"running" | b"degraded"))
    }

    /// Returns a command that runs a shell script in the Debian machine.
    pub(crate) fn command(&self, script: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--target={}", self.init)).args(NAMESPACES).args(["--", "env", "-i"]);
        command.args([
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
            "HOME=/root",
            "LC_ALL=C.UTF-8",
        ]);
        command.args(["sh", "-ec", script]).stdin(Stdio::null());
        command
    }

    /// Runs a script in the Debian machine that must succeed, and returns its output.
    pub(crate) fn run(&self, script: &str) -> Result<String> {
        let output = self.command(script).output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        bail!("{script}: {}\n{}{}", output.status, text(&output.stdout), text(&output.stderr))
    }

    /// Runs a script in the Debian machine that must succeed, and returns its output without spaces around it.
    pub(crate) fn ask(&self, script: &str) -> Result<String> {
        Ok(self.run(script)?.trim().to_owned())
    }

    /// Runs a script in the Debian machine again and again until it succeeds.
    pub(crate) fn wait(&self, script: &str) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.run(script) {
                Err(_) if Instant::now() < deadline => sleep(LOOK),
                done => return done.map(drop).context("the script does not succeed in time"),
            }
        }
    }

    /// Returns a temporary folder that this machine and the Debian machine share under the same path.
    pub(crate) fn files(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path on this machine of a file at `path` in the Debian machine.
    pub(crate) fn place(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.init))
    }

    fn console(&self) -> String {
        fs::read_to_string(self.folder.path().join("console")).unwrap_or_default()
    }
}

impl Drop for DebianMachine {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        let _ = self.unshare.kill();
        let _ = self.unshare.wait();
    }
}
