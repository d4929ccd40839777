//! The host: `softiov serve` with its keeper, what it holds, and how it is replaced.

use anyhow::{Context, Result, bail, ensure};
use daemon::control::client;
use daemon::control::protocol::Request;
use host::test_support::{hosts, kill_all};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(2);

/// What a process holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Holding {
    /// Open descriptors.
    pub(crate) descriptors: usize,
    /// Memory of its own, KiB: guests' memory is not in it.
    pub(crate) memory_kib: u64,
}

/// A host that runs. Dropping it ends keeper and host.
#[derive(Debug)]
pub(crate) struct Served {
    keeper: Child,
    folder: TempDir,
}

impl Served {
    pub(crate) fn start() -> Result<Self> {
        let folder = TempDir::new()?;
        let log = File::create(folder.path().join("log"))?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_softiov"));
        command.arg("serve").env_remove("RUST_LOG").stdout(Stdio::null()).stderr(log);
        command.arg("--runtime-dir").arg(folder.path().join("sockets"));
        command.arg("--state-dir").arg(folder.path().join("state"));
        let served = Self { keeper: command.spawn()?, folder };
        let deadline = Instant::now() + PATIENCE;
        while !served.log().contains("serving") {
            ensure!(Instant::now() < deadline, "the host does not start:\n{}", served.log());
            std::thread::sleep(LOOK);
        }
        Ok(served)
    }

    /// A function's socket.
    pub(crate) fn socket(&self, vf: u8) -> PathBuf {
        self.folder.path().join(format!("sockets/pf0vf{vf}/vf.sock"))
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The process that serves, once there is no other, and not `former`.
    pub(crate) fn host(&self, former: Option<Pid>) -> Result<Pid> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match hosts(self.keeper.id())[..] {
                [host] if Some(host) != former => return Ok(host),
                ref hosts if Instant::now() > deadline => bail!("hosts: {hosts:?}"),
                _ => std::thread::sleep(LOOK),
            }
        }
    }

    pub(crate) fn kill(&self, host: Pid) -> Result<()> {
        kill_process(host, Signal::KILL).context("the host cannot be killed")
    }

    /// As `softiov upgrade`.
    pub(crate) fn hand_over(&self) -> Result<()> {
        let socket = self.folder.path().join("sockets/control/control.sock");
        client::ask(&socket, Request::Upgrade).context("the hand-over fails")?;
        Ok(())
    }

    /// What keeper and host hold.
    pub(crate) fn holding(&self, host: Pid) -> Result<[Holding; 2]> {
        let keeper = self.keeper.id().to_string();
        Ok([holding(&keeper)?, holding(&host.as_raw_nonzero().to_string())?])
    }
}

fn holding(pid: &str) -> Result<Holding> {
    let process = Path::new("/proc").join(pid);
    let descriptors = std::fs::read_dir(process.join("fd"))?.count();
    let status = std::fs::read_to_string(process.join("status"))?;
    let memory = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let memory = memory.and_then(|line| line.trim().strip_suffix("kB")).context("no RssAnon")?;
    Ok(Holding { descriptors, memory_kib: memory.trim().parse()? })
}

impl Drop for Served {
    fn drop(&mut self) {
        kill_all(&mut self.keeper);
    }
}
