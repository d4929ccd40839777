//! Engine of changes of the host's surroundings: signals and limits of its process, its folders, its keeper, and VMMs that do
//! not run. Everything that an attack changes is restored when the attack ends.

use crate::control::{self, ControlStep};
use crate::judge::Arena;
use crate::socket::{self, AttackedSockets, SocketAttack, SocketStep};
use anyhow::{Context, Result};
use host::child::kill_with_parent;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use std::fs;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const NO_VMM: &str = "the case has connected no VMM";
/// Number of rounds of frames after which the host has noticed a change.
const ROUNDS: u64 = 3;

/// Resource of the host process with a limit of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedResource {
    /// Open file descriptors.
    OpenFiles,
    /// Bytes of a file that the process writes.
    FileSize,
    /// Bytes of address space.
    AddressSpace,
}

impl LimitedResource {
    fn resource(self) -> Resource {
        match self {
            Self::OpenFiles => Resource::Nofile,
            Self::FileSize => Resource::Fsize,
            Self::AddressSpace => Resource::As,
        }
    }

    /// Returns the name in `/proc/PID/limits`.
    fn name(self) -> &'static str {
        match self {
            Self::OpenFiles => "Max open files",
            Self::FileSize => "Max file size",
            Self::AddressSpace => "Max address space",
        }
    }
}

/// Returns a process's hard limit, or `None` if it is unlimited.
fn hard_limit(process: Pid, resource: LimitedResource) -> Result<Option<u64>> {
    let limits = fs::read_to_string(format!("/proc/{}/limits", process.as_raw_nonzero()))?;
    let line = limits.lines().find_map(|line| line.strip_prefix(resource.name()));
    let hard = line.and_then(|line| line.split_whitespace().nth(1)).context("the kernel reports no limit")?;
    Ok(hard.parse().ok())
}

/// Soft limit of the host process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostLimit {
    /// Limit of a number.
    At(u64),
    /// Limit of descriptors: those that the host has, and a number more.
    DescriptorsInUse(u64),
    /// Limit of address space: what the host has, and a number of bytes more.
    AddressSpaceInUse(u64),
}

/// Object that takes a path's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replacement {
    /// No object: the path does not exist.
    Nothing,
    /// Empty folder.
    Folder,
    /// File of some bytes.
    File,
    /// Symbolic link to `/`.
    Link,
    /// Socket of another program.
    Socket,
}

