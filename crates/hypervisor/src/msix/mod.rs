//! The virtual MSI-X table that a guest sees of its device, and who handles the guest's accesses to it: the
//! device model in another domain, or the hypervisor itself (opt. 1 of "High Performance Network
//! Virtualization with SR-IOV", HPCA 2010).
//!
//! The table is the page that a guest's masking writes trap on; masked vectors keep their pending bits. Left
//! out: what a message of the table becomes on the host ([`crate::remap`]), and what handling costs.

#[cfg(test)]
mod tests;

use alloc::vec;
use alloc::vec::Vec;
use pcie::msix::{Control, ENTRY, Message, Table};

/// Offset of vector control in an entry.
const CONTROL: u64 = 12;
/// Vector control: masked.
const MASKED: u8 = 1;

/// Who handles accesses to the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handler {
    /// Every access is forwarded: two switches between domains.
    DeviceModel,
    /// Masking and reading stay in the hypervisor; what changes a message is forwarded.
    Hypervisor,
}

/// Who handled an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The hypervisor, at the exit.
    Hypervisor,
    /// The device model, and why.
    DeviceModel(Why),
}

/// Why an access was forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Everything is.
    Policy,
    /// It is not of 4 or 8 bytes at a multiple of its size.
    Shape,
    /// It is not inside the table: the hypervisor does not know what is there.
    NotTable,
    /// It changes an address or data: the device model must know the message.
    Message,
    /// It unmasks a vector whose address or data has changed since it was unmasked last.
    Changed,
}

/// What a write did, and who did it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Who handled it.
    pub by: By,
    /// The vector whose mask bit changed, and its new value; not said of a write across entries.
    pub mask: Option<(u16, bool)>,
}

/// Accesses by who handled them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Handled at the exit.
    pub hypervisor: u64,
    /// Forwarded.
    pub device_model: u64,
}

/// The table of one assigned function.
#[derive(Debug, Clone)]
pub struct VirtualTable {
    table: Table,
    changed: Vec<bool>,
    handler: Handler,
    counts: Counts,
}

impl VirtualTable {
    /// A table after reset; `vectors` is brought into 1 to 2048.
    #[must_use]
    pub fn new(vectors: u16, handler: Handler) -> Self {
        let table = Table::new(vectors);
        let changed = vec![false; table.vectors().into()];
        Self { table, changed, handler, counts: Counts::default() }
    }

    /// Accesses so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The table itself, to look at.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The guest reads bytes, counted from the table's first.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> By {
        self.table.read(offset, into);
        self.count(self.outside(offset, into.len()))
    }

    /// The guest writes bytes, counted from the table's first. Ask [`VirtualTable::release`] afterwards.
    pub fn write(&mut self, offset: u64, from: &[u8]) -> Written {
        let why = self.outside(offset, from.len());
        let within = (offset % ENTRY as u64).saturating_add(from.len() as u64) <= ENTRY as u64;
        let Some(entry) = self.entry(offset).filter(|_| within) else {
            self.write_across(offset, from);
            return Written { by: self.count(why), mask: None };
        };
        let was = self.is_masked(entry);
        let altered = self.put(entry, offset, from);
        let is = self.is_masked(entry);
        let unmasks = reaches_control(offset, from.len()) && !is;
        let changed = &mut self.changed[usize::from(entry)];
        *changed |= altered;
        let why = why
            .or((unmasks && *changed).then_some(Why::Changed))
            .or((altered && !unmasks).then_some(Why::Message));
        *changed &= !unmasks;
        Written { by: self.count(why), mask: (was != is).then_some((entry, is)) }
    }

    /// A write that is not inside one entry: every entry that it touches counts as changed.
    fn write_across(&mut self, offset: u64, from: &[u8]) {
        self.table.write(offset, from);
        let entry = |at: u64| usize::try_from(at / ENTRY as u64).unwrap_or(usize::MAX);
        let (first, last) = (entry(offset), entry(offset.saturating_add(from.len() as u64)));
        let last = last.min(self.changed.len().saturating_sub(1));
        if let Some(touched) = self.changed.get_mut(first..=last) {
            touched.fill(true);
        }
    }

    /// The device signals a vector: the guest's message, or None if it pends or there is no such vector.
    pub fn signal(&mut self, vector: u16) -> Option<Message> {
        self.table.signal(vector)
    }

    /// The next message that pends no longer; call until None.
    pub fn release(&mut self) -> Option<(u16, Message)> {
        self.table.release()
    }

    /// Follows the control word of the virtual configuration space. Ask [`VirtualTable::release`] afterwards.
    pub fn set_control(&mut self, control: Control) {
        self.table.set_control(control);
    }

    /// A reset of the function: every vector masked, nothing pending, no message known to the device model.
    pub fn reset(&mut self) {
        self.table.reset();
        self.changed.fill(false);
    }

    /// Why an access cannot be handled in the hypervisor, whatever it does.
    fn outside(&self, offset: u64, size: usize) -> Option<Why> {
        if self.handler == Handler::DeviceModel {
            Some(Why::Policy)
        } else if !matches!(size, 4 | 8) || !offset.is_multiple_of(size as u64) {
            Some(Why::Shape)
        } else if self.entry(offset).is_none() {
            Some(Why::NotTable)
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

    /// Writes inside an entry: whether its address or data is another now.
    fn put(&mut self, entry: u16, offset: u64, from: &[u8]) -> bool {
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

    fn count(&mut self, why: Option<Why>) -> By {
        if let Some(why) = why {
            self.counts.device_model += 1;
            return By::DeviceModel(why);
        }
        self.counts.hypervisor += 1;
        By::Hypervisor
    }
}

/// Whether an access covers the first byte of vector control, where the mask bit is.
fn reaches_control(offset: u64, size: usize) -> bool {
    let first = offset % ENTRY as u64;
    (first..first + size as u64).contains(&CONTROL)
}
