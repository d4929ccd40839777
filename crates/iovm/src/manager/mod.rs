//! SR-IOV manager of one port: enables VFs, and adds, assigns, takes back and removes each of them.
//!
//! ```text
//!            enable, add           assign                 (climbs the reset ladder at every arrow
//!   Absent ------------> Present <========> Assigned       between Present and Assigned)
//!      ^      remove        |     unassign      |
//!      +--------------------+                   | the ladder fails
//!                           ^                   v
//!                           +---- reset --- Quarantined
//! ```
//!
//! The manager does not wait. A device may take 100 ms after VFs are enabled; a caller that drives silicon waits
//! that long.

mod capability;
mod error;
#[cfg(test)]
mod tests;

pub use error::{ManagerRestoreError, VfAssignmentError, VfDiscoveryError, VfEnableError};

use crate::{SrIovDevice, VirtualFunction, VirtualFunctionState, ladder};
use alloc::vec::Vec;
use capability::SrIovCapability;
use core::fmt;
use i82576::VfIndex;
use pcie::{ConfigWriteEffects, Function, Rid};
use serde::{Deserialize, Serialize};

/// Owner of a VF, as a number that the caller defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename = "Owner")]
pub struct VfOwner(pub u64);

impl fmt::Display for VfOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "owner {}", self.0)
    }
}

/// Routing method of the bus above the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusRouting {
    /// Bus that routes by bus, device and function: VFs are on the bus after the PF's.
    Flat,
    /// Bus that routes by bus and an 8-bit function number (ARI): VFs are on the PF's bus.
    Ari,
}

/// State of a VF in the manager, from absent to assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "OwnerState")]
pub enum VfAssignmentState {
    /// The VF is not enabled, or was removed: a bus scan does not find the VF.
    Absent,
    /// The VF is present: it has been reset, and has no owner.
    Present,
    /// The VF is assigned to this owner, which drives it.
    Assigned(VfOwner),
    /// The VF is quarantined because its reset failed: the VF is stopped, and gets no owner before a reset succeeds.
    Quarantined,
}

/// The manager's record of an enabled VF.
#[derive(Debug, Clone)]
struct EnabledVf {
    state: VfAssignmentState,
    function: VirtualFunction,
}

/// SR-IOV manager of one port's VFs.
#[derive(Debug, Clone)]
pub struct SrIovManager {
    pf: Rid,
    sriov: SrIovCapability,
    slots: Vec<EnabledVf>,
}

impl SrIovManager {
    /// Creates the manager of a device whose PF is at `pf`, from its SR-IOV capability.
    ///
    /// # Errors
    /// [`VfDiscoveryError`].
    pub fn discover<D: SrIovDevice>(device: &mut D, pf: Rid) -> Result<Self, VfDiscoveryError> {
        Ok(Self { pf, sriov: SrIovCapability::discover(device)?, slots: Vec::new() })
    }

    /// Returns the maximum number of VFs of the device.
    #[must_use]
    pub fn total_vfs(&self) -> u16 {
        self.sriov.total_vfs
    }

    /// Returns the number of VFs that are enabled.
    #[must_use]
    pub fn num_vfs(&self) -> u16 {
        self.slots.len() as u16
    }

    /// Enables `n` VFs and adds each, present and without an owner.
    ///
    /// # Errors
    /// [`VfEnableError`]; no VF exists then.
    pub fn enable<D: SrIovDevice>(
        &mut self,
        device: &mut D,
        n: u16,
        hierarchy: BusRouting,
    ) -> Result<(), VfEnableError> {
        let (enabled, total) = (self.sriov.enabled(device), self.sriov.total_vfs);
        match n {
            _ if enabled != 0 => return Err(VfEnableError::AlreadyEnabled { enabled }),
            0 => return Err(VfEnableError::None),
            n if n > total => return Err(VfEnableError::TooMany { asked: n, total }),
            _ => {}
        }
        self.sriov.prepare(device, n, hierarchy)?;
        let slots = self.slots(device, n).ok_or(VfEnableError::OffTheBus)?;
        self.sriov.enable(device, hierarchy);
        self.slots = slots;
        Ok(())
    }

    /// Disables all VFs of the device.
    ///
    /// # Errors
    /// [`VfAssignmentError::Assigned`] if a VF still has an owner.
    pub fn disable<D: SrIovDevice>(&mut self, device: &mut D) -> Result<(), VfAssignmentError> {
        for (vf, slot) in VfIndex::all().zip(&self.slots) {
            if let VfAssignmentState::Assigned(owner) = slot.state {
                return Err(VfAssignmentError::Assigned { vf, owner });
            }
        }
        self.sriov.disable(device);
        self.slots.clear();
        Ok(())
    }

