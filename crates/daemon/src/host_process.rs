//! The running host: its threads, its end, and its part of a hand-over to a successor process in an upgrade.
//! `management` serves the control requests, and the command `softiov` starts the successor.

mod leave;
mod settle_delay;

pub use settle_delay::SettleDelay;

use crate::clock::HostClock;
use crate::config::HostConfig;
use crate::confine::ThreadSandboxes;
use crate::control::server::{
    ControlRequestSender, ControlServer, ControlServerHandle, ControlThreadGate, WatchdogProbe,
};
use crate::control::tcp::{self, BearerToken};
use crate::file_calls::FileCalls;
use crate::flight::files::FlightRecordingSender;
use crate::leftover;
use crate::management::{HostManager, MainThreadRequest, RunningPorts};
use crate::port::{
    ParentAddressRegistry, PortCommandInbox, PortThreadCommand, PreparedPort, SharedPortResources,
    WireRegistry, XdpPrograms,
};
use crate::socket_access;
use crate::start_error::HostStartError;
use crate::vault::FileDescriptorStore;
use crate::volatile;
use host::folder::{self, SocketFolderError};
use host::poll::ThreadWaker;
use host::socket::{SocketFilePermissions, SocketListener};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// Name of the control socket in the file descriptor store, by which the successor process finds the socket.
const CONTROL: &str = "control";

/// Maximum number of clients that wait in the control socket's queue. No process accepts them for the seconds of a hand-over, and
/// the kernel refuses more with EAGAIN. Twice the number of clients that the host serves at a time.
const CONTROL_BACKLOG: i32 = 128;
/// Longest wait of an ending host for threads of its uplinks, which close devices and write the rest of recordings. One that waits
/// for an interface that another process uses takes 4 s.
const UPLINKS_END: Duration = Duration::from_secs(5);

/// Host that is set up and whose threads do not run yet. It serves no client, and leaves the previous host process's
/// file descriptors untouched.
#[derive(Debug)]
pub struct ReadyHost {
    config: HostConfig,
    vault: FileDescriptorStore,
    listener: SocketListener,
    tcp: Option<(TcpListener, BearerToken)>,
    threads: ThreadSandboxes,
    common: SharedPortResources,
    ports: Vec<(PreparedPort, PortCommandInbox, crate::port::PortHandle)>,
}

impl ReadyHost {
    /// Sets up a host with every port of the configuration, or nothing. Uses the file descriptors that the previous
    /// host process has left in the store `vault`.
    ///
    /// # Errors
    /// [`HostStartError`].
    pub fn open(config: HostConfig, vault: &FileDescriptorStore) -> Result<Self, HostStartError> {
        let config = volatile::restore(config, vault);
        let listener = control_listener(&config, vault)?;
        // A failure of TCP is no reason to leave guests without their VFs.
        let tcp = tcp::open(config.http.as_ref(), vault).unwrap_or_else(|error| {
            tracing::error!(
                %error,
                "cannot serve the control interface over TCP; the host starts without it: correct the problem, and restart or \
                 upgrade the host"
            );
            None
        });
        let threads = ThreadSandboxes::prepare(&config)?;
        let files = FileCalls::default();
        let flights = FlightRecordingSender::start(config.state_dir.as_deref(), &files, &threads.control)?;
        let common = SharedPortResources {
            wires: WireRegistry::default(),
            parents: ParentAddressRegistry::default(),
            programs: XdpPrograms::default(),
            files,
            flights,
            clock: Arc::new(HostClock),
        };
        let mut ports = Vec::new();
        for port in &config.ports {
            let (inbox, handle) = PortCommandInbox::new()?;
            let opened = PreparedPort::open(port, vault, &inbox, &threads, &common);
            let opened = opened.map_err(|source| HostStartError::of_port(&port.name, source))?;
            ports.push((opened, inbox, handle));
        }
        Ok(Self { config, vault: vault.clone(), listener, tcp, threads, common, ports })
    }

    /// Sets up a host that takes the ports from a process which still runs, and continues if this fails.
    ///
    /// # Errors
    /// [`HostStartError`]: also for saved states that this program cannot read, which [`Self::open`] does without.
    pub fn succeed(config: HostConfig, vault: &FileDescriptorStore) -> Result<Self, HostStartError> {
        for port in &config.ports {
            let checked = PreparedPort::check_saved(port, vault);
            checked.map_err(|source| HostStartError::of_port(&port.name, source))?;
        }
        Self::open(config, vault)
    }

