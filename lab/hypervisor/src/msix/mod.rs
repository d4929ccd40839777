//! The virtual MSI-X table of an assigned device, and the handling of the guest's accesses to it: by the device model
//! in another domain, or by the hypervisor itself (optimisation 1 of "High Performance Network Virtualization with
//! SR-IOV", HPCA 2010).
//!
//! A guest's writes to the table trap; masked vectors keep their pending bits. [`crate::remap`] translates
//! the table's messages for the host. The caller charges costs.

#[cfg(test)]
mod tests;

use alloc::vec;
use alloc::vec::Vec;
use pcie::msix::{ENTRY, InterruptMessage, MsiXControl, MsiXTable};

/// Offset of the vector control word in an MSI-X table entry, in bytes.
const CONTROL: u64 = 12;
/// Bit of the MSI-X vector control word: the vector is masked.
const MASKED: u8 = 1;

/// Policy for a guest's accesses to the MSI-X table: either the device model or the hypervisor handles them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MsixTablePolicy {
    /// The device model handles every table access; forwarding an access takes two domain switches.
    DeviceModel,
    /// The hypervisor handles reads and masking; changes of a message are forwarded to the device model.
    Hypervisor,
}

/// Handler of one access to the MSI-X table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MsixAccessHandler {
    /// The hypervisor handled the table access at the VM exit.
    Hypervisor,
    /// The device model handled the table access, for this reason.
    DeviceModel(MsixForwardReason),
}

/// Reason why an access to the MSI-X table was forwarded to the device model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MsixForwardReason {
    /// The policy forwards every MSI-X table access.
    Policy,
    /// The access is not an aligned one of 4 or 8 bytes.
    Shape,
    /// The access is outside the MSI-X table, where the hypervisor does not know the layout.
    NotTable,
    /// The access changes an interrupt message's address or data, which the device model must see.
    Message,
    /// The access unmasks a vector whose message changed since the vector's last unmask.
    Changed,
}

/// Outcome of a guest's write to the MSI-X table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MsixWriteOutcome {
    /// Handler of the MSI-X table write.
    pub by: MsixAccessHandler,
    /// Interrupt vector whose mask bit the write changed, and the bit's new value; `None` for a write across entries.
    pub mask: Option<(u16, bool)>,
}

/// Counters of MSI-X table accesses, by handler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MsixAccessCounts {
    /// Table accesses that the hypervisor handled at the VM exit.
    pub hypervisor: u64,
    /// Table accesses that were forwarded to the device model.
    pub device_model: u64,
}

/// Virtual MSI-X table of one assigned PCI function.
#[derive(Debug, Clone)]
pub struct VirtualMsixTable {
    table: MsiXTable,
    changed: Vec<bool>,
    handler: MsixTablePolicy,
    counts: MsixAccessCounts,
}

impl VirtualMsixTable {
    /// Creates an MSI-X table in the reset state; `vectors` is clamped to 1 to 2048.
    #[must_use]
    pub fn new(vectors: u16, handler: MsixTablePolicy) -> Self {
        let table = MsiXTable::new(vectors);
        let changed = vec![false; table.vectors().into()];
        Self { table, changed, handler, counts: MsixAccessCounts::default() }
    }

    /// Returns the counters of MSI-X table accesses.
    #[must_use]
    pub fn counts(&self) -> MsixAccessCounts {
        self.counts
    }

    /// Returns the emulated MSI-X table that the guest's accesses change.
    #[must_use]
    pub fn table(&self) -> &MsiXTable {
        &self.table
    }

