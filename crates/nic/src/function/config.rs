//! The functions' configuration spaces, as far as the card itself answers: the PF's, and each VF's bare one.
//! Left out: the full space a guest sees of a VF, which the SR-IOV manager makes up.

use crate::Nic;
use i82576::{MacAddress, VfIndex, config};
use pcie::capability::power::PowerState;
use pcie::{ConfigAccess, Effects, Endpoint, Function};

/// All of the card's configuration spaces.
#[derive(Debug)]
pub(crate) struct Spaces {
    pf: Endpoint,
    vfs: [Endpoint; i82576::ids::MAX_VFS],
}

impl Spaces {
    pub(crate) fn new(mac: MacAddress) -> Self {
        Self { pf: config::pf::endpoint(mac), vfs: core::array::from_fn(|_| config::vf::endpoint()) }
    }
}

impl Nic {
    /// The function's space, if the function exists.
    fn space(&mut self, function: Function) -> Option<&mut Endpoint> {
        match function {
            Function::Pf => Some(&mut self.spaces.pf),
            Function::Vf(n) if n < self.owners.vfs => self.spaces.vfs.get_mut(usize::from(n)),
            Function::Vf(_) => None,
        }
    }

    fn follow(&mut self, function: Function, effects: Effects) {
        if effects.function_reset {
            self.reset_function(function);
        }
        if let Some(on) = effects.bus_master {
            self.set_bus_master(function, on);
        }
        if effects.power == Some(PowerState::D3Hot) {
            self.set_bus_master(function, false);
        }
        if let Some(sriov) = effects.sriov {
            self.set_vfs(sriov.active().min(i82576::ids::MAX_VFS as u16) as u8);
        }
    }

    /// How many VFs exist, as the SR-IOV capability says. VFs that come or go are reset.
    fn set_vfs(&mut self, vfs: u8) {
        if vfs != self.owners.vfs {
            VfIndex::all().for_each(|vf| self.reset_vf(vf));
            self.spaces.vfs.iter_mut().for_each(Endpoint::reset);
            self.owners.vfs = vfs;
            self.owners.masters &= crate::interrupt::master_bit(Function::Pf);
            self.tables_stale = true;
        }
    }

    /// The function's space goes back to what it is after a function-level reset.
    pub(super) fn reset_space(&mut self, function: Function) {
        if let Some(space) = self.space(function) {
            space.function_level_reset();
        }
        if function == Function::Pf {
            self.set_vfs(0);
        }
        self.set_bus_master(function, false);
    }
}

impl ConfigAccess for Nic {
    fn config_read(&mut self, function: Function, offset: u16, size: u8) -> u32 {
        self.space(function).map_or(u32::MAX, |space| space.read(offset, size))
    }

    fn config_write(&mut self, function: Function, offset: u16, size: u8, value: u32) {
        if let Some(effects) = self.space(function).map(|space| space.write(offset, size, value)) {
            self.follow(function, effects);
        }
    }
}
