//! Commands to a port, and the channel to its thread. `carry_out` carries them out.

use super::error::PortChangeRefusal;
use super::policy_update::{PortPolicyUpdate, PreparedVf};
use super::refit::{PortReconfiguration, ReconfigurationResult};
use crate::capture::CaptureWriter;
use crate::control::export::ExportedCounters;
use crate::control::functions::PortFunctions;
use crate::control::status::PortStatus;
use crate::flight::recording::PendingFlightRecording;
use crate::uplink_threads::UplinkThreads;
use host::poll::ThreadWaker;
use pcie::VfIndex;
use std::sync::mpsc;

/// Command of the control thread to a port's thread. The answer goes to the sender that comes with the command.
#[derive(Debug)]
pub enum PortThreadCommand {
    /// Return the port's status report.
    Status(mpsc::Sender<PortStatus>),
    /// Return the flight recording of a VF, or `None` if the port has no such VF.
    Flight(VfIndex, mpsc::Sender<Option<PendingFlightRecording>>),
    /// Return the port's functions as PCI devices.
    Functions(mpsc::Sender<PortFunctions>),
    /// Start a capture of the port's frames, with this writer.
    Capture(CaptureWriter),
    /// Check that the port can apply new policies now.
    Check(PortPolicyUpdate, mpsc::Sender<Result<(), PortChangeRefusal>>),
    /// Add the VFs that come with the command, and apply new policies. The answer is the reason if nothing was
    /// changed.
    ApplyPolicies(PortPolicyUpdate, Vec<PreparedVf>, mpsc::Sender<Result<(), PortChangeRefusal>>),
    /// Change the port's uplink, link or processors. The answer is the former values; if the port refuses, the reason
    /// together with the change.
    Refit(Box<PortReconfiguration>, mpsc::Sender<ReconfigurationResult>),
    /// Withdraw the port's last VFs, so that this number of VFs is left, and disconnect the clients of withdrawn VFs.
    Withdraw(usize, mpsc::Sender<()>),
    /// Reset the port, and return its status or the reason for the refusal. Clients stay connected.
    Reset(mpsc::Sender<Result<PortStatus, PortChangeRefusal>>),
    /// Continue a VF's counters from those of another host's VF.
    Import(VfIndex, Box<ExportedCounters>, mpsc::Sender<()>),
    /// Disconnect a VF's client, and return the port's status. Refused if the VF has no client.
    Disconnect(VfIndex, mpsc::Sender<Result<PortStatus, PortChangeRefusal>>),
    /// End, to be opened again by the latest configuration: this life was opened by an outdated one.
    OpenAgain,
    /// Save the port for a successor process, then wait for [`PortThreadCommand::Resume`] or
    /// [`PortThreadCommand::Leave`]. The end of the given time means [`PortThreadCommand::Resume`]. The answer is
    /// `true` if the port is saved.
    Pause(std::time::Duration, mpsc::Sender<bool>),
    /// Resume the paused port: there is no successor.
    Resume,
    /// End the paused port's thread, and leave the port's clients, sockets and uplink to the successor process.
    Leave,
    /// End the port: notify the guests, and disconnect every client.
    Stop,
    /// Command to panic, for tests of a port whose thread fails.
    #[cfg(test)]
    Panic,
    /// Command to carry out nothing until the sender is dropped, for tests of a port that is late.
    #[cfg(test)]
    Stall(mpsc::Receiver<()>),
}

/// Sender of commands to a port's thread.
#[derive(Debug, Clone)]
pub struct PortHandle {
    commands: mpsc::Sender<PortThreadCommand>,
    waker: ThreadWaker,
    uplink_threads: UplinkThreads,
}

impl PortHandle {
    /// Sends the port a command. Returns `false` if the port has ended.
    #[must_use]
    pub fn send(&self, command: PortThreadCommand) -> bool {
        let sent = self.commands.send(command).is_ok();
        self.waker.wake();
        sent
    }

    /// Returns the waker that ends the sleep of the port's thread.
    pub(crate) fn waker(&self) -> &ThreadWaker {
        &self.waker
    }

    /// Returns the threads of the port's uplinks.
    pub(crate) fn uplink_threads(&self) -> &UplinkThreads {
        &self.uplink_threads
    }
}

/// Receiver of the commands to a port. It outlives a port that fails.
#[derive(Debug)]
pub struct PortCommandInbox {
    pub(super) commands: mpsc::Receiver<PortThreadCommand>,
    pub(super) waker: ThreadWaker,
    /// Threads of the uplinks of all lives of the port.
    pub(crate) uplink_threads: UplinkThreads,
}

impl PortCommandInbox {
    /// Creates an inbox for the port's thread, and the handle that sends commands to the inbox.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> std::io::Result<(Self, PortHandle)> {
        let (sender, commands) = mpsc::channel();
        let waker = ThreadWaker::new()?;
        let uplink_threads = UplinkThreads::default();
        let handle =
            PortHandle { commands: sender, waker: waker.clone(), uplink_threads: uplink_threads.clone() };
        Ok((Self { commands, waker, uplink_threads }, handle))
    }
}
