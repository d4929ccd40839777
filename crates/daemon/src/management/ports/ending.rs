//! Ends of ports: of ports that a change of the configuration removes, or of all ports with the host. A removed port ends by
//! itself within two seconds. Its name is free for another port only after that, since both would use the same file descriptors.

use super::super::outcome::ControlRequestResult;
use super::life::PortLife;
use super::{RunningPort, RunningPorts};
use crate::control::problem::ProblemKind;
use crate::control::protocol::ControlRequestFailure;
use crate::leftover;
use crate::port::PortThreadCommand;
use std::time::{Duration, Instant};

impl RunningPorts {
    /// Orders a port to end, without waiting for its end. The port is removed: no successor process resumes it.
    pub(crate) fn end(&self, name: &str) {
        let mut ports = self.lock();
        ports.retain(|port| !port.has_ended());
        for port in ports.iter_mut().filter(|port| port.name == name && !port.ends) {
            (port.ends, port.removed) = (true, true);
            let _ = port.handle.send(PortThreadCommand::Stop);
            if port.given_up {
                self.release(port);
            }
        }
    }

    /// Waits until the ending ports among those with these names have ended, for at most the timeout of an answer.
    pub(crate) fn await_ends(&self, concerns: impl Fn(&str) -> bool) -> ControlRequestResult<()> {
        let deadline = Instant::now() + self.patience;
        let ending = || {
            let ports = self.lock();
            let port = ports.iter().find(|port| port.ends && concerns(&port.name) && !port.has_ended());
            port.map(|port| (port.name.clone(), port.end.clone(), port.handle.uplink_threads().clone()))
        };
        // A port that fails while it ends begins another life.
        while let Some((name, end, uplinks)) = ending() {
            let left = || deadline.saturating_duration_since(Instant::now());
            if !(end.wait(left()) && uplinks.devices.wait(left())) {
                let message = format!(
                    "port {name} was removed and still disconnects its clients; repeat the request in a moment"
                );
                return Err(ControlRequestFailure::new(ProblemKind::Busy, message));
            }
        }
        Ok(())
    }

    /// Releases the kept file descriptors of a removed port that no thread serves, and disconnects its clients, on a thread of
    /// their own.
    pub(super) fn release(&self, port: &mut RunningPort) {
        let (life, end) = PortLife::begin();
        match leftover::release_port(&port.name, &self.vault, &self.threads, life) {
            Ok(thread) => (port.thread, port.end) = (thread, end),
            Err(error) => {
                tracing::error!(
                    port = port.name,
                    %error,
                    "cannot start the thread that disconnects the clients of the removed port; VMMs may end as their \
                     connections are reset"
                );
                // A port of this name that is added later must not find them.
                self.vault.forget_others(&format!("{}.", port.name), |_| false);
            }
        }
    }

    /// Orders all ports to end.
    pub(crate) fn end_all(&self) {
        for port in &mut *self.lock() {
            port.ends = true;
            let _ = port.handle.send(PortThreadCommand::Stop);
        }
    }

    /// Ends the threads of paused ports, which the host's successor process serves now.
    pub(crate) fn leave(&self) {
        for port in &mut *self.lock() {
            port.ends = true;
            let _ = port.handle.send(PortThreadCommand::Leave);
        }
    }

    /// Waits until the threads of all ports have ended, and up to `time` for those of their uplinks. The ports must have been
    /// ordered to end.
    pub(crate) fn join(&self, time: Duration) {
        let ended = std::mem::take(&mut *self.lock());
        let mut uplinks = Vec::new();
        for RunningPort { name, thread, handle, .. } in ended {
            if thread.join().is_err() {
                tracing::error!(port = name, "the port's thread has panicked");
            }
            uplinks.push((name, handle.uplink_threads().clone()));
        }
        let deadline = Instant::now() + time;
        for (port, threads) in uplinks {
            if !threads.wait(deadline.saturating_duration_since(Instant::now())) {
                tracing::warn!(
                    port,
                    "a thread of the port's uplink waits for a disk or the kernel, and ends with the process"
                );
            }
        }
    }

    /// Returns true if the threads of all ports' uplinks have ended.
    pub(crate) fn uplink_threads_have_ended(&self) -> bool {
        self.lock().iter().all(|port| port.handle.uplink_threads().have_ended())
    }

    /// Returns true if the threads of all ports have ended.
    pub(crate) fn have_ended(&self) -> bool {
        self.lock().iter().all(|port| port.thread.is_finished())
    }
}
