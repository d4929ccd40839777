//! A running guest: boots, runs commands, reboots, and ends with or without a shutdown.

pub(crate) mod accel;
pub(crate) mod control;
mod error;
mod frame;
mod machine;
mod migration;
mod monitor;
mod process;

use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::assets::BootFiles;
use accel::QemuAccelerator;
use control::{ControlChannel, GuestCommandError, GuestCommandOutput, PendingCommand};
pub use error::GuestError;
use error::Result;
use frame::RequestToGuest;
use machine::{MachineConfig, VhostInterface};
pub use monitor::MigrationSummary;
use process::{QemuProcess, QemuStartError};

/// Builder of a guest: its name, accelerator and virtual machine.
#[derive(Clone, Debug)]
pub struct GuestBuilder {
    name: String,
    accel: Option<QemuAccelerator>,
    machine: MachineConfig,
}

impl GuestBuilder {
    /// Sets the guest's memory in MiB; the default is 256.
    pub fn memory_mib(mut self, memory_mib: u32) -> Self {
        self.machine.memory_mib = memory_mib;
        self
    }

    /// Sets the number of the guest's virtual CPUs; the default is 1.
    pub fn cpus(mut self, cpus: u32) -> Self {
        self.machine.cpus = cpus;
        self
    }

    /// Adds a VF by the path of the vfio-user socket that serves it. The first VF is `01:00.0` in the guest, the next
    /// `02:00.0`.
    pub fn vf_socket(mut self, path: impl Into<PathBuf>) -> Self {
        self.machine.vf_sockets.push(path.into());
        self
    }

    /// Adds a virtio network interface with `pairs` queue pairs, by the path of the vhost-user socket that serves it. `properties`
    /// are further ones of QEMU's device `virtio-net-pci`.
    pub fn vhost_socket(
        self,
        path: impl Into<PathBuf>,
        pairs: u32,
        properties: &[(&str, serde_json::Value)],
    ) -> Self {
        self.vhost_interface(path.into(), false, pairs, properties)
    }

    /// Adds a virtio network interface as [`Self::vhost_socket`] does. QEMU listens on the vhost-user socket and waits for
    /// the server of the rings before the machine runs.
    pub fn listening_vhost_socket(
        self,
        path: impl Into<PathBuf>,
        pairs: u32,
        properties: &[(&str, serde_json::Value)],
    ) -> Self {
        self.vhost_interface(path.into(), true, pairs, properties)
    }

    fn vhost_interface(
        mut self,
        socket: PathBuf,
        listens: bool,
        pairs: u32,
        properties: &[(&str, serde_json::Value)],
    ) -> Self {
        let properties = properties.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        self.machine.vhost_sockets.push(VhostInterface { socket, listens, pairs, properties });
        self
    }

    /// Permits, or forbids, a VF's server to map the guest's memory. The default is `true`, since a card requires it.
    pub fn shared_memory(mut self, shared: bool) -> Self {
        self.machine.shared_memory = shared;
        self
    }

    /// Makes the guest load drivers for the devices that it finds at its start, or not. The default is `true`.
    pub fn coldplug(mut self, coldplug: bool) -> Self {
        self.machine.coldplug = coldplug;
        self
    }

    /// Adds an IOMMU to the guest's machine if `iommu`; the default is `false`. VFIO in the guest needs an IOMMU to
    /// give devices to programs.
    pub fn iommu(mut self, iommu: bool) -> Self {
        self.machine.iommu = iommu;
        self
    }

    /// Runs QEMU as another user with one group, which only root may request; the default is this user. QEMU may enter
    /// and read all folders, since its own files may be in places for root only; a connection needs further rights.
    pub fn user(mut self, uid: u32, gid: u32) -> Self {
        self.machine.user = Some((uid, gid));
        self
    }

    /// Gives QEMU a monitor, by which the guest can [move](LinuxGuest::migrate) to another QEMU, or none; the default is
    /// `false`. VFs behind vfio-user cannot move.
    pub fn migratable(mut self, migratable: bool) -> Self {
        self.machine.migratable = migratable;
        self
    }

    /// Selects KVM or TCG instead of the result of [`QemuAccelerator::choose`].
    pub fn accel(mut self, accel: QemuAccelerator) -> Self {
        self.accel = Some(accel);
        self
    }