    /// Returns the state of a VF in the manager, from absent to assigned.
    #[must_use]
    pub fn state(&self, vf: VfIndex) -> VfAssignmentState {
        self.slots.get(vf.index()).map_or(VfAssignmentState::Absent, |slot| slot.state)
    }

    /// Returns a VF as its guest sees it, or `None` if the VF is absent.
    #[must_use]
    pub fn function(&self, vf: VfIndex) -> Option<&VirtualFunction> {
        self.slots
            .get(vf.index())
            .filter(|slot| slot.state != VfAssignmentState::Absent)
            .map(|slot| &slot.function)
    }

    /// Returns a VF as its guest sees it, unless the VF is absent, for changes of the VF's MSI-X table. Configuration
    /// writes must go through [`SrIovManager::config_write`], which also updates the card.
    #[must_use]
    pub fn function_mut(&mut self, vf: VfIndex) -> Option<&mut VirtualFunction> {
        let slot = self.slots.get_mut(vf.index()).filter(|slot| slot.state != VfAssignmentState::Absent);
        slot.map(|slot| &mut slot.function)
    }

    /// Adds a VF that was removed by the manager.
    ///
    /// # Errors
    /// [`VfAssignmentError`] if the VF does not exist, is already present, or cannot be reset.
    pub fn add<D: SrIovDevice>(&mut self, device: &mut D, vf: VfIndex) -> Result<(), VfAssignmentError> {
        match self.slot(vf)?.state {
            VfAssignmentState::Absent => self.clean(device, vf),
            _ => Err(VfAssignmentError::AlreadyPresent(vf)),
        }
    }

    /// Removes a VF that has no owner: the VF still exists, stopped, but a bus scan does not find it.
    ///
    /// # Errors
    /// [`VfAssignmentError`] if the VF is absent or has an owner.
    pub fn remove<D: SrIovDevice>(&mut self, device: &mut D, vf: VfIndex) -> Result<(), VfAssignmentError> {
        let slot = self.slot(vf)?;
        match slot.state {
            VfAssignmentState::Absent => return Err(VfAssignmentError::Absent(vf)),
            VfAssignmentState::Assigned(owner) => return Err(VfAssignmentError::Assigned { vf, owner }),
            VfAssignmentState::Present | VfAssignmentState::Quarantined => {}
        }
        device.set_bus_master(slot.function.function(), false);
        slot.state = VfAssignmentState::Absent;
        Ok(())
    }

    /// Assigns a VF to an owner, after a reset.
    ///
    /// # Errors
    /// [`VfAssignmentError`] if the VF is not present, or its reset fails: then it is quarantined.
    pub fn assign<D: SrIovDevice>(
        &mut self,
        device: &mut D,
        vf: VfIndex,
        owner: VfOwner,
    ) -> Result<(), VfAssignmentError> {
        match self.slot(vf)?.state {
            VfAssignmentState::Present => {}
            VfAssignmentState::Absent => return Err(VfAssignmentError::Absent(vf)),
            VfAssignmentState::Assigned(owner) => return Err(VfAssignmentError::Assigned { vf, owner }),
            VfAssignmentState::Quarantined => return Err(VfAssignmentError::Quarantined(vf)),
        }
        self.clean(device, vf)?;
        self.slot(vf)?.state = VfAssignmentState::Assigned(owner);
        Ok(())
    }

    /// Takes a VF back from its owner and resets it at once: the owner's memory must not be reused while the VF can
    /// still write to it.
    ///
    /// # Errors
    /// [`VfAssignmentError`] if the VF has no owner, or its reset fails: then it is quarantined.
    pub fn unassign<D: SrIovDevice>(&mut self, device: &mut D, vf: VfIndex) -> Result<(), VfAssignmentError> {
        match self.slot(vf)?.state {
            VfAssignmentState::Assigned(_) => self.clean(device, vf),
            VfAssignmentState::Absent => Err(VfAssignmentError::Absent(vf)),
            VfAssignmentState::Present => Err(VfAssignmentError::NotAssigned(vf)),
            VfAssignmentState::Quarantined => Err(VfAssignmentError::Quarantined(vf)),
        }
    }

    /// Resets a VF on behalf of its owner, which keeps the VF, or to end the VF's quarantine.
    ///
    /// # Errors
    /// [`VfAssignmentError`] if the VF is absent, or its reset fails: then it is quarantined.
    pub fn reset<D: SrIovDevice>(&mut self, device: &mut D, vf: VfIndex) -> Result<(), VfAssignmentError> {
        let state = self.slot(vf)?.state;
        if state == VfAssignmentState::Absent {
            return Err(VfAssignmentError::Absent(vf));
        }
        self.clean(device, vf)?;
        if let VfAssignmentState::Assigned(_) = state {
            self.slot(vf)?.state = state;
        }
        Ok(())
    }