    /// Starts the threads of the ready host.
    ///
    /// # Errors
    /// [`HostStartError::System`].
    pub fn start(self) -> Result<RunningHost, HostStartError> {
        let Self { config, vault, mut listener, tcp, threads, common, ports } = self;
        listener.own();
        renew_access(&listener, config.control_access);
        tcp::settle(tcp.as_ref().map(|(listener, _)| listener), &vault)?;
        let control_socket = config.control_socket();
        let (as_control, as_api) = (threads.control.clone(), threads.api.clone());
        let order_waker = ThreadWaker::new()?;
        let (requests, queue) = ControlRequestSender::new();
        let gate = requests.gate();
        let (sender, orders) = mpsc::channel();
        let leaving = Arc::new(AtomicBool::new(false));
        let (running, failed) = RunningPorts::new(&vault, threads.clone(), common);
        let (capturing, probe) = (running.clone(), requests.probe(running.disk_wait().clone()));
        let starter = move |port: &str, capture| capturing.tell(port, PortThreadCommand::Capture(capture));
        let (server, server_handle) = ControlServer::new(listener, tcp, requests, Arc::new(starter))?;
        let mut host = RunningHost {
            control_socket,
            ports: running,
            api: None,
            control: None,
            reviver: None,
            leftover: None,
            probe,
            gate,
            server: server_handle,
            vault,
            leaving: Arc::clone(&leaving),
            ends: AtomicBool::new(false),
            orders,
            order_waker: order_waker.clone(),
        };
        // The ports' threads start first, because guests may be waiting for them.
        for (config, opened) in config.ports.iter().zip(ports) {
            host.ports.start(config, opened)?;
        }
        // Before the control thread may add a port.
        host.leftover = leftover::release(&config, &host.vault, &threads)?;
        let reviver = host.ports.clone();
        host.reviver = Some(as_control.spawn("revive", move || reviver.revive(&failed))?);
        let mut management = HostManager::new(config, host.ports.clone(), (sender, order_waker));
        let going = Arc::clone(&leaving);
        let manage = move || queue.serve(&going, |request| management.handle(request));
        host.control = Some(as_control.spawn("control", manage)?);
        let serve = move || {
            let listener = server.run();
            if leaving.load(Ordering::Acquire) {
                listener.leave();
            }
        };
        host.api = Some(as_api.spawn("api", serve)?);
        Ok(host)
    }
}

/// Running host with its ports and threads. Dropping this value ends the host: in order, or as a crash of the process does
/// if a keeper process starts another host and no call has asked for the end.
#[derive(Debug)]
pub struct RunningHost {
    control_socket: PathBuf,
    ports: RunningPorts,
    /// Thread that serves clients of the control socket.
    api: Option<JoinHandle<()>>,
    /// Control thread, which carries out the requests of the clients of the control interface.
    control: Option<JoinHandle<()>>,
    /// Thread that opens failed ports again.
    reviver: Option<JoinHandle<()>>,
    /// Thread that disconnects clients of the previous host process's ports that the configuration lacks.
    leftover: Option<JoinHandle<()>>,
    probe: WatchdogProbe,
    /// Gate before the control thread, which is shut while the host settles to leave.
    gate: ControlThreadGate,
    server: ControlServerHandle,
    vault: FileDescriptorStore,
    /// True once the successor process serves the control socket, so that this process carries out no more requests.
    leaving: Arc<AtomicBool>,
    /// True once the host was asked to end, or to leave its guests to the successor process.
    ends: AtomicBool,
    orders: mpsc::Receiver<MainThreadRequest>,
    order_waker: ThreadWaker,
}

impl RunningHost {
    /// Starts a new host with every port of the configuration, or nothing.
    ///
    /// # Errors
    /// [`HostStartError`].
    pub fn start(config: HostConfig) -> Result<Self, HostStartError> {
        Self::inherit(config, &FileDescriptorStore::default())
    }

    /// Starts a host that continues from the file descriptors that the previous host process has left in the store
    /// `vault`.
    ///
    /// # Errors
    /// [`HostStartError`].
    pub fn inherit(config: HostConfig, vault: &FileDescriptorStore) -> Result<Self, HostStartError> {
        ReadyHost::open(config, vault)?.start()
    }

    /// Returns the path of the control socket.
    #[must_use]
    pub fn control_socket(&self) -> &std::path::Path {
        &self.control_socket
    }

