//! Access of the SR-IOV manager to an 82576 card's configuration space, as the PF.

use nic::Nic;
use pcie::{ConfigAccess, Function, Rid};

/// Routing id of the PF: bus 0, device 1. The host routes no request by this id.
pub const PF_RID: Rid = Rid(0x0008);

/// Access of the SR-IOV manager to the configuration space of an 82576 card.
pub(crate) struct CardConfigSpace<'a>(pub(crate) &'a mut Nic);

impl ConfigAccess for CardConfigSpace<'_> {
    fn config_read(&mut self, function: Function, offset: u16, size: u8) -> u32 {
        self.0.config_read(function, offset, size)
    }

    fn config_write(&mut self, function: Function, offset: u16, size: u8, value: u32) {
        self.0.config_write(function, offset, size, value);
    }
}

impl iovm::SrIovDevice for CardConfigSpace<'_> {
    /// Resets the function without a walk through its capabilities: a guest may request resets at any rate.
    fn function_level_reset(&mut self, function: Function) {
        self.0.reset_function(function);
    }
}