    /// Reads a VF's configuration space as its guest does. An absent VF reads as all ones.
    pub fn config_read(&self, vf: VfIndex, offset: u64, into: &mut [u8]) {
        match self.function(vf) {
            Some(function) => function.config_read(offset, into),
            None => into.fill(0xff),
        }
    }

    /// Writes a VF's configuration space as its owner does, and updates the card: bus mastering, and a function
    /// level reset. A write without an owner has no effect.
    pub fn config_write<D: SrIovDevice>(
        &mut self,
        device: &mut D,
        vf: VfIndex,
        offset: u64,
        from: &[u8],
    ) -> ConfigWriteEffects {
        let assigned = |slot: &&mut EnabledVf| matches!(slot.state, VfAssignmentState::Assigned(_));
        let Some(slot) = self.slots.get_mut(vf.index()).filter(assigned) else {
            return ConfigWriteEffects::default();
        };
        let effects = slot.function.config_write(offset, from);
        let function = slot.function.function();
        if effects.function_reset {
            device.set_bus_master(function, false);
            device.function_level_reset(function);
        }
        match effects.bus_master {
            Some(false) if effects.function_reset => {}
            Some(on) => device.set_bus_master(function, on),
            None => {}
        }
        effects
    }

    /// Returns the manager's state, from which another process can restore the manager.
    #[must_use]
    pub fn save(&self) -> SrIovManagerState {
        let save = |slot: &EnabledVf| EnabledVfState { state: slot.state, function: slot.function.save() };
        SrIovManagerState { slots: self.slots.iter().map(save).collect() }
    }

    /// Creates the manager from the saved state of a previous process, on a device that has been restored already.
    ///
    /// # Errors
    /// [`ManagerRestoreError`].
    pub fn restore<D: SrIovDevice>(
        device: &mut D,
        pf: Rid,
        state: &SrIovManagerState,
    ) -> Result<Self, ManagerRestoreError> {
        let mut manager = Self::discover(device, pf)?;
        let (saved, enabled) = (state.slots.len(), manager.sriov.enabled(device));
        if saved != usize::from(enabled) {
            return Err(ManagerRestoreError::Mismatch { saved, enabled });
        }
        let mismatch = ManagerRestoreError::Mismatch { saved, enabled };
        manager.slots = manager.slots(device, enabled).ok_or(mismatch)?;
        for ((vf, slot), from) in VfIndex::all().zip(&mut manager.slots).zip(&state.slots) {
            slot.state = from.state;
            if !slot.function.load(&from.function) {
                return Err(ManagerRestoreError::Damaged(vf));
            }
        }
        Ok(manager)
    }

    /// Creates the manager's records of `n` VFs at the routing ids that the device reports. Returns `None` if the bus
    /// has no room.
    fn slots<D: SrIovDevice>(&self, device: &mut D, n: u16) -> Option<Vec<EnabledVf>> {
        let placement = self.sriov.placement(device);
        let slot = |n| {
            let index = VfIndex::new(u8::try_from(n).ok()?)?;
            let rid = placement.rid(self.pf, index.get())?;
            let function = VirtualFunction::new(index.into(), rid, self.sriov.identity, &self.sriov.bars);
            Some(EnabledVf { state: VfAssignmentState::Present, function })
        };
        (0..n).map(slot).collect()
    }

    fn slot(&mut self, vf: VfIndex) -> Result<&mut EnabledVf, VfAssignmentError> {
        let enabled = self.num_vfs();
        self.slots.get_mut(vf.index()).ok_or(VfAssignmentError::NotEnabled { vf, enabled })
    }

    /// Resets a VF by the reset ladder, and restores the VF's configuration at boot. Afterwards the VF is present, or
    /// quarantined if the reset failed.
    fn clean<D: SrIovDevice>(&mut self, device: &mut D, vf: VfIndex) -> Result<(), VfAssignmentError> {
        let slot = self.slot(vf)?;
        let climbed = ladder::climb(device, Function::Vf(vf.get()));
        slot.function.reset();
        slot.state =
            if climbed.is_ok() { VfAssignmentState::Present } else { VfAssignmentState::Quarantined };
        Ok(climbed?)
    }
}

/// Saved state of an SR-IOV manager, serializable: one entry per VF that exists.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "ManagerState")]
pub struct SrIovManagerState {
    /// Saved state of each enabled VF, in order.
    pub slots: Vec<EnabledVfState>,
}

/// Saved state of an enabled VF, serializable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "SlotState")]
pub struct EnabledVfState {
    /// Assignment state of the VF.
    pub state: VfAssignmentState,
    /// Saved state of the VF's configuration space and MSI-X table.
    pub function: VirtualFunctionState,
}
