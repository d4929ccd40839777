//! The running host: its threads, and how it ends.

use crate::config::Config;
use crate::confine::confinement;
use crate::control::protocol::{
    Answer, Change, Failure, NO_SUCH_NAME, PortChange, REFUSED, Request, UNAVAILABLE,
};
use crate::control::server;
use crate::control::status::PortStatus;
use crate::port::{Command, Handle, Port, PortError, RefusedChange};
use host::confine::{ConfineError, Prepared, Role};
use host::folder::{self, FolderError};
use host::poll::{Interest, Poller, Waker};
use host::socket::{BindError, Listener};
use i82576::VfIndex;
use std::path::PathBuf;
use std::sync::mpsc;
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

/// How long a port may take to answer a command: it goes round far more often.
const PATIENCE: Duration = Duration::from_secs(5);

/// A running host. Dropping it ends it.
#[derive(Debug)]
pub struct Host {
    control_socket: PathBuf,
    ports: Vec<(Handle, JoinHandle<()>)>,
    control: Option<JoinHandle<()>>,
    stop: Waker,
}

impl Host {
    /// Starts every port of the configuration, or nothing.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(config: Config) -> Result<Self, StartError> {
        let control_socket = config.control_socket();
        let confinement = confinement(&config);
        let (as_port, as_control) = (confinement.prepare(Role::Port)?, confinement.prepare(Role::Control)?);
        let listener = control_listener(&config)?;
        let mut opened = Vec::new();
        for port in config.ports {
            let (name, vfs) = (port.name.clone(), port.vfs.iter().map(|vf| vf.name.clone()).collect());
            let (port, handle) =
                Port::open(port).map_err(|source| StartError::Port { name: name.clone(), source })?;
            opened.push((port, PortEntry { name, vfs, handle }));
        }
        let stop = Waker::new()?;
        let poller = Poller::new()?;
        poller.add(&listener, CONTROL, Interest::READ)?;
        poller.add(&stop, STOP, Interest::READ)?;
        let mut host = Self { control_socket, ports: Vec::new(), control: None, stop };
        let mut entries = Vec::new();
        for (port, entry) in opened {
            let thread = start(&entry.name, as_port.clone(), move || port.run())?;
            host.ports.push((entry.handle.clone(), thread));
            entries.push(entry);
        }
        let control = Control { listener, poller, ports: entries };
        host.control = Some(start("control", as_control, move || control.run())?);
        Ok(host)
    }

    /// Where commands reach it.
    #[must_use]
    pub fn control_socket(&self) -> &std::path::Path {
        &self.control_socket
    }

    /// Whether every thread still runs; one that does not has logged why.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.ports.iter().all(|(_, thread)| !thread.is_finished())
            && self.control.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends it: every socket is closed and removed.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop.wake();
        for (handle, _) in &self.ports {
            let _ = handle.send(Command::Stop);
        }
        let threads = self.ports.drain(..).map(|(_, thread)| thread).chain(self.control.take());
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread of the host had panicked");
            }
        }
    }
}