    /// Handles a guest's read at an offset in the MSI-X table.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> MsixAccessHandler {
        self.table.read(offset, into);
        self.count(self.forward_reason(offset, into.len()))
    }

    /// Handles a guest's write at an offset in the MSI-X table. Call [`VirtualMsixTable::release`] afterwards.
    pub fn write(&mut self, offset: u64, from: &[u8]) -> MsixWriteOutcome {
        let reason = self.forward_reason(offset, from.len());
        let within = (offset % ENTRY as u64).saturating_add(from.len() as u64) <= ENTRY as u64;
        let Some(entry) = self.entry(offset).filter(|_| within) else {
            self.write_across(offset, from);
            return MsixWriteOutcome { by: self.count(reason), mask: None };
        };
        let was = self.is_masked(entry);
        let altered = self.write_entry(entry, offset, from);
        let is = self.is_masked(entry);
        let unmasks = reaches_control(offset, from.len()) && !is;
        let changed = &mut self.changed[usize::from(entry)];
        *changed |= altered;
        let reason = reason
            .or((unmasks && *changed).then_some(MsixForwardReason::Changed))
            .or((altered && !unmasks).then_some(MsixForwardReason::Message));
        *changed &= !unmasks;
        MsixWriteOutcome { by: self.count(reason), mask: (was != is).then_some((entry, is)) }
    }

    /// Handles a write to the MSI-X table that is not within one entry: every entry that the write touches counts as
    /// changed.
    fn write_across(&mut self, offset: u64, from: &[u8]) {
        self.table.write(offset, from);
        let entry = |at: u64| usize::try_from(at / ENTRY as u64).unwrap_or(usize::MAX);
        let (first, last) = (entry(offset), entry(offset.saturating_add(from.len() as u64)));
        let last = last.min(self.changed.len().saturating_sub(1));
        if let Some(touched) = self.changed.get_mut(first..=last) {
            touched.fill(true);
        }
    }

    /// Signals an MSI-X vector for the device. Returns the guest's interrupt message, or `None` if the vector is now
    /// pending or does not exist.
    pub fn signal(&mut self, vector: u16) -> Option<InterruptMessage> {
        self.table.signal(vector)
    }

    /// Removes and returns the next pending interrupt message whose vector is no longer masked; call until `None`.
    pub fn release(&mut self) -> Option<(u16, InterruptMessage)> {
        self.table.release()
    }

    /// Applies the control word of the virtual MSI-X capability. Call [`VirtualMsixTable::release`] afterwards.
    pub fn set_control(&mut self, control: MsiXControl) {
        self.table.set_control(control);
    }

    /// Resets the MSI-X table with its function: every vector masked, none pending, no message known to the device
    /// model.
    pub fn reset(&mut self) {
        self.table.reset();
        self.changed.fill(false);
    }

    /// Returns the reason why the hypervisor cannot handle a table access, whatever the access's effect.
    fn forward_reason(&self, offset: u64, size: usize) -> Option<MsixForwardReason> {
        if self.handler == MsixTablePolicy::DeviceModel {
            Some(MsixForwardReason::Policy)
        } else if !matches!(size, 4 | 8) || !offset.is_multiple_of(size as u64) {
            Some(MsixForwardReason::Shape)
        } else if self.entry(offset).is_none() {
            Some(MsixForwardReason::NotTable)
        } else {
            None
        }
    }

    fn entry(&self, offset: u64) -> Option<u16> {
        u16::try_from(offset / ENTRY as u64).ok().filter(|&entry| entry < self.table.vectors())
    }

    fn is_masked(&self, entry: u16) -> bool {
        let mut control = [0];
        self.table.read(u64::from(entry) * ENTRY as u64 + CONTROL, &mut control);
        control[0] & MASKED != 0
    }

    /// Writes within one MSI-X table entry. Returns `true` if the entry's address or data changed.
    fn write_entry(&mut self, entry: u16, offset: u64, from: &[u8]) -> bool {
        if offset % ENTRY as u64 >= CONTROL {
            self.table.write(offset, from);
            return false;
        }
        let [mut before, mut after] = [[0; CONTROL as usize]; 2];
        self.table.read(u64::from(entry) * ENTRY as u64, &mut before);
        self.table.write(offset, from);
        self.table.read(u64::from(entry) * ENTRY as u64, &mut after);
        before != after
    }

    fn count(&mut self, reason: Option<MsixForwardReason>) -> MsixAccessHandler {
        if let Some(reason) = reason {
            self.counts.device_model += 1;
            return MsixAccessHandler::DeviceModel(reason);
        }
        self.counts.hypervisor += 1;
        MsixAccessHandler::Hypervisor
    }
}

/// Returns `true` if a table access covers the first byte of vector control, which has the mask bit.
fn reaches_control(offset: u64, size: usize) -> bool {
    let first = offset % ENTRY as u64;
    (first..first + size as u64).contains(&CONTROL)
}
