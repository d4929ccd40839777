//! The running host: its threads, how it ends, and how it hands over to a successor. Left out: what is asked of it
//! (`management`), and starting the successor, which is the command's.

use crate::config::Config;
use crate::confine::Threads;
use crate::control::server::Server;
use crate::management::{Management, Order, Ports};
use crate::port::{Inbox, Port, PortError};
use crate::vault::Vault;
use crate::volatile;
use host::confine::ConfineError;
use host::folder::{self, FolderError};
use host::poll::Waker;
use host::socket::{BindError, Listener};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use thiserror::Error;

/// Why the host cannot start. Nothing is left behind.
#[derive(Debug, Error)]
pub enum StartError {
    /// The folder for sockets cannot be made, or is not safe.
    #[error("{0}; set runtime_dir to a folder of your own")]
    RuntimeDir(#[from] FolderError),
    /// The control socket cannot be made.
    #[error("control socket: {0}")]
    Control(#[from] BindError),
    /// A port cannot be started.
    #[error("{name}: {source}")]
    Port {
        /// The port.
        name: String,
        /// Why.
        source: PortError,
    },
    /// What is to be given up is not.
    #[error(transparent)]
    Confine(#[from] ConfineError),
    /// epoll, eventfd or a thread.
    #[error("cannot start: {0}")]
    System(#[from] std::io::Error),
}

/// Under which name the vault has the control socket.
const CONTROL: &str = "control";

/// A host that is set up and does not run yet. Nobody is served, and what a predecessor has left is still there.
#[derive(Debug)]
pub struct ReadyHost {
    config: Config,
    vault: Vault,
    listener: Listener,
    threads: Threads,
    ports: Vec<(Port, Inbox, crate::port::Handle)>,
}

impl ReadyHost {
    /// Sets up every port of the configuration, or nothing, with what is in the vault.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn open(config: Config, vault: &Vault) -> Result<Self, StartError> {
        let config = volatile::restore(config, vault);
        let listener = control_listener(&config, vault)?;
        let threads = Threads::prepare(&config)?;
        let mut ports = Vec::new();
        for port in &config.ports {
            let (inbox, handle) = Inbox::new()?;
            let opened = Port::open(port, vault, &inbox, &threads);
            let opened = opened.map_err(|source| StartError::Port { name: port.name.clone(), source })?;
            ports.push((opened, inbox, handle));
        }
        Ok(Self { config, vault: vault.clone(), listener, threads, ports })
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// [`StartError::System`].
    pub fn start(self) -> Result<Host, StartError> {
        let Self { config, vault, mut listener, threads, ports } = self;
        listener.own();
        let control_socket = config.control_socket();
        let as_control = threads.control.clone();
        let (stop, order_waker) = (Waker::new()?, Waker::new()?);
        let server = Server::new(listener, &stop)?;
        let (sender, orders) = mpsc::channel();
        let leaving = Arc::new(AtomicBool::new(false));
        let (running, failed) = Ports::new(&vault, threads);
        let mut host = Host {
            control_socket,
            ports: running,
            control: None,
            reviver: None,
            stop,
            vault,
            leaving: Arc::clone(&leaving),
            orders,
            order_waker: order_waker.clone(),
        };
        // First of all threads: guests may be waiting for them.
        for (config, opened) in config.ports.iter().zip(ports) {
            host.ports.start(config, opened)?;
        }
        let reviver = host.ports.clone();
        host.reviver = Some(as_control.spawn("revive", move || reviver.revive(&failed))?);
        let mut management = Management::new(config, host.ports.clone(), (sender, order_waker));
        let serve = move || match server.run(|request| management.handle(request)) {
            Ok(listener) if leaving.load(Ordering::Acquire) => listener.leave(),
            Ok(_) => {}
            Err(error) => tracing::error!(%error, "the control socket is given up"),
        };
        host.control = Some(as_control.spawn("control", serve)?);
        Ok(host)
    }
}

/// A running host. Dropping it ends it.
#[derive(Debug)]
pub struct Host {
    control_socket: PathBuf,
    ports: Ports,
    control: Option<JoinHandle<()>>,
    /// It opens ports again that have failed.
    reviver: Option<JoinHandle<()>>,
    stop: Waker,
    vault: Vault,
    /// A successor has the control socket.
    leaving: Arc<AtomicBool>,
    orders: mpsc::Receiver<Order>,
    order_waker: Waker,
}

impl Host {
    /// Starts every port of the configuration, or nothing.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(config: Config) -> Result<Self, StartError> {
        Self::inherit(config, &Vault::default())
    }

    /// Starts with what a predecessor has left in the vault.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn inherit(config: Config, vault: &Vault) -> Result<Self, StartError> {
        ReadyHost::open(config, vault)?.start()
    }

    /// Where commands reach it.
    #[must_use]
    pub fn control_socket(&self) -> &std::path::Path {
        &self.control_socket
    }

    /// Whether the host can be asked. A port that has failed is opened again, and is no reason to end.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.control.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    #[cfg(test)]
    pub(crate) fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Where descriptors are kept for a successor.
    #[must_use]
    pub fn vault(&self) -> &Vault {
        &self.vault
    }

    /// Readable when [`Host::order`] has something.
    #[must_use]
    pub fn orders(&self) -> impl AsFd + '_ {
        &self.order_waker
    }

    /// What a client of the control socket wants that only the process as a whole can do.
    #[must_use]
    pub fn order(&self) -> Option<Order> {
        self.order_waker.drain();
        self.orders.try_recv().ok()
    }

    /// Sets every port aside for a successor. They wait for so long for [`Host::leave`], and go on afterwards, or at once
    /// if not all of them can be set aside: whether they are.
    #[must_use]
    pub fn pause(&self, time: Duration) -> bool {
        let paused = self.ports.pause(time);
        if !paused {
            self.resume();
        }
        paused
    }

    /// Goes on after [`Host::pause`].
    pub fn resume(&self) {
        self.ports.resume();
    }

    /// Ends after [`Host::pause`] without a word to anybody: a successor goes on with everything.
    pub fn leave(mut self) {
        self.leaving.store(true, Ordering::Release);
        self.ports.leave();
        self.stop.wake();
        self.join();
    }

    /// Begins the end: guests are told that their VFs stop, and clients are let go so that their machines live on. To
    /// be followed by [`Host::has_ended`] or by [`Host::stop`].
    pub fn end(&self) {
        self.stop.wake();
        self.ports.end_all();
    }

    /// Whether every client is let go; it takes two seconds at most.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ports.have_ended()
    }

