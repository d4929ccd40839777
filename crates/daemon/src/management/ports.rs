//! Running ports with their threads, and the commands to them. A port whose thread panics, or fails otherwise, is
//! opened again with its clients, as after a crash of that port alone.

mod check;
mod ending;
mod life;
mod opening;
mod reopening;

use super::outcome::{ControlRequestResult, unavailable};
use crate::config::PortConfig;
use crate::confine::ThreadSandboxes;
use crate::control::problem::ProblemKind;
use crate::control::protocol::ControlRequestFailure;
use crate::disk_wait::DiskWait;
use crate::port::{
    self, OpenPort, PortCommandInbox, PortHandle, PortThreadCommand, PreparedPort, SharedPortResources,
};
use crate::start_error::HostStartError;
use crate::vault::FileDescriptorStore;
use host::cpus::CpuList;
use life::{PortLife, PortLifeEnd};
use reopening::{PortReopening, PortReopeningMark};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Usual timeout of a port's answer to a command. A port's loop takes far less time.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of failures within [`PERIOD`] after which a port is still opened again.
const FAILURES: usize = 5;
const PERIOD: Duration = Duration::from_secs(60);
/// Longest wait for the threads of a failed port's uplink before the port is opened again: guests wait too.
const FORMER_UPLINK: Duration = Duration::from_millis(500);

/// Running ports, shared by the control thread, which starts and ends them, and the thread that ends the host.
#[derive(Debug, Clone)]
pub(crate) struct RunningPorts {
    running: Arc<Mutex<Vec<RunningPort>>>,
    vault: FileDescriptorStore,
    /// Restrictions for the threads of each port.
    pub(super) threads: ThreadSandboxes,
    common: SharedPortResources,
    failed: Sender<Option<SurvivingPortParts>>,
    disk: DiskWait,
    /// Timeout of a port's answer to a command.
    pub(super) patience: Duration,
}

/// Latest configuration of a port.
#[derive(Debug)]
struct LatestConfig {
    config: PortConfig,
    /// True if a failed port was opened again by `config` since [`RunningPorts::begin_change`].
    was_opened_again: bool,
}

#[derive(Debug)]
struct RunningPort {
    latest: Arc<Mutex<LatestConfig>>,
    name: String,
    handle: PortHandle,
    thread: JoinHandle<()>,
    /// True once the port was ordered to end, or to leave its clients to the successor process.
    ends: bool,
    /// True if a change of the configuration has removed the port: no successor process resumes it.
    removed: bool,
    /// Notification that no thread uses the port's file descriptors any more.
    end: PortLifeEnd,
    /// Mark of the port while it has failed and is not open again.
    reopening: PortReopening,
    /// True if no thread serves the port any more: it failed too often, or could not be opened again.
    given_up: bool,
}

impl RunningPort {
    /// Returns true if the port is expected to answer: it is not ending and not given up.
    fn serves(&self) -> bool {
        !self.ends && !self.given_up
    }

    /// Returns true if the port was ordered to end, and no thread uses its file descriptors or devices any more.
    fn has_ended(&self) -> bool {
        self.ends && self.end.has_come() && self.handle.uplink_threads().devices.have_ended()
    }
}

impl RunningPorts {
    /// Creates an empty list of ports, and the receiver from which [`RunningPorts::revive`] takes failed ports.
    pub(crate) fn new(
        vault: &FileDescriptorStore,
        threads: ThreadSandboxes,
        common: SharedPortResources,
    ) -> (Self, Receiver<Option<SurvivingPortParts>>) {
        let (failed, receiver) = mpsc::channel();
        let (running, vault, patience) = (Arc::default(), vault.clone(), PATIENCE);
        let disk = DiskWait::default();
        (Self { running, vault, threads, common, failed, disk, patience }, receiver)
    }

