//! Interface between the SR-IOV manager and a device. Registers belong to the drivers.

use pcie::capability::express;
use pcie::config::offset;
use pcie::{ConfigAccess, Function, walk};

/// Device with VFs, as the SR-IOV manager accesses it.
///
/// Bus mastering and reset have default bodies: the configuration writes for silicon. A card in the same process
/// may use a shorter way.
pub trait SrIovDevice: ConfigAccess {
    /// Permits a function to issue memory requests if `on`; forbids them otherwise.
    fn set_bus_master(&mut self, function: Function, on: bool) {
        let command = self.config_read(function, offset::COMMAND, 2) as u16 & !offset::COMMAND_BUS_MASTER;
        let bit = if on { offset::COMMAND_BUS_MASTER } else { 0 };
        self.config_write(function, offset::COMMAND, 2, (command | bit).into());
    }

    /// Returns true if all memory requests that a function issued before it was stopped have reached memory, and none
    /// is still being translated. The default is for a card whose requests are synchronous.
    fn quiesce(&mut self, function: Function) -> bool {
        let _ = function;
        true
    }

    /// Resets a single function (PCIe base specification, 6.6.2).
    fn function_level_reset(&mut self, function: Function) {
        let Some(at) = walk::find(|at| self.config_read(function, at, 4), express::ID) else { return };
        let control = self.config_read(function, at + express::DEVICE_CONTROL, 2);
        let initiate = control | u32::from(express::DEVICE_CONTROL_FLR);
        self.config_write(function, at + express::DEVICE_CONTROL, 2, initiate);
    }
}