/// Starts a thread that gives up what it does not need before it does anything else, and waits until it has.
fn start(
    name: &str,
    prepared: Prepared,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, StartError> {
    let (sender, confined) = mpsc::channel();
    let confine = move || {
        let outcome = prepared.apply();
        let confined = outcome.is_ok();
        // Who started it waits for nothing else.
        if sender.send(outcome).is_ok() && confined {
            body();
        }
    };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(confine)?;
    match confined.recv() {
        Ok(outcome) => outcome?,
        Err(_) => return Err(std::io::Error::other("a thread of the host ended at once").into()),
    }
    Ok(thread)
}

/// Binds the control socket, in a folder that nobody else can enter but a group that may give commands.
fn control_listener(config: &Config) -> Result<Listener, StartError> {
    let (socket, access) = (config.control_socket(), config.control_access);
    folder::make(&config.runtime_dir, folder::PASSABLE)?;
    if let Some(folder) = socket.parent() {
        folder::make(folder, folder::PRIVATE)?;
        // The host before may have let a group in.
        let mode = if access.group.is_some() { 0o710 } else { folder::PRIVATE };
        folder::restrict(folder, mode, access.group)?;
    }
    Ok(Listener::bind(&socket, access)?)
}

const CONTROL: u64 = 0;
const STOP: u64 = 1;

/// A port as commands find it.
#[derive(Debug)]
struct PortEntry {
    name: String,
    vfs: Vec<String>,
    handle: Handle,
}

/// The control thread.
#[derive(Debug)]
struct Control {
    listener: Listener,
    poller: Poller,
    ports: Vec<PortEntry>,
}

impl Control {
    fn run(mut self) {
        loop {
            let events: Vec<u64> = match self.poller.wait(None) {
                Ok(events) => events.map(|event| event.token).collect(),
                Err(error) => {
                    tracing::error!(%error, "the control socket is given up");
                    return;
                }
            };
            if events.contains(&STOP) {
                return;
            }
            if let Ok(Some(stream)) = self.listener.accept()
                && let Err(error) = server::serve(stream, |request| self.handle(request))
            {
                tracing::debug!(%error, "a control request was not answered");
            }
        }
    }

    fn handle(&self, request: Request) -> Result<Answer, Failure> {
        match request {
            Request::PortList => {
                let ask = |port: &PortEntry| port.ask(Command::Status);
                Ok(Answer::Ports(self.ports.iter().map(ask).collect::<Result<_, _>>()?))
            }
            Request::PortShow { port } => self.port(&port, |port| port.ask(Command::Status)),
            Request::PortSet { port, change } => self.port(&port, |port| port.change_port(change)),
            Request::PortReset { port } => self.port(&port, PortEntry::reset),
            // A PF that a guest drives is what its port has in the place of VFs.
            Request::VfShow { vf } if self.ports.iter().any(|port| port.name == vf) => {
                self.port(&vf, |port| port.ask(Command::Status))
            }
            Request::VfShow { vf } => self.vf(&vf, |port, _| port.ask(Command::Status)),
            Request::VfSet { vf, change } => self.vf(&vf, |port, index| port.change(index, change)),
        }
    }

    /// Finds a port by name, asks it, and answers with its status.
    fn port(
        &self,
        name: &str,
        ask: impl FnOnce(&PortEntry) -> Result<PortStatus, Failure>,
    ) -> Result<Answer, Failure> {
        let Some(port) = self.ports.iter().find(|port| port.name == name) else {
            let known: Vec<&str> = self.ports.iter().map(|port| port.name.as_str()).collect();
            let message = format!("no port is called {name:?}; there are {}", known.join(", "));
            return Err(Failure { code: NO_SUCH_NAME, message });
        };
        Ok(Answer::Port(Box::new(ask(port)?)))
    }

    /// Finds a VF by name, asks its port, and answers with the VF's status.
    fn vf(
        &self,
        name: &str,
        ask: impl FnOnce(&PortEntry, VfIndex) -> Result<PortStatus, Failure>,
    ) -> Result<Answer, Failure> {
        let find = |port: &PortEntry| port.vfs.iter().position(|vf| vf == name);
        let found = self.ports.iter().find_map(|port| Some((port, find(port)?)));
        let Some((port, position)) = found else {
            let known: Vec<&str> = self.ports.iter().flat_map(|p| p.vfs.iter().map(String::as_str)).collect();
            let message = format!("no VF is called {name:?}; there are {}", known.join(", "));
            return Err(Failure { code: NO_SUCH_NAME, message });
        };
        let index = VfIndex::all().nth(position).ok_or_else(unavailable)?;
        let status = ask(port, index)?;
        let vf = status.vfs.into_iter().nth(position).ok_or_else(unavailable)?;
        Ok(Answer::Vf(Box::new(vf)))
    }
}

impl PortEntry {
    fn change(&self, vf: VfIndex, change: Change) -> Result<PortStatus, Failure> {
        self.order(|answer| Command::Change(vf, change, answer))
    }

    fn change_port(&self, change: PortChange) -> Result<PortStatus, Failure> {
        self.order(|answer| Command::ChangePort(change, answer))
    }

    fn reset(&self) -> Result<PortStatus, Failure> {
        self.order(Command::Reset)
    }

    /// Asks for what may be refused.
    fn order(
        &self,
        command: impl FnOnce(mpsc::Sender<Result<PortStatus, RefusedChange>>) -> Command,
    ) -> Result<PortStatus, Failure> {
        self.ask(command)?.map_err(|refused| Failure { code: REFUSED, message: refused.to_string() })
    }

    fn ask<T>(&self, command: impl FnOnce(mpsc::Sender<T>) -> Command) -> Result<T, Failure> {
        let (sender, receiver) = mpsc::channel();
        if !self.handle.send(command(sender)) {
            return Err(unavailable());
        }
        receiver.recv_timeout(PATIENCE).map_err(|_| unavailable())
    }
}

fn unavailable() -> Failure {
    Failure { code: UNAVAILABLE, message: "the port does not answer; see the host's log".into() }
}
