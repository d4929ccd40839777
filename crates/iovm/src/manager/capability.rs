//! Finds, reads and writes a device's SR-IOV capability, as any software does.

use super::{BusRouting, VfDiscoveryError, VfEnableError};
use alloc::vec::Vec;
use pcie::capability::sriov as field;
use pcie::config::{Bar, BarKind, FunctionIds, offset};
use pcie::sriov::VfRoutingIds;
use pcie::{ConfigAccess, Function, walk};

/// SR-IOV capability of a device, found by discovery.
#[derive(Debug, Clone)]
pub(super) struct SrIovCapability {
    at: u16,
    pub(super) total_vfs: u16,
    pub(super) identity: FunctionIds,
    pub(super) bars: Vec<(u8, Bar)>,
}

impl SrIovCapability {
    pub(super) fn discover<D: ConfigAccess>(device: &mut D) -> Result<Self, VfDiscoveryError> {
        if device.config_read(Function::Pf, offset::VENDOR, 2) == 0xffff {
            return Err(VfDiscoveryError::NoFunction);
        }
        let at = walk::find_extended(|at| device.config_read(Function::Pf, at, 4), field::ID)
            .ok_or(VfDiscoveryError::NoSrIov)?;
        let total_vfs = word(device, at + field::TOTAL_VFS);
        let vf_device = word(device, at + field::VF_DEVICE);
        let identity = identity(device, vf_device);
        let bars = size_bars(device, at);
        if bars.is_empty() {
            return Err(VfDiscoveryError::NoBars);
        }
        Ok(Self { at, total_vfs, identity, bars })
    }

    /// Returns the number of the device's VFs that are enabled.
    pub(super) fn enabled<D: ConfigAccess>(&self, device: &mut D) -> u16 {
        let control = word(device, self.at + field::CONTROL);
        if control & field::CONTROL_ENABLE == 0 { 0 } else { word(device, self.at + field::NUM_VFS) }
    }

    /// Returns the routing ids of the VFs, as the device reports them now.
    pub(super) fn placement<D: ConfigAccess>(&self, device: &mut D) -> VfRoutingIds {
        VfRoutingIds {
            first_offset: word(device, self.at + field::FIRST_OFFSET),
            stride: word(device, self.at + field::STRIDE),
        }
    }

    /// Sets the fields of the SR-IOV capability that are locked once VFs exist: number and page size of the
    /// VFs, and the routing method.
    pub(super) fn prepare<D: ConfigAccess>(
        &self,
        device: &mut D,
        n: u16,
        hierarchy: BusRouting,
    ) -> Result<(), VfEnableError> {
        device.config_write(Function::Pf, self.at + field::CONTROL, 2, hierarchy.control().into());
        device.config_write(Function::Pf, self.at + field::PAGE_SIZE, 4, 1);
        device.config_write(Function::Pf, self.at + field::NUM_VFS, 2, n.into());
        let kept = word(device, self.at + field::NUM_VFS);
        if kept == n { Ok(()) } else { Err(VfEnableError::Refused { asked: n }) }
    }

    /// Enables the device's VFs and their memory space.
    pub(super) fn enable<D: ConfigAccess>(&self, device: &mut D, hierarchy: BusRouting) {
        let control = hierarchy.control() | field::CONTROL_ENABLE | field::CONTROL_MEMORY;
        device.config_write(Function::Pf, self.at + field::CONTROL, 2, control.into());
    }

    /// Disables the device's VFs.
    pub(super) fn disable<D: ConfigAccess>(&self, device: &mut D) {
        device.config_write(Function::Pf, self.at + field::CONTROL, 2, 0);
    }
}

impl BusRouting {
    fn control(self) -> u16 {
        match self {
            BusRouting::Flat => 0,
            BusRouting::Ari => field::CONTROL_ARI,
        }
    }
}

fn word<D: ConfigAccess>(device: &mut D, at: u16) -> u16 {
    device.config_read(Function::Pf, at, 2) as u16
}

/// Returns the ids of a VF: those of the PF, with another device id.
fn identity<D: ConfigAccess>(device: &mut D, vf_device: u16) -> FunctionIds {
    let class = device.config_read(Function::Pf, offset::REVISION, 4);
    FunctionIds {
        vendor: word(device, offset::VENDOR),
        device: vf_device,
        class: class >> 8,
        revision: class as u8,
        subsystem_vendor: word(device, offset::SUBSYSTEM_VENDOR),
        subsystem: word(device, offset::SUBSYSTEM_VENDOR + 2),
    }
}

/// Sizes the BARs of a VF by writing ones, while the VFs' memory space is disabled; restores every register.
fn size_bars<D: ConfigAccess>(device: &mut D, at: u16) -> Vec<(u8, Bar)> {
    let control = word(device, at + field::CONTROL);
    device.config_write(Function::Pf, at + field::CONTROL, 2, (control & !field::CONTROL_MEMORY).into());
    let mut bars = Vec::new();
    let mut number = 0;
    while number < 6 {
        let low_at = at + field::VF_BAR0 + 4 * u16::from(number);
        let low = size(device, low_at);
        let high = if number < 5 { size(device, low_at + 4) } else { 0 };
        let bar = Bar::from_sizing(low, high);
        bars.extend(bar.map(|bar| (number, bar)));
        number += if bar.is_some_and(|bar| bar.kind == BarKind::Memory64) { 2 } else { 1 };
    }
    device.config_write(Function::Pf, at + field::CONTROL, 2, control.into());
    bars
}

fn size<D: ConfigAccess>(device: &mut D, at: u16) -> u32 {
    let address = device.config_read(Function::Pf, at, 4);
    device.config_write(Function::Pf, at, 4, u32::MAX);
    let sized = device.config_read(Function::Pf, at, 4);
    device.config_write(Function::Pf, at, 4, address);
    sized
}
