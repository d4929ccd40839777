//! Accesses to the configuration spaces of PF and VFs, and their effects on the card. The spaces themselves are in
//! `spaces`.

use crate::Nic;
use crate::interrupt::master_bit;
use crate::interrupt::single::{InterruptMode, is_due};
use crate::spaces::active;
use i82576::VfIndex;
use i82576::table::DecodedRegisterSet;
use pcie::capability::power::PowerState;
use pcie::{ConfigAccess, ConfigWriteEffects, Endpoint, Function};

impl Nic {
    /// Returns the function's configuration space, or `None` if the function does not exist.
    fn space(&mut self, function: Function) -> Option<&mut Endpoint> {
        self.state.spaces.of(function, self.state.owners.vfs)
    }

    /// Updates the interrupt status in the PF's configuration space.
    fn show_interrupt(&mut self) {
        let due = is_due(&self.state.file, &self.state.owners);
        let silent = self.state.form() == InterruptMode::Silent;
        self.state.spaces.show_interrupt(due, silent);
    }

    /// Reads a function's configuration space. A function that does not exist reads all ones.
    pub fn config_read_bytes(&mut self, function: Function, offset: u64, into: &mut [u8]) {
        self.show_interrupt();
        match self.space(function) {
            Some(space) => space.read_bytes(offset, into),
            None => into.fill(0xff),
        }
    }

    /// Writes a function's configuration space, carries out the effects of the write, and returns them.
    pub fn config_write_bytes(&mut self, function: Function, offset: u64, from: &[u8]) -> ConfigWriteEffects {
        let effects = self.space(function).map(|space| space.write_bytes(offset, from)).unwrap_or_default();
        self.follow(function, effects);
        effects
    }

    fn follow(&mut self, function: Function, effects: ConfigWriteEffects) {
        if effects.function_reset {
            self.reset_function(function);
        }
        if (effects.bus_master, effects.power) != (None, None) {
            let masters = self.space(function).is_some_and(|s| s.bus_master() && s.power() == PowerState::D0);
            self.set_bus_master(function, masters);
        }
        if let Some(sriov) = effects.sriov {
            self.state.vf_memory = sriov.memory;
            self.set_vfs(active(sriov));
        }
    }

    /// Returns true if the PF is in D3hot, and its VFs with it.
    pub(crate) fn sleeps(&self) -> bool {
        self.state.spaces.sleep()
    }

    /// Sets the number of VFs that the SR-IOV capability enables. VFs that appear or disappear are reset; queues and
    /// vectors beyond the last VF are the PF's.
    fn set_vfs(&mut self, vfs: u8) {
        if vfs != self.state.owners.vfs {
            let most = vfs.max(self.state.owners.vfs);
            VfIndex::all().filter(|vf| vf.get() < most).for_each(|vf| self.renew_vf(vf));
            self.state.spaces.reset_vfs();
            self.state.owners.vfs = vfs;
            self.state.owners.masters &= master_bit(Function::Pf);
            self.derived.stale.add(DecodedRegisterSet::SWITCH);
        }
    }

    /// Resets a function's configuration space as a function-level reset does. A reset of the PF removes its VFs.
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
        self.show_interrupt();
        self.space(function).map_or(u32::MAX, |space| space.read(offset, size))
    }

    fn config_write(&mut self, function: Function, offset: u16, size: u8, value: u32) {
        if let Some(effects) = self.space(function).map(|space| space.write(offset, size, value)) {
            self.follow(function, effects);
        }
    }
}
