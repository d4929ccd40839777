//! Configuration requests to the card in the name of its PF, and the PF's place on the bus. Left out: registers.

use nic::Nic;
use pcie::{ConfigAccess, Function, Rid};

/// Bus 0, device 1: the PF's routing id on a board. No request is routed by it here.
pub const PF_RID: Rid = Rid(0x0008);

/// The card as the SR-IOV manager sees it.
pub(crate) struct ConfigSpace<'a>(pub(crate) &'a mut Nic);

impl ConfigAccess for ConfigSpace<'_> {
    fn config_read(&mut self, function: Function, offset: u16, size: u8) -> u32 {
        self.0.config_read(function, offset, size)
    }

    fn config_write(&mut self, function: Function, offset: u16, size: u8, value: u32) {
        self.0.config_write(function, offset, size, value);
    }
}

impl iovm::Device for ConfigSpace<'_> {}