    /// Opens failed ports again, until the end of the host. Opening needs files and threads, which the confinement
    /// denies a port's own thread.
    pub(crate) fn revive(&self, failed: &Receiver<Option<SurvivingPortParts>>) {
        while let Ok(Some(mut life)) = failed.recv() {
            let config = life.latest_config();
            let name = &config.name;
            if !life.may_go_on() {
                tracing::error!(
                    port = name,
                    "the port has failed too often and is given up; restart or upgrade the host"
                );
                self.give_up(&life.latest);
                continue;
            }
            if life.is_outdated {
                tracing::warn!(
                    port = name,
                    "the port failed during a change and opens again with it; guest drivers restart"
                );
            } else {
                tracing::error!(port = name, "the port has failed and opens again; guest drivers restart");
            }
            // They close devices, and write the rest of a recording.
            if !life.inbox.uplink_threads.wait(FORMER_UPLINK) {
                tracing::warn!(
                    port = name,
                    "a thread of the port's former uplink has not ended; the port does not wait for it"
                );
            }
            // Held until the outcome is stored, also if the port cannot be opened.
            let (_held, _mark) = (life.held.clone(), life.reopens.take());
            let latest = Arc::clone(&life.latest);
            let opened = PreparedPort::open(&config, &self.vault, &life.inbox, &self.threads, &self.common);
            let opened = opened.map_err(|source| HostStartError::of_port(name, source));
            let thread = opened.and_then(|port| self.spawn(&config, port.inherit(&config), life));
            match thread {
                Ok(thread) => self.resume_with(thread, &latest),
                Err(error) => {
                    tracing::error!(
                        port = name,
                        %error,
                        "cannot open the failed port again; correct the problem and restart the host"
                    );
                    self.give_up(&latest);
                }
            }
        }
    }

    /// Stores the new thread of a failed port. A port that was removed ends again: its former life may have begun to.
    fn resume_with(&self, thread: JoinHandle<()>, latest: &Arc<Mutex<LatestConfig>>) {
        let mut ports = self.lock();
        if let Some(port) = ports.iter_mut().find(|port| Arc::ptr_eq(&port.latest, latest)) {
            port.thread = thread;
            if port.removed {
                // The send fails only if the port has ended.
                let _ = port.handle.send(PortThreadCommand::Stop);
            }
        }
    }

    /// Marks a port as given up after repeated failures. Requests that concern all ports skip such a port. If the port was
    /// removed meanwhile, it ends.
    fn give_up(&self, latest: &Arc<Mutex<LatestConfig>>) {
        let mut ports = self.lock();
        if let Some(port) = ports.iter_mut().find(|port| Arc::ptr_eq(&port.latest, latest)) {
            port.given_up = true;
            if port.removed {
                self.release(port);
            }
        }
    }

    /// Returns true if a port was given up after repeated failures. The port cannot answer until an upgrade or a
    /// restart.
    pub(crate) fn is_given_up(&self, name: &str) -> bool {
        self.lock().iter().any(|port| port.name == name && !port.ends && port.given_up)
    }

    /// Ends [`RunningPorts::revive`], so that failed ports are not opened again.
    pub(crate) fn stop_reviving(&self) {
        // The send fails only if the reviver has ended already.
        let _ = self.failed.send(None);
    }

    fn spawn(
        &self,
        config: &PortConfig,
        port: OpenPort,
        life: SurvivingPortParts,
    ) -> Result<JoinHandle<()>, HostStartError> {
        let (failed, cpus) = (self.failed.clone(), config.cpus.clone());
        Ok(self.threads.port.spawn(&config.name, move || run(port, &cpus, life, &failed))?)
    }

    /// Returns the file descriptor store of the host.
    pub(crate) fn vault(&self) -> &FileDescriptorStore {
        &self.vault
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RunningPort>> {
        lock(&self.running)
    }

    /// Starts the thread of an opened port, which resumes the clients of the previous host process first.
    pub(crate) fn start(
        &self,
        config: &PortConfig,
        (port, inbox, handle): (PreparedPort, PortCommandInbox, PortHandle),
    ) -> Result<(), HostStartError> {
        let latest = LatestConfig { config: config.clone(), was_opened_again: false };
        let (name, latest) = (config.name.clone(), Arc::new(Mutex::new(latest)));
        let (held, end) = PortLife::begin();
        let reopening = PortReopening::default();
        let life = SurvivingPortParts {
            held,
            latest: Arc::clone(&latest),
            inbox,
            failures: VecDeque::new(),
            is_outdated: false,
            reopening: reopening.clone(),
            reopens: None,
        };
        let thread = self.spawn(config, port.inherit(config), life)?;
        let (ends, removed, given_up) = (false, false, false);
        self.lock().push(RunningPort {
            latest,
            name,
            handle,
            thread,
            ends,
            removed,
            end,
            reopening,
            given_up,
        });
        Ok(())
    }

    /// Begins a change of the configuration, at whose end [`Self::configure`] stores the new one.
    pub(crate) fn begin_change(&self) {
        self.lock().iter().for_each(|port| lock(&port.latest).was_opened_again = false);
    }

    /// Stores a port's present configuration, by which the port is opened again after a failure. A port that has failed
    /// during the change is opened once more: it lacks what its former life has applied.
    pub(crate) fn configure(&self, config: &PortConfig) {
        for port in self.lock().iter().filter(|port| port.name == config.name && !port.ends) {
            let mut latest = lock(&port.latest);
            if latest.was_opened_again && latest.config != *config {
                // The send fails only if the port has ended.
                let _ = port.handle.send(PortThreadCommand::OpenAgain);
            }
            latest.config.clone_from(config);
        }
    }

    /// Pauses all served ports for a hand-over, for at most `time`. Returns true if all of these ports have paused.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let (sender, receiver) = mpsc::channel();
        let ports = self.lock();
        let pause = |port: &RunningPort| port.handle.send(PortThreadCommand::Pause(time, sender.clone()));
        let serving = || ports.iter().filter(|port| port.serves());
        let told = serving().map(pause).filter(|sent| *sent).count();
        drop(sender);
        let noted = |_| receiver.recv_timeout(self.patience).unwrap_or(false);
        told == serving().count() && (0..told).all(noted)
    }

