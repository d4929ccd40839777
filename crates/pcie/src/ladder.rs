//! Plans the reset of a device before it changes its owner. First bus mastering is disabled, pending transactions
//! end, and the IOMMU's entries are removed; then the first available reset of the ladder is done; finally the boot
//! configuration is restored. A device without a suitable reset stays with its owner. The caller carries out the
//! plan on a real or modelled device.

use crate::capability::{express, power};
use crate::walk;
use core::time::Duration;

/// Reset methods that a device supports, and the ownership of its bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResetCapabilities {
    /// True if the device supports function-level reset.
    pub flr: bool,
    /// Value of `No_Soft_Reset`, if the device supports the power states D0 and D3hot.
    pub power: Option<NoSoftReset>,
    /// True if one owner has every function below the bridge that can reset the device's bus; `None` without such a
    /// bridge.
    pub bus: Option<SingleBusOwner>,
}

/// True if the device keeps its state from D3hot to D0.
pub type NoSoftReset = bool;
/// True if all functions of the device's bus have one owner.
pub type SingleBusOwner = bool;

/// Reset method of a device, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceResetMethod {
    /// Reset method: function-level reset (FLR).
    Function = 1,
    /// Reset method: transition to power state D3hot and back.
    Power = 2,
    /// Reset method: reset of the bus below the bridge.
    Bus = 3,
}

impl DeviceResetMethod {
    /// Returns the time that software must wait for the reset (PCI Express base specification).
    #[must_use]
    pub const fn time(self) -> Duration {
        match self {
            DeviceResetMethod::Function => Duration::from_millis(100),
            // 10 ms in each direction.
            DeviceResetMethod::Power => Duration::from_millis(20),
            // 2 ms asserted, 100 ms until the first access.
            DeviceResetMethod::Bus => Duration::from_millis(102),
        }
    }
}

impl ResetCapabilities {
    /// Reads a device's reset capabilities from configuration space by `read`, which returns the dword at a multiple of
    /// four. The caller states the ownership of the bus.
    pub fn of(mut read: impl FnMut(u16) -> u32, bus: Option<SingleBusOwner>) -> Self {
        let express = walk::find(&mut read, express::ID);
        let flr = express.is_some_and(|at| {
            read(at + express::DEVICE_CAPABILITIES) & express::DEVICE_CAPABILITIES_FLR != 0
        });
        let power = walk::find(&mut read, power::ID)
            .map(|at| read(at + power::CONTROL) & u32::from(power::CONTROL_NO_SOFT_RESET) != 0);
        Self { flr, power, bus }
    }

    /// Returns the mildest reset method of the device that affects no other owner.
    #[must_use]
    pub fn rung(&self) -> Option<DeviceResetMethod> {
        match self {
            ResetCapabilities { flr: true, .. } => Some(DeviceResetMethod::Function),
            ResetCapabilities { power: Some(false), .. } => Some(DeviceResetMethod::Power),
            ResetCapabilities { bus: Some(true), .. } => Some(DeviceResetMethod::Bus),
            _ => None,
        }
    }
}

/// Action of the plan that resets a device before a new owner; the variants are in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetAction {
    /// Action: clears the bus master bit of the device's command register.
    BusMasterOff,
    /// Action: waits until the device reports no pending transaction.
    Wait,
    /// Action: removes the device's entries from the IOMMU, and flushes the IOMMU's cache.
    Unmap,
    /// Action: resets the device by this method.
    Reset(DeviceResetMethod),
    /// Action: restores the device's boot configuration; no vector of the MSI state remains.
    Restore,
    /// Action: releases the device's pages to the new owner.
    HandOver,
}

impl ResetAction {
    /// Returns the name of the action, as reports show it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ResetAction::BusMasterOff => "bus-master-off",
            ResetAction::Wait => "wait",
            ResetAction::Unmap => "unmap",
            ResetAction::Reset(_) => "reset",
            ResetAction::Restore => "restore",
            ResetAction::HandOver => "hand-over",
        }
    }
}

/// Returns the actions of the device's reset in order, or `None` if the device must stay with its owner.
#[must_use]
pub fn plan(device: &ResetCapabilities) -> Option<[ResetAction; 6]> {
    let rung = device.rung()?;
    Some([
        ResetAction::BusMasterOff,
        ResetAction::Wait,
        ResetAction::Unmap,
        ResetAction::Reset(rung),
        ResetAction::Restore,
        ResetAction::HandOver,
    ])
}

#[cfg(test)]
mod tests {
    use super::{DeviceResetMethod, ResetAction, ResetCapabilities, plan};

    /// Tests every combination of reset capabilities.
    #[test]
    fn chosen_reset_method_affects_no_other_owners_functions() {
        let options = [None, Some(false), Some(true)];
        for flr in [false, true] {
            for power in options {
                for bus in options {
                    let device = ResetCapabilities { flr, power, bus };
                    let rung = device.rung();
                    assert_eq!(rung == Some(DeviceResetMethod::Function), flr);
                    assert!(rung != Some(DeviceResetMethod::Power) || power == Some(false));
                    assert!(
                        rung != Some(DeviceResetMethod::Bus) || bus == Some(true),
                        "another owner's functions are on the bus"
                    );
                    assert_eq!(rung.is_none(), !flr && power != Some(false) && bus != Some(true));
                    assert_eq!(plan(&device).is_none(), rung.is_none());
                }
            }
        }
    }

    #[test]
    fn device_release_clears_bus_master_before_unmapping_pages() {
        use ResetAction::{BusMasterOff, HandOver, Reset, Restore, Unmap, Wait};
        let device = ResetCapabilities { flr: false, power: Some(true), bus: Some(true) };
        let steps = [BusMasterOff, Wait, Unmap, Reset(DeviceResetMethod::Bus), Restore, HandOver];
        assert_eq!(plan(&device), Some(steps));
        let names = ["bus-master-off", "wait", "unmap", "reset", "restore", "hand-over"];
        assert_eq!(steps.map(ResetAction::name), names);
    }

    #[test]
    fn waits_after_device_resets_are_those_of_the_pcie_standard() {
        let times = [DeviceResetMethod::Function, DeviceResetMethod::Power, DeviceResetMethod::Bus]
            .map(|rung| rung.time().as_millis());
        assert_eq!(times, [100, 20, 102]);
    }

    /// Returns a reader of a configuration space with the PM capability at 0x40 and PCI Express at 0x50.
    fn config(flr: bool, keeps: bool) -> impl Fn(u16) -> u32 {
        move |at| match at {
            0x04 => 1 << 20,
            0x34 => 0x40,
            0x40 => 0x5001,
            0x44 => u32::from(keeps) << 3,
            0x50 => 0x0010,
            0x54 => u32::from(flr) << 28,
            _ => 0,
        }
    }

    #[test]
    fn reset_methods_are_read_from_configuration_space() {
        for flr in [false, true] {
            for keeps in [false, true] {
                let found = ResetCapabilities::of(config(flr, keeps), Some(true));
                assert_eq!(found, ResetCapabilities { flr, power: Some(keeps), bus: Some(true) });
            }
        }
        let missing = ResetCapabilities::of(|_| u32::MAX, None);
        assert_eq!(missing, ResetCapabilities { flr: false, power: None, bus: None });
    }
}
