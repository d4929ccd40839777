//! Commands to a port, and their way to its thread. Left out: how they are carried out (`commands`).

use super::error::RefusedChange;
use super::order::{OpenVf, Order};
use super::refit::{Refit, Refitted};
use crate::capture::Capture;
use crate::control::functions::Functions;
use crate::control::status::PortStatus;
use crate::flight::recording::Taken;
use host::poll::Waker;
use pcie::VfIndex;
use std::sync::mpsc;

/// What a port can be asked to do. Each answer goes to the sender given.
#[derive(Debug)]
pub enum Command {
    /// Tell how things are.
    Status(mpsc::Sender<PortStatus>),
    /// Tell what a VF did last; nothing if there is no such VF.
    Flight(VfIndex, mpsc::Sender<Option<Taken>>),
    /// Tell of its functions as PCI devices.
    Functions(mpsc::Sender<Functions>),
    /// Have somebody see what becomes of frames.
    Capture(Capture),
    /// Tell whether an order could be carried out now.
    Check(Order, mpsc::Sender<Result<(), RefusedChange>>),
    /// Carry out an order, with the VFs that come with it, or tell why nothing was changed.
    Carry(Order, Vec<OpenVf>, mpsc::Sender<Result<(), RefusedChange>>),
    /// Go on with another uplink, link or processors. The answer is what takes that back; or why it was not done, and what
    /// was given.
    Refit(Box<Refit>, mpsc::Sender<Refitted>),
    /// Offer only this many VFs from now on; the clients of the others come to their end.
    Withdraw(usize, mpsc::Sender<()>),
    /// Reset the port under its VFs, then tell how things are, or why it was not done.
    Reset(mpsc::Sender<Result<PortStatus, RefusedChange>>),
    /// Let a VF's client go, then tell how things are, or that there is none.
    Disconnect(VfIndex, mpsc::Sender<Result<PortStatus, RefusedChange>>),
    /// Set everything aside and wait, for so long, for what comes next: [`Command::Resume`], which is also what the end
    /// of that time means, or [`Command::Leave`]. The answer says whether everything is set aside.
    Pause(std::time::Duration, mpsc::Sender<bool>),
    /// Go on: there is no successor.
    Resume,
    /// End without a word: a successor has everything.
    Leave,
    /// End: tell the guests, let every client go.
    Stop,
    /// Fail as by a defect.
    #[cfg(test)]
    Panic,
}

/// The other end of a port: commands go in here.
#[derive(Debug, Clone)]
pub struct Handle {
    commands: mpsc::Sender<Command>,
    waker: Waker,
}

impl Handle {
    /// Sends a command; `false` if the port has ended.
    #[must_use]
    pub fn send(&self, command: Command) -> bool {
        let sent = self.commands.send(command).is_ok();
        self.waker.wake();
        sent
    }

    /// Wakes the port.
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }
}

/// Where a port finds its commands. It outlives a port that fails.
#[derive(Debug)]
pub struct Inbox {
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) waker: Waker,
}

impl Inbox {
    /// An empty one, and the way into it.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> std::io::Result<(Self, Handle)> {
        let (sender, commands) = mpsc::channel();
        let waker = Waker::new()?;
        let handle = Handle { commands: sender, waker: waker.clone() };
        Ok((Self { commands, waker }, handle))
    }
}
