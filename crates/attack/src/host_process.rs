//! Host under attack: `softiov serve` in a folder of its own, and the resources that it holds.

use crate::control;
use crate::family::AttackedFamily;
use anyhow::{Context, Result, bail, ensure};
use host::child::kill_with_parent;
use keeper::test_support::{hosts, kill_all, starter};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use std::fs::{self, File, Permissions};
use std::io::{PipeReader, Write};
use std::os::fd::{AsFd, OwnedFd};
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

/// Way in which a host is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostSetup {
    /// Host without a keeper, whose log is a file. The cases with this setup run on one host, one after the other.
    Shared,
    /// Host with a keeper process.
    Keeper,
    /// Host whose log is a pipe that is full, and that no process reads.
    UnreadLog,
    /// Host whose log is a pipe without a reader.
    ClosedLog,
    /// Host whose log is on a full disk.
    FullLog,
}

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

/// Running host with a port of each family. Dropping this value kills its processes.
#[derive(Debug)]
pub struct HostProcess {
    /// Started process: the keeper, or the host without one.
    process: Child,
    /// Host process that a keeper had last.
    last: Option<(Pid, OwnedFd)>,
    setup: HostSetup,
    folder: TempDir,
    /// Reader of the log's pipe, which never reads.
    _log: Option<PipeReader>,
}

impl HostProcess {
    /// Starts the host of a `softiov` program, and waits until it serves.
    ///
    /// # Errors
    /// The host does not start.
    pub fn start(program: &Path, setup: HostSetup) -> Result<Self> {
        let folder = TempDir::new()?;
        fs::set_permissions(folder.path(), Permissions::from_mode(0o711))?;
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("etc"))?;
        fs::write(at("etc/softiov.toml"), configuration())?;
        let (log, reader) = open_log(&at("log"), setup)?;
        let mut command = Command::new(program);
        command.arg("serve").args((setup != HostSetup::Keeper).then_some("--no-keeper"));
        command.arg("--config").arg(at("etc/softiov.toml"));
        command.arg("--runtime-dir").arg(at("run")).arg("--state-dir").arg(at("state"));
        command.env_remove("RUST_LOG").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = kill_with_parent(&mut command).spawn();
        let process = process.with_context(|| format!("cannot start {}", program.display()))?;
        // From here on, the process is killed on every error.
        let mut this = Self { process, last: None, setup, folder, _log: reader };
        let deadline = Instant::now() + START;
        while control::check(&this.control_socket()).is_err() {
            if this.ended().is_some() || Instant::now() > deadline {
                bail!("the host does not start; its log:\n{}", this.log());
            }
            std::thread::sleep(LOOK);
        }
        this.find_host();
        Ok(this)
    }

    /// Returns the way in which the host was started.
    #[must_use]
    pub fn setup(&self) -> HostSetup {
        self.setup
    }

    /// Returns a folder of the host by its name: `run` with the sockets, or `state`.
    #[must_use]
    pub fn folder(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the host process's id.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.last.as_ref().map_or_else(|| Pid::from_child(&self.process), |(host, _)| *host)
    }

    /// Sends a signal to the host process.
    ///
    /// # Errors
    /// The process has ended.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        match &self.last {
            Some((_, host)) => Ok(pidfd_send_signal(host, signal)?),
            None => self.signal_keeper(signal),
        }
    }

    /// Sends a signal to the started process: the keeper, or the host without one.
    ///
    /// # Errors
    /// The process has ended.
    pub fn signal_keeper(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.process), signal)?)
    }

    /// Kills the process that starts hosts for the keeper.
    ///
    /// # Errors
    /// The host has no keeper.
    pub fn kill_starter(&self) -> Result<()> {
        Ok(kill_process(starter(self.process.id()).context("the host has no starter")?, Signal::KILL)?)
    }

    /// Waits until the keeper has another host process than before, which serves the control socket.
    ///
    /// # Errors
    /// No other host process serves.
    pub fn wait_for_successor(&mut self) -> Result<()> {
        let (before, deadline) = (self.pid(), Instant::now() + START);
        while self.pid() == before || control::check(&self.control_socket()).is_err() {
            ensure!(
                Instant::now() < deadline,
                "no other host serves; the end of the log:\n{}",
                self.last_log_lines()
            );
            std::thread::sleep(LOOK);
            self.find_host();
        }
        Ok(())
    }

    /// Finds the host process of a keeper.
    fn find_host(&mut self) {
        let found = hosts(self.process.id()).pop().filter(|_| self.setup == HostSetup::Keeper);
        let opened = found.and_then(|host| Some((host, pidfd_open(host, PidfdFlags::empty()).ok()?)));
        self.last = opened.or(self.last.take());
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
        if let Some((_, host)) = &self.last {
            // A keeper may be gone; the host continues without it.
            return has_ended(host).then(|| "the keeper's host ended".to_owned());
        }
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
        let process = Path::new("/proc").join(self.pid().as_raw_nonzero().to_string());
        let own = status_kib(&process, "RssAnon:")?;
        Ok(HostResources {
            own_kib: own,
            descriptors: fs::read_dir(process.join("fd"))?.count(),
            log_lines: self.log().lines().count(),
        })
    }

    /// Returns the size of the host's address space in bytes.
    ///
    /// # Errors
    /// The host has ended.
    pub fn address_space(&self) -> Result<u64> {
        let process = Path::new("/proc").join(self.pid().as_raw_nonzero().to_string());
        Ok(status_kib(&process, "VmSize:")? << 10)
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
        kill_all(&mut self.process);
        // A host whose keeper was killed has no parent.
        if let Some((_, host)) = &self.last {
            let _ = pidfd_send_signal(host, Signal::KILL);
        }
    }
}

/// Returns true if a process, named by its descriptor, has ended.
fn has_ended(process: &OwnedFd) -> bool {
    let now = Timespec::default();
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Returns a number of KiB from a process's status.
fn status_kib(process: &Path, name: &str) -> Result<u64> {
    let status = fs::read_to_string(process.join("status"))?;
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    let value = value.with_context(|| format!("the kernel does not report {name}"))?;
    Ok(value.trim().trim_end_matches(" kB").parse()?)
}

/// Opens the log of a host: a file at a path, or what its setup says. Returns the reader of a pipe that has one.
fn open_log(path: &Path, setup: HostSetup) -> Result<(Stdio, Option<PipeReader>)> {
    Ok(match setup {
        HostSetup::Shared | HostSetup::Keeper => (File::create(path)?.into(), None),
        HostSetup::FullLog => (File::options().write(true).open("/dev/full")?.into(), None),
        HostSetup::ClosedLog => (std::io::pipe()?.1.into(), None),
        HostSetup::UnreadLog => {
            let (reader, writer) = std::io::pipe()?;
            fill(&writer)?;
            (writer.into(), Some(reader))
        }
    })
}

/// Fills a pipe, so that the next write blocks.
fn fill(writer: &std::io::PipeWriter) -> Result<()> {
    let flags = fcntl_getfl(writer.as_fd())?;
    fcntl_setfl(writer.as_fd(), flags | OFlags::NONBLOCK)?;
    for size in [4096, 1] {
        while (&mut &*writer).write(&vec![b'\n'; size]).is_ok() {}
    }
    Ok(fcntl_setfl(writer.as_fd(), flags)?)
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