    /// Returns true if every thread of the host runs. A failed port does not count, because it is opened again.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let runs = |thread: &Option<JoinHandle<()>>| thread.as_ref().is_some_and(|it| !it.is_finished());
        runs(&self.api) && runs(&self.control)
    }

    /// Returns the check of the watchdog, a function that waits until the control thread and every port have answered, or the
    /// ports alone while the control thread waits for a disk. Its error names the part that does not answer.
    pub fn check(&self) -> impl Fn() -> Result<(), String> + Send + use<> {
        let (probe, ports) = (self.probe.clone(), self.ports.clone());
        move || {
            // First: the ports pause while the control thread has the host handed over.
            probe.ask().map_err(|failure| failure.message)?;
            ports.check()
        }
    }

    #[cfg(test)]
    pub(crate) fn ports(&self) -> &RunningPorts {
        &self.ports
    }

    /// Returns the file descriptor store, which the successor process receives.
    #[must_use]
    pub fn vault(&self) -> &FileDescriptorStore {
        &self.vault
    }

    /// Returns a file descriptor that is readable while a request for the main thread ([`RunningHost::order`]) is
    /// pending.
    #[must_use]
    pub fn orders(&self) -> impl AsFd + '_ {
        &self.order_waker
    }

    /// Returns the next request of a control client that only the main thread can carry out: an upgrade.
    #[must_use]
    pub fn order(&self) -> Option<MainThreadRequest> {
        self.order_waker.drain();
        self.orders.try_recv().ok()
    }

    /// Begins the end of the host: notifies guests that their VFs stop, and disconnects clients so that their virtual
    /// machines survive. Afterwards call [`RunningHost::has_ended`] or [`RunningHost::stop`].
    pub fn end(&self) {
        self.ends.store(true, Ordering::Release);
        self.server.stop();
        self.gate.open();
        self.ports.stop_reviving();
        self.ports.end_all();
    }

    /// Returns true if every client is disconnected, which takes two seconds at most, and the host's threads have ended: a thread
    /// may wait for a disk.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ports.have_ended() && self.own_threads_have_ended()
    }

    /// Ends the host and waits until every client is disconnected and every socket is closed and removed.
    pub fn stop(self) {
        self.ends.store(true, Ordering::Release);
        drop(self);
    }

    /// Leaves the guests to the next host after a defect of this process. The caller ends the process.
    ///
    /// An end in order would take the VFs from all guests for good. The death of a process costs a guest a reset of its
    /// driver at most, and the next host expects it at any instruction. So this process touches nothing any more: its
    /// threads serve until it ends, and the keeper has copies of all descriptors.
    fn give_up(&self) {
        tracing::error!("a defect ends this process; the keeper process starts another host with the guests");
        // The api thread ends with its handle, and leaves the control socket's file.
        self.leaving.store(true, Ordering::Release);
        // A port whose commands have no sender ends in order.
        std::mem::forget(self.ports.clone());
    }

    fn join(&mut self) {
        self.ports.stop_reviving();
        if self.reviver.take().is_some_and(|reviver| reviver.join().is_err()) {
            tracing::error!("the thread that reopens ports has panicked");
        }
        // The control thread ends after the api thread, which is the only source of its requests.
        for (name, thread) in [("api", self.api.take()), ("control", self.control.take())] {
            if thread.is_some_and(|thread| thread.join().is_err()) {
                tracing::error!("the {name} thread has panicked");
            }
        }
        // The control thread may have started one more port before it ended.
        self.ports.end_all();
        self.ports.join(UPLINKS_END);
        // A client would read a reset if the process ended before its connection is drained, which takes seconds at most.
        if self.leftover.take().is_some_and(|leftover| leftover.join().is_err()) {
            tracing::error!("the thread that disconnects clients of removed ports has panicked");
        }
    }
}

impl Drop for RunningHost {
    fn drop(&mut self) {
        if !self.ends.load(Ordering::Acquire) {
            // The host notices the death of its keeper by a message that fails.
            self.vault.say("STATUS=a defect ends this process");
            if self.vault.is_kept() {
                return self.give_up();
            }
        }
        if self.api.is_some() || self.control.is_some() {
            self.end();
            self.join();
            self.vault.forget(CONTROL);
            tcp::forget(&self.vault);
            volatile::forget(&self.vault);
        }
    }
}

/// Returns the control socket of the previous host process, or a new one. Only the host's user can enter its folder,
/// and the group that `control = { group }` names.
fn control_listener(
    config: &HostConfig,
    vault: &FileDescriptorStore,
) -> Result<SocketListener, HostStartError> {
    let (socket, access) = (config.control_socket(), config.control_access);
    if let Some(listener) = vault.copy(CONTROL).and_then(|fd| SocketListener::adopt(fd, &socket)) {
        lengthen_queue(&listener);
        return Ok(listener);
    }
    folder::make(&config.runtime_dir, folder::PASSABLE)?;
    if let Some(folder) = socket.parent() {
        folder::make(folder, folder::PRIVATE)?;
        restrict(folder, access)?;
    }
    let listener = SocketListener::bind(&socket, access)?;
    lengthen_queue(&listener);
    vault.keep(CONTROL, listener.as_fd())?;
    Ok(listener)
}

/// Makes room for clients that connect while no process accepts them.
fn lengthen_queue(listener: &SocketListener) {
    if let Err(error) = listener.set_backlog(CONTROL_BACKLOG) {
        tracing::warn!(%error, "cannot lengthen the queue of the control socket; some clients may be refused during an upgrade");
    }
}

/// Restricts the control socket's folder, which a former host may have given to a group.
fn restrict(folder: &Path, access: SocketFilePermissions) -> Result<(), SocketFolderError> {
    let mode = if access.group.is_some() { 0o710 } else { folder::PRIVATE };
    folder::restrict(folder, mode, access.group)
}

/// Gives a control socket that the previous host process has left, and its folder, the access that the configuration grants
/// now.
fn renew_access(listener: &SocketListener, access: SocketFilePermissions) {
    let folder = listener.path().parent();
    if let Err(error) = folder.map_or(Ok(()), |folder| restrict(folder, access)) {
        tracing::error!(
            %error,
            "the folder of the control socket does not have the configured access; only the host's user may use the socket: \
             correct the problem, and upgrade or restart the host"
        );
        return socket_access::renew(listener, SocketFilePermissions::PRIVATE);
    }
    socket_access::renew(listener, access);
}

#[cfg(test)]
mod tests;
