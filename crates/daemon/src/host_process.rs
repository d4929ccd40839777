//! The running host: its threads, and how it ends. Left out: what is asked of it (`management`).

use crate::config::Config;
use crate::control::server;
use crate::management::{Management, Ports};
use crate::port::{Port, PortError};
use host::poll::{Interest, Poller, Waker};
use host::socket::{BindError, Listener};
use std::path::PathBuf;
use std::thread::JoinHandle;
use thiserror::Error;

/// Why the host cannot start. Nothing is left behind.
#[derive(Debug, Error)]
pub enum StartError {
    /// The folder for sockets cannot be made.
    #[error("cannot make {path}: {source}; set runtime_dir to a folder you may write to")]
    RuntimeDir {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
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
    /// epoll, eventfd or a thread.
    #[error("cannot start: {0}")]
    System(#[from] std::io::Error),
}

/// A running host. Dropping it ends it.
#[derive(Debug)]
pub struct Host {
    control_socket: PathBuf,
    ports: Ports,
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
        std::fs::create_dir_all(&config.runtime_dir)
            .map_err(|source| StartError::RuntimeDir { path: config.runtime_dir.clone(), source })?;
        let listener = Listener::bind(&control_socket)?;
        let mut opened = Vec::new();
        for port in &config.ports {
            let open = Port::open(port.clone());
            opened.push(open.map_err(|source| StartError::Port { name: port.name.clone(), source })?);
        }
        let stop = Waker::new()?;
        let poller = Poller::new()?;
        poller.add(&listener, CONTROL, Interest::READ)?;
        poller.add(&stop, STOP, Interest::READ)?;
        let mut host = Self { control_socket, ports: Ports::default(), control: None, stop };
        for (port, opened) in config.ports.iter().zip(opened) {
            host.ports.start(&port.name, opened)?;
        }
        let management = Management::new(config, host.ports.clone());
        let control = Control { listener, poller, management };
        host.control = Some(std::thread::Builder::new().name("control".into()).spawn(move || control.run())?);
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
        self.ports.are_whole() && self.control.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends it: every socket is closed and removed.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop.wake();
        self.ports.end_all();
        if self.control.take().is_some_and(|control| control.join().is_err()) {
            tracing::error!("the control thread had panicked");
        }
        // It may have started one more port meanwhile.
        self.ports.end_all();
        self.ports.join();
    }
}

const CONTROL: u64 = 0;
const STOP: u64 = 1;

/// The control thread.
#[derive(Debug)]
struct Control {
    listener: Listener,
    poller: Poller,
    management: Management,
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
                && let Err(error) = server::serve(stream, |request| self.management.handle(request))
            {
                tracing::debug!(%error, "a control request was not answered");
            }
        }
    }
}