    /// Adds an argument to QEMU's command line.
    pub fn qemu_argument(mut self, argument: impl Into<OsString>) -> Self {
        self.machine.extra.push(argument.into());
        self
    }

    /// Starts QEMU with the guest. [`wait_ready`](LinuxGuest::wait_ready) waits until the guest has booted.
    ///
    /// # Errors
    ///
    /// QEMU cannot be run or ends at once. A socket without a server appears as an error a little later, in
    /// [`wait_ready`](LinuxGuest::wait_ready).
    pub fn spawn(self, assets: &BootFiles) -> Result<LinuxGuest> {
        let accel = self.accel.unwrap_or_else(|| QemuAccelerator::choose(assets));
        let (process, stream) = self.start(accel, assets)?;
        let start = |source| GuestError::Start { name: self.name.clone(), source };
        let channel = Arc::new(ControlChannel::new(stream).map_err(start)?);
        Ok(LinuxGuest { name: self.name, accel, process: Mutex::new(process), channel, boots: 1 })
    }

    /// Starts QEMU. Returns its process, and the host's end of the control channel.
    fn start(&self, accel: QemuAccelerator, assets: &BootFiles) -> Result<(QemuProcess, UnixStream)> {
        let machine = &self.machine;
        let started = QemuProcess::start(assets.qemu().command(), machine.user, |folder| {
            machine.arguments(assets, accel, folder)
        });
        started.map_err(|failed| match failed {
            QemuStartError::System(source) => GuestError::Start { name: self.name.clone(), source },
            QemuStartError::Ended { status, tail } => {
                GuestError::Ended { name: self.name.clone(), status: status.to_string(), tail }
            }
        })
    }
}

/// Running Linux guest in a QEMU process. Dropping it kills QEMU.
#[derive(Debug)]
pub struct LinuxGuest {
    name: String,
    accel: QemuAccelerator,
    /// QEMU that runs the guest. A migration replaces it.
    process: Mutex<QemuProcess>,
    channel: Arc<ControlChannel>,
    /// Number of the boot that [`wait_ready`](Self::wait_ready) waits for.
    boots: u64,
}

impl LinuxGuest {
    /// Returns the builder of a guest with 256 MiB, one CPU and no VF.
    pub fn builder(name: impl Into<String>) -> GuestBuilder {
        let machine = MachineConfig {
            memory_mib: 256,
            cpus: 1,
            shared_memory: true,
            coldplug: true,
            iommu: false,
            user: None,
            migratable: false,
            incoming: false,
            vf_sockets: Vec::new(),
            vhost_sockets: Vec::new(),
            extra: Vec::new(),
        };
        GuestBuilder { name: name.into(), accel: None, machine }
    }

    /// Returns the name of the guest.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the accelerator with which QEMU executes the guest's CPU.
    pub fn accel(&self) -> QemuAccelerator {
        self.accel
    }

    /// Returns QEMU's process id, for example to stop and continue QEMU.
    pub fn pid(&self) -> u32 {
        self.process().id()
    }

    /// Returns the guest's kernel release, once the guest is ready.
    pub fn kernel_release(&self) -> String {
        self.channel.release()
    }

    /// Waits until the guest accepts commands, with the drivers of its devices loaded. After [`reboot`](Self::reboot),
    /// waits until the guest does so again.
    ///
    /// # Errors
    ///
    /// The guest ends or takes longer than `timeout`.
    pub fn wait_ready(&self, timeout: Duration) -> Result<()> {
        let waited = self.channel.wait_boots(self.boots, timeout);
        waited.map_err(|lost| self.lost(lost, "booting", timeout))
    }

    /// Runs a shell script in the guest and waits for its end. A script that exceeds the timeout is killed.
    ///
    /// # Errors
    ///
    /// The guest ends, reboots, or takes longer than `timeout`. A status other than zero is no error here: see
    /// [`check`](Self::check).
    pub fn run(&self, script: &str, timeout: Duration) -> Result<GuestCommandOutput> {
        let running = self.spawn_background(script)?;
        let output = self.channel.wait(running.job, timeout);
        if output == Err(GuestCommandError::Late) {
            running.kill();
        }
        output.map_err(|lost| self.lost(lost, script, timeout))
    }

