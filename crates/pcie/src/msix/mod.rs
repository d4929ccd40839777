//! MSI-X table and its pending bits, as memory in a BAR (PCIe base specification, 6.1.4 and 7.7.2). The table
//! returns the messages, and its caller sends them.

#[cfg(test)]
mod tests;

pub use crate::capability::msix::MsiXControl;
use alloc::vec;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Bytes of an MSI-X table entry: address, upper address, data, vector control.
pub const ENTRY: usize = 16;
/// Maximum number of vectors in an MSI-X table.
pub const MOST_VECTORS: u16 = 2048;
/// MSI-X vector control bit: the vector is masked.
const MASKED: u32 = 1;
/// Writable bits of an MSI-X table entry's dwords: all but two of the address's, and one of vector control.
const WRITABLE: [u32; 4] = [!3, u32::MAX, u32::MAX, MASKED];
/// Value of an MSI-X table entry after reset.
const RESET: [u32; 4] = [0, 0, 0, MASKED];

/// Interrupt message: a write to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterruptMessage {
    /// Address of the interrupt message's write.
    pub address: u64,
    /// Data of the interrupt message's write.
    pub data: u32,
}

/// MSI-X table of one function.
///
/// The pending bit of a vector is set while a mask delays its message. No bit is set while MSI-X is disabled,
/// because the function then has no vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MsiXTable {
    entries: Vec<[u32; 4]>,
    pending: Vec<bool>,
    control: MsiXControl,
}

impl MsiXTable {
    /// Creates a table in its reset state: every vector masked, MSI-X disabled. `vectors` is clamped to 1 to 2048.
    #[must_use]
    pub fn new(vectors: u16) -> Self {
        let vectors = usize::from(vectors.clamp(1, MOST_VECTORS));
        Self { entries: vec![RESET; vectors], pending: vec![false; vectors], control: MsiXControl::default() }
    }

    /// Returns the number of vectors in the MSI-X table.
    #[must_use]
    pub fn vectors(&self) -> u16 {
        u16::try_from(self.entries.len()).unwrap_or(MOST_VECTORS)
    }

    /// Reads bytes of the MSI-X table from byte `offset` on. Bytes beyond the last entry read as zero.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        for (at, byte) in (0u64..).zip(into) {
            let place = self.place(offset, at);
            *byte = place.map_or(0, |(entry, dword, lane)| self.entries[entry][dword].to_le_bytes()[lane]);
        }
    }

    /// Writes bytes of the MSI-X table. Call [`MsiXTable::release`] afterwards: an unmasked vector may have been
    /// pending.
    pub fn write(&mut self, offset: u64, from: &[u8]) {
        for (at, &value) in (0u64..).zip(from) {
            let Some((entry, dword, lane)) = self.place(offset, at) else { return };
            let mask = WRITABLE[dword] & (0xff << (8 * lane));
            let word = &mut self.entries[entry][dword];
            *word = *word & !mask | (u32::from(value) << (8 * lane)) & mask;
        }
    }

    /// Reads pending bits of the MSI-X table, eight vectors a byte. They are read-only, and zero beyond the last
    /// vector.
    pub fn read_pending(&self, offset: u64, into: &mut [u8]) {
        for (at, byte) in (0u64..).zip(into) {
            let first = offset.checked_add(at).and_then(|i| usize::try_from(i).ok()?.checked_mul(8));
            let bits = first.and_then(|first| self.pending.get(first..)).unwrap_or(&[]);
            *byte = bits.iter().take(8).rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit));
        }
    }

    /// Applies the MSI-X control word. Call [`MsiXTable::release`] afterwards. Disabling clears the pending bits.
    pub fn set_control(&mut self, control: MsiXControl) {
        self.control = control;
        if !control.enabled {
            self.pending.fill(false);
        }
    }

    /// Returns the MSI-X control settings (enable and function mask) that were set last.
    #[must_use]
    pub fn control(&self) -> MsiXControl {
        self.control
    }

    /// Signals an MSI-X vector. Returns the message to send, or `None` if it stays pending, or if the vector does not
    /// exist or MSI-X is disabled.
    pub fn signal(&mut self, vector: u16) -> Option<InterruptMessage> {
        let at = usize::from(vector);
        if !self.control.enabled || at >= self.entries.len() {
            return None;
        }
        let held = self.held(at);
        self.pending[at] = held;
        (!held).then(|| self.message(at))
    }

    /// Removes and returns the next pending message whose masks are clear now, lowest vector first. Call it until it
    /// returns `None`: at most once per vector.
    pub fn release(&mut self) -> Option<(u16, InterruptMessage)> {
        let mut vectors = (0..).zip(&self.pending).zip(0..);
        let ((at, _), vector) = vectors.find(|((at, pending), _)| **pending && !self.held(*at))?;
        self.pending[at] = false;
        Some((vector, self.message(at)))
    }

    /// Resets the MSI-X table: every vector masked and zero, none pending, MSI-X disabled.
    pub fn reset(&mut self) {
        self.entries.fill(RESET);
        self.set_control(MsiXControl::default());
    }

    /// Returns the table's state without the control word, which is in configuration space.
    #[must_use]
    pub fn save(&self) -> MsiXTableState {
        MsiXTableState { entries: self.entries.clone(), pending: self.pending.clone() }
    }

    /// Restores the table from a saved state. Missing entries are as after reset; excess ones are ignored.
    pub fn load(&mut self, state: &MsiXTableState, control: MsiXControl) {
        self.reset();
        for (entry, from) in self.entries.iter_mut().zip(&state.entries) {
            for dword in 0..4 {
                entry[dword] = from[dword] & WRITABLE[dword];
            }
        }
        for (pending, &from) in self.pending.iter_mut().zip(&state.pending) {
            *pending = from;
        }
        self.set_control(control);
    }

    fn held(&self, at: usize) -> bool {
        !self.control.enabled || self.control.masked || self.entries[at][3] & MASKED != 0
    }

    fn message(&self, at: usize) -> InterruptMessage {
        let [low, high, data, _] = self.entries[at];
        InterruptMessage { address: u64::from(high) << 32 | u64::from(low), data }
    }

    /// Returns entry, dword and byte lane of table byte `offset + at`.
    fn place(&self, offset: u64, at: u64) -> Option<(usize, usize, usize)> {
        let byte = usize::try_from(offset.checked_add(at)?).ok()?;
        let entry = byte / ENTRY;
        (entry < self.entries.len()).then_some((entry, byte / 4 % 4, byte % 4))
    }
}

/// Saved state of an MSI-X table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "TableState")]
pub struct MsiXTableState {
    /// Message address, upper address, data and vector control of each MSI-X vector.
    pub entries: Vec<[u32; 4]>,
    /// Pending bit of each MSI-X vector.
    pub pending: Vec<bool>,
}
