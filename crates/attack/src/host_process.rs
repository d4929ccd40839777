//! Host under attack: `softiov serve` in a folder of its own, and the resources that it holds.

use crate::family::AttackedFamily;
use anyhow::{Context, Result, bail};
use host::child::kill_with_parent;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Timeout of the host's start.
const START: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(5);
/// Number of VFs of each port: the attacked one, two neighbours, and one without a client.
const VFS: usize = 4;
/// Number of a log's last lines in a message.
const LAST_LINES: usize = 12;

/// Resources that a host holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostResources {
    /// Memory of the process's own (anonymous), without guests' memory, in KiB.
    pub own_kib: u64,
    /// Number of open file descriptors.
    pub descriptors: usize,
    /// Number of lines in the log.
    pub log_lines: usize,
}

/// Running host with a port of each family. Dropping this value kills the process.
#[derive(Debug)]
pub struct HostProcess {
    process: Child,
    folder: TempDir,
}

impl HostProcess {
    /// Starts the host of a `softiov` program, and waits until it serves.
    ///
    /// # Errors
    /// The host does not start.
    pub fn start(program: &Path) -> Result<Self> {
        let folder = TempDir::new()?;
        fs::set_permissions(folder.path(), Permissions::from_mode(0o711))?;
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("etc"))?;
        fs::write(at("etc/softiov.toml"), configuration())?;
        let mut command = Command::new(program);
        command.args(["serve", "--no-keeper", "--config"]).arg(at("etc/softiov.toml"));
        command.arg("--runtime-dir").arg(at("run")).arg("--state-dir").arg(at("state"));
        command.env_remove("RUST_LOG").stdin(Stdio::null()).stdout(Stdio::null());
        let process = kill_with_parent(command.stderr(File::create(at("log"))?)).spawn();
        let process = process.with_context(|| format!("cannot start {}", program.display()))?;
        // From here on, the process is killed on every error.
        let mut this = Self { process, folder };
        let deadline = Instant::now() + START;
        while !this.log().contains("serving") {
            if this.ended().is_some() || Instant::now() > deadline {
                bail!("the host does not start; its log:\n{}", this.log());
            }
            std::thread::sleep(LOOK);
        }
        Ok(this)
    }

    /// Returns the path of a VF's socket.
    #[must_use]
    pub fn socket(&self, family: AttackedFamily, vf: usize) -> PathBuf {
        self.folder.path().join(format!("run/pf{}vf{vf}/vf.sock", family.port()))
    }

    /// Returns the path of the control socket.
    #[must_use]
    pub fn control_socket(&self) -> PathBuf {
        self.folder.path().join("run/control/control.sock")
    }

    /// Returns how the host ended, or `None` while it runs.
    pub fn ended(&mut self) -> Option<String> {
        match self.process.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(format!("the host ended ({status})")),
            Err(error) => Some(format!("the host's state is unknown: {error}")),
        }
    }

    /// Returns the resources that the host holds.
    ///
    /// # Errors
    /// The host has ended.
    pub fn resources(&self) -> Result<HostResources> {
        let process = Path::new("/proc").join(self.process.id().to_string());
        let status = fs::read_to_string(process.join("status"))?;
        let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let own = own.context("the kernel does not report RssAnon")?.trim().trim_end_matches(" kB");
        Ok(HostResources {
            own_kib: own.parse()?,
            descriptors: fs::read_dir(process.join("fd"))?.count(),
            log_lines: self.log().lines().count(),
        })
    }

    /// Returns the last lines of the log.
    #[must_use]
    pub fn last_log_lines(&self) -> String {
        let log = self.log();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }

    fn log(&self) -> String {
        let bytes = fs::read(self.folder.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the Ethernet address that the configuration gives to a VF, if it gives one. The attacked 82576 and AVF VFs choose
/// their addresses themselves, so that attacks can try to change them.
#[must_use]
pub fn address(family: AttackedFamily, vf: usize) -> [u8; 6] {
    [2, 0, 0, 0, family.port() as u8, vf as u8 + 1]
}

fn configuration() -> String {
    let mut text = String::new();
    for family in AttackedFamily::ALL {
        text += &format!("[[port]]\nfamily = \"{family}\"\nvfs = {VFS}\n");
        for vf in 0..VFS {
            let chooses = vf == 0 && family != AttackedFamily::Virtio;
            let mac = address(family, vf).map(|byte| format!("{byte:02x}")).join(":");
            let mac = if chooses { String::new() } else { format!("mac = \"{mac}\"\n") };
            text += &format!("[[port.vf]]\nindex = {vf}\n{mac}");
        }
    }
    text
}
