//! Executes the steps of the reset ladder on a function behind VFIO. [`pcie::ladder`] defines their order.

use super::pages::{IOVA, OwnerMemoryPages};
use crate::DriverStartError;
use host::poll::MonotonicClock;
use host::vfio::VfioFunction;
use pcie::capability::{express, msi, msix, power};
use pcie::config::offset::{COMMAND, COMMAND_BUS_MASTER};
use pcie::ladder::{DeviceResetMethod, ResetAction};
use pcie::walk;
use std::time::Duration;

/// Bit of the PCI Express Device Status register: transactions are pending.
const PENDING: u16 = 1 << 5;
/// Timeout for the end of pending transactions (PCI Express base specification).
const PENDING_PATIENCE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_micros(100);
/// Waiting time after a change of the device's power state.
const POWER_TIME: Duration = Duration::from_millis(10);
const D0: u16 = 0;
const D3HOT: u16 = 0b11;

/// PCI function on its way from its old owner to a new one.
#[derive(Debug)]
pub(super) struct FunctionOwnerChange<'a> {
    function: VfioFunction,
    /// PCI command register as Linux left it.
    command: u16,
    old: &'a OwnerMemoryPages,
    new: Option<OwnerMemoryPages>,
}

/// Returns a dword of the function's configuration space; all ones if the read fails.
pub(super) fn dword(function: &VfioFunction, at: u16) -> u32 {
    let mut bytes = [0xff; 4];
    // Without an answer the bytes stay all ones.
    let _ = function.config(at, &mut bytes);
    u32::from_le_bytes(bytes)
}

fn word(function: &VfioFunction, at: u16) -> u16 {
    (dword(function, at & !3) >> (8 * (at & 3))) as u16
}

impl<'a> FunctionOwnerChange<'a> {
    /// Enables the function with the old owner's pages mapped for it.
    pub(super) fn begin(function: VfioFunction, old: &'a OwnerMemoryPages) -> Result<Self, DriverStartError> {
        let command = word(&function, COMMAND);
        function.share(old.memory(), IOVA)?;
        function.enable()?;
        Ok(Self { function, command, old, new: None })
    }

    pub(super) fn function(&self) -> &VfioFunction {
        &self.function
    }

    /// Returns the new owner's pages, or `None` before that owner has the function.
    pub(super) fn new_pages(&self) -> Option<&OwnerMemoryPages> {
        self.new.as_ref()
    }

    pub(super) fn act(&mut self, action: ResetAction) -> Result<(), DriverStartError> {
        match action {
            ResetAction::BusMasterOff => {
                let command = word(&self.function, COMMAND) & !COMMAND_BUS_MASTER;
                Ok(self.function.set_config(COMMAND, &command.to_le_bytes())?)
            }
            ResetAction::Wait => self.wait(),
            ResetAction::Unmap => Ok(self.function.unshare(self.old.memory(), IOVA)?),
            ResetAction::Reset(rung) => self.reset(rung),
            ResetAction::Restore => self.restore(),
            ResetAction::HandOver => {
                let new = OwnerMemoryPages::new()?;
                self.function.share(new.memory(), IOVA)?;
                self.new = Some(new);
                Ok(self.function.enable()?)
            }
        }
    }

    fn wait(&self) -> Result<(), DriverStartError> {
        let Some(express) = self.find(express::ID) else { return Ok(()) };
        let end = MonotonicClock.now_ns() + PENDING_PATIENCE.as_nanos() as u64;
        while word(&self.function, express + express::DEVICE_STATUS) & PENDING != 0 {
            if MonotonicClock.now_ns() >= end {
                return Err(DriverStartError::NotQuiet(self.function.address()));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn reset(&self, rung: DeviceResetMethod) -> Result<(), DriverStartError> {
        match rung {
            // Linux uses its own preferred reset, which is a function-level reset if the function has one.
            DeviceResetMethod::Function => Ok(self.function.reset()?),
            DeviceResetMethod::Power => {
                self.power(D3HOT)?;
                self.power(D0)
            }
            DeviceResetMethod::Bus => Ok(self.function.reset_bus()?),
        }
    }

    fn power(&self, state: u16) -> Result<(), DriverStartError> {
        let Some(power) = self.find(power::ID) else { return Ok(()) };
        let control = word(&self.function, power + power::CONTROL) & !power::CONTROL_STATE | state;
        self.function.set_config(power + power::CONTROL, &control.to_le_bytes())?;
        std::thread::sleep(POWER_TIME);
        Ok(())
    }

    /// Restores the command register that Linux left, with bus mastering, MSI and MSI-X disabled.
    fn restore(&self) -> Result<(), DriverStartError> {
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