    /// Runs a shell script in the guest, and returns the script's standard output. A script that fails is an error.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`run`](Self::run), and a status other than zero.
    pub fn check(&self, script: &str, timeout: Duration) -> Result<String> {
        let output = self.run(script, timeout)?;
        if output.success() {
            return Ok(output.stdout);
        }
        Err(GuestError::Status { name: self.name.clone(), what: script.to_owned(), output })
    }

    /// Starts a shell script in the guest without waiting for it. Several may run at once.
    ///
    /// # Errors
    ///
    /// The guest is gone.
    pub fn spawn_background(&self, script: &str) -> Result<BackgroundScript> {
        let job = self
            .channel
            .start(script)
            .map_err(|_| self.lost(GuestCommandError::Closed, script, Duration::ZERO))?;
        Ok(BackgroundScript { job, channel: Arc::clone(&self.channel) })
    }

    /// Waits for a script in the background. After a timeout the script continues, and the caller may wait again.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`run`](Self::run).
    pub fn wait(&self, running: &BackgroundScript, timeout: Duration) -> Result<GuestCommandOutput> {
        let output = self.channel.wait(running.job, timeout);
        output.map_err(|lost| self.lost(lost, "a command in the background", timeout))
    }

    /// Reboots the guest, which resets its devices; [`wait_ready`](Self::wait_ready) waits until the guest has booted
    /// again.
    ///
    /// # Errors
    ///
    /// The guest is gone.
    pub fn reboot(&mut self) -> Result<()> {
        self.boots = self.channel.boots() + 1;
        self.request(RequestToGuest::Reboot)
    }

    /// Turns the guest off and waits for QEMU to end.
    ///
    /// # Errors
    ///
    /// It takes longer than `timeout` (it is killed then), or QEMU fails.
    pub fn shutdown(self, timeout: Duration) -> Result<()> {
        self.request(RequestToGuest::PowerOff)?;
        let ended = self.process().wait(timeout);
        match ended {
            Some(status) if status.success() => Ok(()),
            Some(status) => {
                let (name, tail) = (self.name.clone(), self.console_tail());
                Err(GuestError::Ended { name, status: status.to_string(), tail })
            }
            None => Err(self.lost(GuestCommandError::Late, "the power-off of the guest", timeout)),
        }
    }

    /// Kills QEMU with SIGKILL: the guest's devices see a VMM that vanishes.
    pub fn kill9(self) {
        self.process().kill();
    }

    /// Returns true if QEMU is still running.
    pub fn is_running(&self) -> bool {
        self.process().is_running()
    }

    /// Returns the last lines of the guest's console and of QEMU's errors.
    pub fn console_tail(&self) -> String {
        self.process().tail()
    }

    fn process(&self) -> MutexGuard<'_, QemuProcess> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self, request: RequestToGuest<'_>) -> Result<()> {
        self.channel.send(request).map_err(|_| self.lost(GuestCommandError::Closed, "", Duration::ZERO))
    }

    fn lost(&self, lost: GuestCommandError, what: &str, waited: Duration) -> GuestError {
        let (name, what, tail) = (self.name.clone(), what.to_owned(), self.console_tail());
        match lost {
            GuestCommandError::Closed => {
                GuestError::Ended { name, status: "QEMU has closed the control channel".into(), tail }
            }
            GuestCommandError::Rebooted => GuestError::Rebooted { name, what, tail },
            GuestCommandError::Late => GuestError::Late { name, what, waited, tail },
        }
    }
}

/// Script that runs in the guest in the background. Dropping the handle lets the script run and discards the script's
/// output.
#[derive(Debug)]
pub struct BackgroundScript {
    job: PendingCommand,
    channel: Arc<ControlChannel>,
}

impl BackgroundScript {
    /// Kills the script with all its child processes. Its output so far is still available to
    /// [`wait`](LinuxGuest::wait).
    pub fn kill(&self) {
        // An error means that the guest is gone, and the script with it.
        let _ = self.channel.send(RequestToGuest::Kill { id: self.job.id });
    }
}

impl Drop for BackgroundScript {
    fn drop(&mut self) {
        self.channel.discard(self.job);
    }
}