    /// Resumes the ports that [`Self::pause`] has paused, because there is no successor.
    pub(crate) fn resume(&self) {
        for port in &*self.lock() {
            let _ = port.handle.send(PortThreadCommand::Resume);
        }
    }

    /// Sends a port a command, and waits for the port's answer.
    pub(crate) fn ask<T>(
        &self,
        name: &str,
        command: impl FnOnce(mpsc::Sender<T>) -> PortThreadCommand,
    ) -> ControlRequestResult<T> {
        let (sender, receiver) = mpsc::channel();
        self.tell(name, command(sender))?;
        receiver.recv_timeout(self.patience).map_err(|_| unavailable())
    }

    /// Sends a port a command, without waiting for an answer.
    pub(crate) fn tell(&self, name: &str, command: PortThreadCommand) -> ControlRequestResult<()> {
        let sent = {
            let ports = self.lock();
            let port = ports.iter().find(|port| port.name == name && !port.ends);
            port.is_some_and(|port| port.handle.send(command))
        };
        match sent {
            true => Ok(()),
            false if self.is_given_up(name) => Err(given_up()),
            false => Err(unavailable()),
        }
    }
}

fn given_up() -> ControlRequestFailure {
    let message =
        "the port has failed too often and is given up; see the host's log, then restart or upgrade the host";
    ControlRequestFailure::new(ProblemKind::Unavailable, message)
}

/// Parts of a port that outlive failures of its thread.
#[derive(Debug)]
pub(crate) struct SurvivingPortParts {
    /// Held until the port has ended. No other port may have the name before.
    held: PortLife,
    latest: Arc<Mutex<LatestConfig>>,
    inbox: PortCommandInbox,
    failures: VecDeque<Instant>,
    /// True if the port has not failed, but was opened by an outdated configuration.
    is_outdated: bool,
    reopening: PortReopening,
    /// Mark of the failed port until it is open again.
    reopens: Option<PortReopeningMark>,
}

impl SurvivingPortParts {
    /// Returns the configuration by which the failed port is opened again.
    fn latest_config(&self) -> PortConfig {
        let mut latest = lock(&self.latest);
        latest.was_opened_again = true;
        latest.config.clone()
    }

    /// Counts a failure of the port. Returns false if the port has failed too often to be opened again.
    fn may_go_on(&mut self) -> bool {
        if self.is_outdated {
            return true;
        }
        self.failures.push_back(Instant::now());
        while self.failures.front().is_some_and(|failure| failure.elapsed() > PERIOD) {
            self.failures.pop_front();
        }
        self.failures.len() <= FAILURES
    }
}

/// Runs a port's thread. The successor process of a port that has panicked reads only memory that is always consistent.
fn run(
    port: OpenPort,
    cpus: &CpuList,
    mut life: SurvivingPortParts,
    failed: &Sender<Option<SurvivingPortParts>>,
) {
    match catch_unwind(AssertUnwindSafe(|| port.run(&life.inbox, cpus))) {
        Ok(port::PortThreadOutcome::Ended | port::PortThreadOutcome::HandedOver) => {}
        outcome => {
            life.reopens = Some(life.reopening.begin());
            life.is_outdated = matches!(outcome, Ok(port::PortThreadOutcome::Outdated));
            // The send fails only if the host ends, and then the port stays closed.
            let _ = failed.send(Some(life));
        }
    }
}

/// Locks a mutex, also after a panic: no code panics between two dependent changes under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
