//! A running guest: boot it, run commands in it, reboot it, pull its plug.

pub(crate) mod accel;
pub(crate) mod control;
mod error;
mod frame;
mod machine;
mod process;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::assets::Assets;
use accel::Accel;
use control::{Channel, Job, Lost, Output};
pub use error::GuestError;
use error::Result;
use frame::Request;
use machine::Machine;
use process::{Process, StartError};

/// Describes a guest before it is started.
#[derive(Clone, Debug)]
pub struct GuestBuilder {
    name: String,
    accel: Option<Accel>,
    machine: Machine,
}

impl GuestBuilder {
    /// Memory in MiB; 256 if not said.
    pub fn memory_mib(mut self, memory_mib: u32) -> Self {
        self.machine.memory_mib = memory_mib;
        self
    }

    /// Virtual CPUs; 1 if not said.
    pub fn cpus(mut self, cpus: u32) -> Self {
        self.machine.cpus = cpus;
        self
    }

    /// Adds a VF: the vfio-user socket that serves it. The first is `01:00.0` in the guest, the next `02:00.0`.
    pub fn vf_socket(mut self, path: impl Into<PathBuf>) -> Self {
        self.machine.vf_sockets.push(path.into());
        self
    }

    /// Whether a VF's server can map the guest's memory; `true` if not said, since a card cannot work without.
    pub fn shared_memory(mut self, shared: bool) -> Self {
        self.machine.shared_memory = shared;
        self
    }

    /// Whether drivers are loaded for the devices found before the guest is ready; `true` if not said.
    pub fn coldplug(mut self, coldplug: bool) -> Self {
        self.machine.coldplug = coldplug;
        self
    }

    /// Whether the machine has an IOMMU, through which VFIO in the guest hands devices to programs; `false` if not
    /// said.
    pub fn iommu(mut self, iommu: bool) -> Self {
        self.machine.iommu = iommu;
        self
    }

    /// Runs QEMU as another user with one group; this user's if not said, and root may say so. It may enter and read
    /// whatever there is, since its own files may lie where only root gets to; to connect takes more than that.
    pub fn user(mut self, uid: u32, gid: u32) -> Self {
        self.machine.user = Some((uid, gid));
        self
    }

    /// KVM or TCG instead of [`Accel::choose`].
    pub fn accel(mut self, accel: Accel) -> Self {
        self.accel = Some(accel);
        self
    }

    /// Adds an argument for QEMU.
    pub fn qemu_argument(mut self, argument: impl Into<OsString>) -> Self {
        self.machine.extra.push(argument.into());
        self
    }

    /// Starts the guest. It is not [ready](LinuxGuest::wait_ready) yet.
    ///
    /// # Errors
    ///
    /// When QEMU cannot be run or ends at once. That a socket has no server shows a little later, in
    /// [`wait_ready`](LinuxGuest::wait_ready).
    pub fn spawn(self, assets: &Assets) -> Result<LinuxGuest> {
        let accel = self.accel.unwrap_or_else(|| Accel::choose(assets));
        let machine = &self.machine;
        let started = Process::start(assets.qemu().command(), machine.user, |folder| {
            machine.arguments(assets, accel, folder)
        });
        let (process, stream) = started.map_err(|failed| match failed {
            StartError::System(source) => GuestError::Start { name: self.name.clone(), source },
            StartError::Ended { status, tail } => {
                GuestError::Ended { name: self.name.clone(), status: status.to_string(), tail }
            }
        })?;
        let start = |source| GuestError::Start { name: self.name.clone(), source };
        let channel = Arc::new(Channel::new(stream).map_err(start)?);
        Ok(LinuxGuest { name: self.name, accel, process, channel, boots: 1 })
    }
}

/// A running guest. Dropping it kills it.
#[derive(Debug)]
pub struct LinuxGuest {
    name: String,
    accel: Accel,
    process: Process,
    channel: Arc<Channel>,
    /// The boot that [`wait_ready`](Self::wait_ready) waits for.
    boots: u64,
}

impl LinuxGuest {
    /// Describes a guest with 256 MiB, one CPU and no VF.
    pub fn builder(name: impl Into<String>) -> GuestBuilder {
        let machine = Machine {
            memory_mib: 256,
            cpus: 1,
            shared_memory: true,
            coldplug: true,
            iommu: false,
            user: None,
            vf_sockets: Vec::new(),
            extra: Vec::new(),
        };
        GuestBuilder { name: name.into(), accel: None, machine }
    }

    /// The name it was built with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What runs its CPU.
    pub fn accel(&self) -> Accel {
        self.accel
    }

