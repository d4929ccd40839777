//! A port's functions as PCI devices. Left out: how tools print them.

use super::{PF_RID, Port};
use crate::control::functions::{Functions, PciFunction};
use pcie::Function;
use std::fmt::Write;
use vfio_user::wire::pci_region::CONFIG;

impl Port {
    /// The PF, if it is a PCI device, and each function that has a socket.
    pub(super) fn functions(&mut self) -> Functions {
        let is_device = self.card.region(Function::Pf, CONFIG) > 0;
        let pf = is_device.then(|| (Function::Pf, self.name.clone()));
        let vfs = self.slots.iter().filter(|slot| slot.function != Function::Pf);
        let vfs = vfs.map(|slot| (slot.function, slot.name.clone()));
        let all: Vec<_> = pf.into_iter().chain(vfs).collect();
        let functions = all.into_iter().map(|(function, name)| self.pci_function(function, name)).collect();
        Functions { functions }
    }

    fn pci_function(&mut self, function: Function, name: String) -> PciFunction {
        let mut bytes = [0; pcie::config::SIZE];
        self.card.read(function, CONFIG, 0, &mut bytes);
        let config = bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        let rid = function.vf().and_then(|vf| self.card.rid(vf)).unwrap_or_else(|| PF_RID.to_string());
        let (rx_rings, tx_rings) = function.vf().map_or_else(Default::default, |vf| self.card.rings(vf));
        PciFunction { name, rid, config, rx_rings, tx_rings }
    }
}
