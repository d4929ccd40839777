//! Executes the steps of the ladder on a function behind VFIO. [`pcie::ladder`] defines their order.

use super::pages::{IOVA, Pages};
use crate::DirectError;
use host::poll::Clock;
use host::vfio::Function;
use pcie::capability::{express, msi, msix, power};
use pcie::config::offset::{COMMAND, COMMAND_BUS_MASTER};
use pcie::ladder::{Action, Rung};
use pcie::walk;
use std::time::Duration;

/// Transactions pending, in the Device Status register of PCI Express.
const PENDING: u16 = 1 << 5;
/// Timeout of pending transactions (PCI Express base specification).
const PENDING_PATIENCE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_micros(100);
/// Time that a device has for a change of its power state.
const POWER_TIME: Duration = Duration::from_millis(10);
const D0: u16 = 0;
const D3HOT: u16 = 0b11;

/// PCI function between two owners.
#[derive(Debug)]
pub(super) struct Handover<'a> {
    function: Function,
    /// PCI command register as Linux left it.
    command: u16,
    old: &'a Pages,
    new: Option<Pages>,
}

/// Returns a dword of configuration space; all ones if there is no answer.
pub(super) fn dword(function: &Function, at: u16) -> u32 {
    let mut bytes = [0xff; 4];
    // Without an answer the bytes stay all ones.
    let _ = function.config(at, &mut bytes);
    u32::from_le_bytes(bytes)
}

fn word(function: &Function, at: u16) -> u16 {
    (dword(function, at & !3) >> (8 * (at & 3))) as u16
}

impl<'a> Handover<'a> {
    /// Starts with the old owner: the function reaches his pages.
    pub(super) fn begin(function: Function, old: &'a Pages) -> Result<Self, DirectError> {
        let command = word(&function, COMMAND);
        function.share(old.memory(), IOVA)?;
        function.enable()?;
        Ok(Self { function, command, old, new: None })
    }

    pub(super) fn function(&self) -> &Function {
        &self.function
    }

    /// Returns the new owner's pages, once that owner has the function.
    pub(super) fn new_pages(&self) -> Option<&Pages> {
        self.new.as_ref()
    }

    pub(super) fn act(&mut self, action: Action) -> Result<(), DirectError> {
        match action {
            Action::BusMasterOff => {
                let command = word(&self.function, COMMAND) & !COMMAND_BUS_MASTER;
                Ok(self.function.set_config(COMMAND, &command.to_le_bytes())?)
            }
            Action::Wait => self.wait(),
            Action::Unmap => Ok(self.function.unshare(self.old.memory(), IOVA)?),
            Action::Reset(rung) => self.reset(rung),
            Action::Restore => self.restore(),
            Action::HandOver => {
                let new = Pages::new()?;
                self.function.share(new.memory(), IOVA)?;
                self.new = Some(new);
                Ok(self.function.enable()?)
            }
        }
    }

    fn wait(&self) -> Result<(), DirectError> {
        let Some(express) = self.find(express::ID) else { return Ok(()) };
        let end = Clock.now_ns() + PENDING_PATIENCE.as_nanos() as u64;
        while word(&self.function, express + express::DEVICE_STATUS) & PENDING != 0 {
            if Clock.now_ns() >= end {
                return Err(DirectError::NotQuiet(self.function.address()));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn reset(&self, rung: Rung) -> Result<(), DirectError> {
        match rung {
            // Linux uses its own preferred reset, which is a function-level reset if the function has one.
            Rung::Function => Ok(self.function.reset()?),
            Rung::Power => {
                self.power(D3HOT)?;
                self.power(D0)
            }
            Rung::Bus => Ok(self.function.reset_bus()?),
        }
    }

    fn power(&self, state: u16) -> Result<(), DirectError> {
        let Some(power) = self.find(power::ID) else { return Ok(()) };
        let control = word(&self.function, power + power::CONTROL) & !power::CONTROL_STATE | state;
        self.function.set_config(power + power::CONTROL, &control.to_le_bytes())?;
        std::thread::sleep(POWER_TIME);
        Ok(())
    }

    /// Restores the configuration of boot time, with bus mastering and messages disabled.
    fn restore(&self) -> Result<(), DirectError> {
        let off =
            [(msi::ID, msi::CONTROL, msi::CONTROL_ENABLE), (msix::ID, msix::CONTROL, msix::CONTROL_ENABLE)];
        for (id, register, enable) in off {
            if let Some(at) = self.find(id) {
                let control = word(&self.function, at + register) & !enable;
                self.function.set_config(at + register, &control.to_le_bytes())?;
            }
        }
        let command = self.command & !COMMAND_BUS_MASTER;
        Ok(self.function.set_config(COMMAND, &command.to_le_bytes())?)
    }

    fn find(&self, id: u8) -> Option<u16> {
        walk::find(|at| dword(&self.function, at), id)
    }
}