/// Step of an attack on the host's surroundings.
#[derive(Debug, Clone, Copy)]
pub enum SurroundingsStep {
    /// Sends a signal to the host process.
    Signal(Signal),
    /// Sends a signal to the keeper process.
    SignalKeeper(Signal),
    /// Kills the process that starts hosts for the keeper.
    KillStarter,
    /// Waits until the keeper has started another host process, which serves.
    AwaitSuccessor,
    /// Lets the neighbours recover from the end of a host.
    Recover,
    /// Lowers a soft limit of the host process.
    Limit(LimitedResource, HostLimit),
    /// Replaces a file or folder of the host, such as `run/pf0vf0`.
    Replace(&'static str, Replacement),
    /// Connects a VMM to the attacked VF, which sends messages and stays.
    Vmm(&'static [SocketStep]),
    /// Lets the last VMM send more messages.
    More(&'static [SocketStep]),
    /// Hands the connection of the last VMM to a process that is stopped.
    StopVmm,
    /// Sends bytes on the control socket.
    Control(&'static [ControlStep]),
    /// Lets the neighbours exchange frames. The control socket is not asked.
    Exchange,
    /// Restores limits, files and folders.
    Restore,
    /// Repeats steps.
    Repeat(u32, &'static [SurroundingsStep]),
}

/// Changes of an attack, with its VMMs. Dropping this value restores the surroundings, and ends the VMMs.
#[derive(Debug)]
pub struct Surroundings {
    /// Process that was stopped or limited.
    host: Pid,
    limits: Vec<(LimitedResource, Rlimit)>,
    /// Paths with their former contents' new paths.
    moved: Vec<(PathBuf, PathBuf)>,
    /// Sockets of other programs.
    listeners: Vec<UnixListener>,
    vmms: Vec<SocketAttack>,
    control: Vec<UnixStream>,
    stopped: Vec<Child>,
}

/// Carries out an attack on the surroundings of a host. Returns the changes that are in force.
///
/// # Errors
/// A change is not possible, or an expected answer does not come.
pub fn attack(
    arena: &mut Arena,
    sockets: &AttackedSockets,
    steps: &[SurroundingsStep],
) -> Result<Surroundings> {
    let mut surroundings = Surroundings {
        host: arena.host.pid(),
        limits: Vec::new(),
        moved: Vec::new(),
        listeners: Vec::new(),
        vmms: Vec::new(),
        control: Vec::new(),
        stopped: Vec::new(),
    };
    surroundings.run(arena, sockets, steps)?;
    Ok(surroundings)
}

impl Surroundings {
    fn run(
        &mut self,
        arena: &mut Arena,
        sockets: &AttackedSockets,
        steps: &[SurroundingsStep],
    ) -> Result<()> {
        for (number, step) in (1..).zip(steps) {
            self.step(arena, sockets, step).with_context(|| format!("step {number}, {step:?}"))?;
        }
        Ok(())
    }

    fn step(&mut self, arena: &mut Arena, sockets: &AttackedSockets, step: &SurroundingsStep) -> Result<()> {
        let host = &mut arena.host;
        match *step {
            SurroundingsStep::Signal(signal) => host.signal(signal),
            SurroundingsStep::SignalKeeper(signal) => host.signal_keeper(signal),
            SurroundingsStep::KillStarter => host.kill_starter(),
            SurroundingsStep::AwaitSuccessor => host.wait_for_successor(),
            SurroundingsStep::Recover => arena.recover(),
            SurroundingsStep::Limit(resource, limit) => {
                let value = match limit {
                    HostLimit::At(value) => value,
                    HostLimit::DescriptorsInUse(more) => host.resources()?.descriptors as u64 + more,
                    HostLimit::AddressSpaceInUse(more) => host.address_space()? + more,
                };
                self.limit(resource, value)
            }
            SurroundingsStep::Replace(name, with) => self.replace(&host.folder(name), with),
            SurroundingsStep::Vmm(steps) => {
                self.vmms.push(socket::attack(sockets, steps)?);
                Ok(())
            }
            SurroundingsStep::More(steps) => self.last_vmm()?.run(steps),
            SurroundingsStep::StopVmm => self.stop_vmm(),
            SurroundingsStep::Control(steps) => {
                self.control.extend(control::attack(&host.control_socket(), steps)?);
                Ok(())
            }
            SurroundingsStep::Exchange => {
                (0..ROUNDS).try_for_each(|_| arena.exchange_with_all()).context("during the attack")
            }
            SurroundingsStep::Restore => self.restore(),
            SurroundingsStep::Repeat(times, steps) => {
                (0..times).try_for_each(|_| self.run(arena, sockets, steps))
            }
        }
    }

    /// Sets a soft limit of the host process, and keeps the hard one.
    fn limit(&mut self, resource: LimitedResource, value: u64) -> Result<()> {
        let maximum = hard_limit(self.host, resource)?;
        let limit = Rlimit { current: Some(value), maximum };
        self.limits.push((resource, prlimit(Some(self.host), resource.resource(), limit)?));
        Ok(())
    }

    fn replace(&mut self, path: &Path, with: Replacement) -> Result<()> {
        let away = path.with_extension("away");
        fs::rename(path, &away).with_context(|| format!("cannot move {}", path.display()))?;
        self.moved.push((path.to_owned(), away));
        match with {
            Replacement::Nothing => {}
            Replacement::Folder => fs::create_dir(path)?,
            Replacement::File => fs::write(path, "attack")?,
            Replacement::Link => std::os::unix::fs::symlink("/", path)?,
            Replacement::Socket => self.listeners.push(UnixListener::bind(path)?),
        }
        Ok(())
    }

    fn last_vmm(&mut self) -> Result<&mut SocketAttack> {
        self.vmms.last_mut().context(NO_VMM)
    }

    fn stop_vmm(&mut self) -> Result<()> {
        let socket = self.vmms.pop().context(NO_VMM)?.into_socket();
        let mut command = Command::new("sleep");
        command.arg("3600").stdin(socket).stdout(Stdio::null());
        let child = kill_with_parent(&mut command).spawn().context("cannot start a process for the VMM")?;
        kill_process(Pid::from_child(&child), Signal::STOP)?;
        self.stopped.push(child);
        Ok(())
    }

    fn restore(&mut self) -> Result<()> {
        for (resource, former) in self.limits.drain(..).rev() {
            prlimit(Some(self.host), resource.resource(), former)?;
        }
        for (path, away) in self.moved.drain(..).rev() {
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_dir() => fs::remove_dir_all(&path)?,
                Ok(_) => fs::remove_file(&path)?,
                Err(_) => {}
            }
            fs::rename(&away, &path)?;
        }
        self.listeners.clear();
        Ok(())
    }
}

impl Drop for Surroundings {
    fn drop(&mut self) {
        let _ = self.restore();
        for child in &mut self.stopped {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
