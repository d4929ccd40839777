//! Commands to a port, and the channel to its thread. `commands` carries them out.

use super::error::RefusedChange;
use super::order::{PortPolicyUpdate, PreparedVf};
use super::refit::{PortReconfiguration, ReconfigurationResult};
use crate::capture::CaptureWriter;
use crate::control::functions::PortFunctions;
use crate::control::status::PortStatus;
use crate::flight::recording::PendingRecording;
use host::poll::ThreadWaker;
use pcie::VfIndex;
use std::sync::mpsc;

/// Command of the host to a port's thread. The answer goes to the command's sender.
#[derive(Debug)]
pub enum PortThreadCommand {
    /// Returns the port's status.
    Status(mpsc::Sender<PortStatus>),
    /// Return the flight recording of a VF, or `None` if the port has no such VF.
    Flight(VfIndex, mpsc::Sender<Option<PendingRecording>>),
    /// Returns the port's functions as PCI devices.
    Functions(mpsc::Sender<PortFunctions>),
    /// Starts a capture of the port's frames.
    Capture(CaptureWriter),
    /// Checks that the port can carry out an order now.
    Check(PortPolicyUpdate, mpsc::Sender<Result<(), RefusedChange>>),
    /// Carry out an order (new policies) and add the VFs that come with it. The answer is the reason if nothing was
    /// changed.
    Carry(PortPolicyUpdate, Vec<PreparedVf>, mpsc::Sender<Result<(), RefusedChange>>),
    /// Changes the port's uplink, link or processors. The answer is the former values, or the reason for the
    /// refusal and the change itself.
    Refit(Box<PortReconfiguration>, mpsc::Sender<ReconfigurationResult>),
    /// Withdraws VFs until this number of VFs is left. Their clients are disconnected.
    Withdraw(usize, mpsc::Sender<()>),
    /// Reset the port, and return its status or the reason for the refusal. Clients stay connected.
    Reset(mpsc::Sender<Result<PortStatus, RefusedChange>>),
    /// Disconnect a VF's client, and return the port's status. Refused if the VF has no client.
    Disconnect(VfIndex, mpsc::Sender<Result<PortStatus, RefusedChange>>),
    /// Save the port for a successor, then wait for [`PortThreadCommand::Resume`] or [`PortThreadCommand::Leave`]. The
    /// end of the given time means [`PortThreadCommand::Resume`]. The answer is `true` if the port is saved.
    Pause(std::time::Duration, mpsc::Sender<bool>),
    /// Continue to serve the port: there is no successor.
    Resume,
    /// End the port's thread, and leave clients, sockets and uplink to the next process.
    Leave,
    /// End: notify the guests, and disconnect every client.
    Stop,
    /// Panics, for tests of a defective port.
    #[cfg(test)]
    Panic,
}

/// Sender of commands to a port.
#[derive(Debug, Clone)]
pub struct PortHandle {
    commands: mpsc::Sender<PortThreadCommand>,
    waker: ThreadWaker,
}

impl PortHandle {
    /// Sends the port a command. Returns `false` if the port has ended.
    #[must_use]
    pub fn send(&self, command: PortThreadCommand) -> bool {
        let sent = self.commands.send(command).is_ok();
        self.waker.wake();
        sent
    }

    /// Returns the waker of the port's thread.
    pub(crate) fn waker(&self) -> &ThreadWaker {
        &self.waker
    }
}

/// Receiver of commands to a port. It outlives a port that fails.
#[derive(Debug)]
pub struct CommandInbox {
    pub(super) commands: mpsc::Receiver<PortThreadCommand>,
    pub(super) waker: ThreadWaker,
}

impl CommandInbox {
    /// Creates an inbox for the port's thread, and the handle that sends commands to the inbox.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> std::io::Result<(Self, PortHandle)> {
        let (sender, commands) = mpsc::channel();
        let waker = ThreadWaker::new()?;
        let handle = PortHandle { commands: sender, waker: waker.clone() };
        Ok((Self { commands, waker }, handle))
    }
}
