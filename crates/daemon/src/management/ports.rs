//! The ports that run: a thread each, and the way to ask them. Left out: what they are asked.

use super::{Outcome, unavailable};
use crate::port::{Command, Handle, Port};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a port may take to answer a command: it goes round far more often.
const PATIENCE: Duration = Duration::from_secs(5);

/// The ports, shared by the control thread, which starts and ends them, and by who waits for the end of the host.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ports(Arc<Mutex<Vec<Running>>>);

#[derive(Debug)]
struct Running {
    name: String,
    handle: Handle,
    thread: JoinHandle<()>,
    /// It was told to end.
    ends: bool,
}

impl Ports {
    /// Nothing is ever left half done under the lock, so a panic elsewhere does no harm to what it guards.
    fn lock(&self) -> MutexGuard<'_, Vec<Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a port's thread.
    pub(crate) fn start(&self, name: &str, (port, handle): (Port, Handle)) -> io::Result<()> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || port.run())?;
        self.lock().push(Running { name: name.to_owned(), handle, thread, ends: false });
        Ok(())
    }

    /// Tells a port to end. Its thread ends by itself.
    pub(crate) fn end(&self, name: &str) {
        let mut ports = self.lock();
        ports.retain(|port| !(port.ends && port.thread.is_finished()));
        for port in ports.iter_mut().filter(|port| port.name == name && !port.ends) {
            port.ends = true;
            let _ = port.handle.send(Command::Stop);
        }
    }

    /// Tells all ports to end.
    pub(crate) fn end_all(&self) {
        for port in &mut *self.lock() {
            port.ends = true;
            let _ = port.handle.send(Command::Stop);
        }
    }

    /// Waits for the end of all ports, which have been told to.
    pub(crate) fn join(&self) {
        let ended = std::mem::take(&mut *self.lock());
        for port in ended {
            if port.thread.join().is_err() {
                tracing::error!(port = port.name, "the port's thread had panicked");
            }
        }
    }

    /// Whether every port runs that was not told to end.
    pub(crate) fn are_whole(&self) -> bool {
        self.lock().iter().all(|port| port.ends || !port.thread.is_finished())
    }

    /// Asks a port, and waits for its answer.
    pub(crate) fn ask<T>(&self, name: &str, command: impl FnOnce(mpsc::Sender<T>) -> Command) -> Outcome<T> {
        let (sender, receiver) = mpsc::channel();
        let sent = {
            let ports = self.lock();
            let port = ports.iter().find(|port| port.name == name && !port.ends);
            port.is_some_and(|port| port.handle.send(command(sender)))
        };
        if !sent {
            return Err(unavailable());
        }
        receiver.recv_timeout(PATIENCE).map_err(|_| unavailable())
    }
}