    /// Ends it, and waits until every client is let go: every socket is closed and removed.
    pub fn stop(self) {
        drop(self);
    }

    fn join(&mut self) {
        self.ports.stop_reviving();
        if self.reviver.take().is_some_and(|reviver| reviver.join().is_err()) {
            tracing::error!("the thread that opens ports again had panicked");
        }
        if self.control.take().is_some_and(|control| control.join().is_err()) {
            tracing::error!("the control thread had panicked");
        }
        // It may have started one more port meanwhile.
        self.ports.end_all();
        self.ports.join();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if self.control.is_some() {
            self.end();
            self.join();
            self.vault.forget(CONTROL);
            volatile::forget(&self.vault);
        }
    }
}

/// The control socket of a predecessor, or a new one. Only the host's user can enter its folder, and the group that
/// `control = { group }` names.
fn control_listener(config: &Config, vault: &Vault) -> Result<Listener, StartError> {
    let (socket, access) = (config.control_socket(), config.control_access);
    if let Some(listener) = vault.copy(CONTROL).and_then(|fd| Listener::adopt(fd, &socket)) {
        return Ok(listener);
    }
    folder::make(&config.runtime_dir, folder::PASSABLE)?;
    if let Some(folder) = socket.parent() {
        folder::make(folder, folder::PRIVATE)?;
        // The host before may have let a group in.
        let mode = if access.group.is_some() { 0o710 } else { folder::PRIVATE };
        folder::restrict(folder, mode, access.group)?;
    }
    let listener = Listener::bind(&socket, access)?;
    vault.keep(CONTROL, listener.as_fd())?;
    Ok(listener)
}