    /// QEMU's process id, to stop and continue it for instance.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The kernel release, once it is ready.
    pub fn kernel_release(&self) -> String {
        self.channel.release()
    }

    /// Waits until it takes commands, with the drivers of its devices loaded; after [`reboot`](Self::reboot),
    /// until it does so again.
    ///
    /// # Errors
    ///
    /// When it ends or takes longer than `timeout`.
    pub fn wait_ready(&self, timeout: Duration) -> Result<()> {
        let waited = self.channel.wait_boots(self.boots, timeout);
        waited.map_err(|lost| self.lost(lost, "booting", timeout))
    }

    /// Runs a shell script and waits for its end. A script that is late is killed.
    ///
    /// # Errors
    ///
    /// When the guest ends, reboots, or takes longer than `timeout`. A status other than zero is no error here:
    /// see [`check`](Self::check).
    pub fn run(&self, script: &str, timeout: Duration) -> Result<Output> {
        let running = self.spawn_background(script)?;
        let output = self.channel.wait(running.job, timeout);
        if output == Err(Lost::Late) {
            running.kill();
        }
        output.map_err(|lost| self.lost(lost, script, timeout))
    }

    /// Runs a shell script that has to succeed and returns what it printed.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run), and a status other than zero.
    pub fn check(&self, script: &str, timeout: Duration) -> Result<String> {
        let output = self.run(script, timeout)?;
        if output.success() {
            return Ok(output.stdout);
        }
        Err(GuestError::Status { name: self.name.clone(), what: script.to_owned(), output })
    }

    /// Starts a shell script and leaves it running. Several may run at once.
    ///
    /// # Errors
    ///
    /// When the guest is gone.
    pub fn spawn_background(&self, script: &str) -> Result<Background> {
        let job = self.channel.start(script).map_err(|_| self.lost(Lost::Closed, script, Duration::ZERO))?;
        Ok(Background { job, channel: Arc::clone(&self.channel) })
    }

    /// Waits for a script that runs in the background. One that is late goes on and may be waited for again.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run).
    pub fn wait(&self, running: &Background, timeout: Duration) -> Result<Output> {
        let output = self.channel.wait(running.job, timeout);
        output.map_err(|lost| self.lost(lost, "a command in the background", timeout))
    }

    /// Reboots the guest, which resets its devices; [`wait_ready`](Self::wait_ready) tells when it is back.
    ///
    /// # Errors
    ///
    /// When the guest is gone.
    pub fn reboot(&mut self) -> Result<()> {
        self.boots = self.channel.boots() + 1;
        self.request(Request::Reboot)
    }

    /// Turns the guest off and waits for QEMU to end.
    ///
    /// # Errors
    ///
    /// When it takes longer than `timeout` (it is killed then), or QEMU fails.
    pub fn shutdown(mut self, timeout: Duration) -> Result<()> {
        self.request(Request::PowerOff)?;
        match self.process.wait(timeout) {
            Some(status) if status.success() => Ok(()),
            Some(status) => {
                let (name, tail) = (self.name.clone(), self.process.tail());
                Err(GuestError::Ended { name, status: status.to_string(), tail })
            }
            None => Err(self.lost(Lost::Late, "turning off", timeout)),
        }
    }

    /// Kills QEMU with SIGKILL: to its devices, a VMM that vanishes.
    pub fn kill9(mut self) {
        self.process.kill();
    }

    /// Whether QEMU is still running.
    pub fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    /// The last lines of the guest's console and of QEMU's errors.
    pub fn console_tail(&self) -> String {
        self.process.tail()
    }

    fn request(&self, request: Request<'_>) -> Result<()> {
        self.channel.send(request).map_err(|_| self.lost(Lost::Closed, "", Duration::ZERO))
    }

    fn lost(&self, lost: Lost, what: &str, waited: Duration) -> GuestError {
        let (name, what, tail) = (self.name.clone(), what.to_owned(), self.process.tail());
        match lost {
            Lost::Closed => {
                GuestError::Ended { name, status: "QEMU has closed the control channel".into(), tail }
            }
            Lost::Rebooted => GuestError::Rebooted { name, what, tail },
            Lost::Late => GuestError::Late { name, what, waited, tail },
        }
    }
}

/// A script that runs in the guest. Dropping it leaves it running and forgets its output.
#[derive(Debug)]
pub struct Background {
    job: Job,
    channel: Arc<Channel>,
}

impl Background {
    /// Kills the script with all that it started. Its output so far can still be [waited](LinuxGuest::wait) for.
    pub fn kill(&self) {
        // A guest that is gone runs nothing.
        let _ = self.channel.send(Request::Kill { id: self.job.id });
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.channel.forget(self.job);
    }
}
