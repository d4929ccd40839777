//! The register file: one store for the PF's registers and, through the VF window, for every VF's. The two views of a
//! register can therefore not diverge. A register without side effects is complete with its row in the table and this
//! file; `function` dispatches side effects to the module that owns them.

#[cfg(test)]
mod tests;

use crate::damaged::InvalidStateError;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use i82576::ids::PF_BAR0_SIZE;
use i82576::table::{self, DecodedRegisterSet, PfRegister, RegisterAccessEffect, RegisterAccessRule};
use i82576::window::ResolvedVfRegister;
use serde::{Deserialize, Serialize};

const WORDS: usize = PF_BAR0_SIZE / 4;

/// Stored value of every register, by its canonical offset.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "Vec<(u16, u32)>", try_from = "Vec<(u16, u32)>")]
pub struct RegisterFile {
    words: Box<[u32; WORDS]>,
    /// Reset value of each register, by dword. A VF's reset copies a few of them, and does not walk the table's
    /// thousands of registers.
    resets: Arc<[u32; WORDS]>,
}

/// Lists the index and value of each dword that is not zero, in order: the saved form of the register file.
impl From<RegisterFile> for Vec<(u16, u32)> {
    fn from(file: RegisterFile) -> Self {
        (0..).zip(file.words.iter().copied()).filter(|(_, value)| *value != 0).collect()
    }
}

impl TryFrom<Vec<(u16, u32)>> for RegisterFile {
    type Error = InvalidStateError;

    fn try_from(words: Vec<(u16, u32)>) -> Result<Self, InvalidStateError> {
        let mut most = filled(0);
        for row in table::rows() {
            row.resets().for_each(|(offset, reset)| most[offset as usize / 4] = limit(row, reset));
        }
        let mut file = Self { words: filled(0), resets: reset_values().into() };
        for (word, value) in words {
            let word = usize::from(word);
            if most.get(word).is_none_or(|most| value & !most != 0) {
                return Err(InvalidStateError("a register has a bit set that software cannot set"));
            }
            file.words[word] = value;
        }
        Ok(file)
    }
}

/// Returns the bits that a restored register may hold. A register of a ring bounds the card's index arithmetic, so it
/// may hold writable bits only. The card may set further bits in other registers.
fn limit(row: &PfRegister, reset: u32) -> u32 {
    match row.access {
        RegisterAccessRule::Rw(bits) if (RX_BLOCKS..RINGS_END).contains(&row.offset) => bits | reset,
        _ => u32::MAX,
    }
}

/// First offset of the receive queues' registers; those of the transmit queues follow (82576 datasheet, dense blocks).
const RX_BLOCKS: u32 = 0xc000;
/// Offset behind the dense blocks of the transmit queues' registers.
const RINGS_END: u32 = 0xe400;

/// Register table indexed by the dword offset in the PF's BAR0, aliases included.
#[derive(Debug, Clone)]
pub(crate) struct RegisterMap {
    places: Box<[Option<RegisterEntry>; WORDS]>,
}

/// Register at an offset of the PF's BAR0: the canonical offset of its value, its access rule, and the effects of
/// accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RegisterEntry {
    /// Canonical offset of the register.
    pub offset: u32,
    /// Rule for reads and writes of the register, such as read-only.
    pub access: RegisterAccessRule,
    /// Side effect of an access to the register, and the part of the card that carries it out.
    pub effect: RegisterAccessEffect,
    /// Decoded forms of registers that depend on this register.
    pub forms: DecodedRegisterSet,
}

impl RegisterEntry {
    /// Returns all bits of the register as a [`ResolvedVfRegister`].
    #[must_use]
    pub(crate) const fn slot(self) -> ResolvedVfRegister {
        ResolvedVfRegister { offset: self.offset, shift: 0, mask: u32::MAX, access: self.access }
    }
}

impl RegisterFile {
    /// Creates the register file after power-on.
    #[must_use]
    pub fn new() -> Self {
        let words = reset_values();
        Self { resets: words.clone().into(), words }
    }

    /// Sets every register to its reset value. Registers that survive a software reset are reset only if `power_on`.
    pub fn reset(&mut self, power_on: bool) {
        for row in table::rows().filter(|row| power_on || !row.sticky) {
            row.resets().for_each(|(offset, value)| self.set(offset, value));
        }
    }

    /// Sets the registers with canonical offsets in `range` to their reset values.
    pub(crate) fn reset_range(&mut self, range: core::ops::Range<u32>) {
        let range = range.start as usize / 4..range.end as usize / 4;
        if let (Some(words), Some(resets)) = (self.words.get_mut(range.clone()), self.resets.get(range)) {
            words.copy_from_slice(resets);
        }
    }

    /// Returns the stored value of the register at a canonical offset.
    #[must_use]
    pub fn get(&self, offset: u32) -> u32 {
        self.words.get(offset as usize / 4).copied().unwrap_or(0)
    }

    /// Stores a value at a canonical offset, also in bits that software cannot write.
    pub fn set(&mut self, offset: u32, value: u32) {
        if let Some(word) = self.words.get_mut(offset as usize / 4) {
            *word = value;
        }
    }

    /// Clears the bits `clear` of the register at a canonical offset, and sets the bits `set`.
    pub fn update(&mut self, offset: u32, clear: u32, set: u32) {
        self.set(offset, self.get(offset) & !clear | set);
    }

    /// Adds to a counter of the port, which stops at its largest value.
    pub fn count(&mut self, offset: u32, amount: u32) {
        self.set(offset, self.get(offset).saturating_add(amount));
    }

    /// Adds to a statistics counter of a VF. The counter wraps: reading does not clear a VF's counters, and drivers
    /// take differences.
    pub(crate) fn count_around(&mut self, offset: u32, amount: u32) {
        self.set(offset, self.get(offset).wrapping_add(amount));
    }

    /// Adds to a 64-bit counter of the port, which has a low and a high dword. The counter stops at its largest value.
    pub(crate) fn count_wide(&mut self, low: u32, amount: u32) {
        let before = u64::from(self.get(low)) | u64::from(self.get(low + 4)) << 32;
        let after = before.saturating_add(amount.into());
        self.set(low, after as u32);
        self.set(low + 4, (after >> 32) as u32);
    }

    /// Returns the bits of a register as software reads them, and clears those that a read clears.
    pub fn read(&mut self, slot: ResolvedVfRegister) -> u32 {
        let ResolvedVfRegister { offset, shift, mask, access } = slot;
        let value = (self.get(offset) >> shift) & mask;
        match access {
            RegisterAccessRule::Rc => self.update(offset, mask << shift, 0),
            RegisterAccessRule::Wo => return 0,
            RegisterAccessRule::Rw(_)
            | RegisterAccessRule::Ro
            | RegisterAccessRule::W1c(_)
            | RegisterAccessRule::W1s(_) => {}
        }
        value
    }

    /// Applies software's write to the bits of a register.
    pub fn write(&mut self, slot: ResolvedVfRegister, value: u32) {
        let ResolvedVfRegister { offset, shift, mask, access } = slot;
        let (clear, set) = match access {
            RegisterAccessRule::Rw(bits) => (bits & mask, value & bits & mask),
            RegisterAccessRule::W1c(bits) => (value & bits & mask, 0),
            RegisterAccessRule::W1s(bits) => (0, value & bits & mask),
            RegisterAccessRule::Ro | RegisterAccessRule::Rc | RegisterAccessRule::Wo => (0, 0),
        };
        self.update(offset, clear << shift, set << shift);
    }
}

impl RegisterMap {
    /// Creates the map of registers from the register table.
    #[must_use]
    pub(crate) fn new() -> Self {
        let mut map = Self { places: filled(None) };
        table::rows().for_each(|row| map.place(row));
        map
    }

    fn place(&mut self, row: &PfRegister) {
        let twice = row.offsets().zip(row.aliases()).map(|(offset, alias)| (alias, offset));
        for (at, offset) in row.offsets().map(|offset| (offset, offset)).chain(twice) {
            let PfRegister { access, effect, forms, .. } = *row;
            self.places[at as usize / 4] = Some(RegisterEntry { offset, access, effect, forms });
        }
    }

    /// Returns the register at an offset of the PF's BAR0, or `None` at a reserved offset.
    #[must_use]
    pub(crate) fn find(&self, offset: u32) -> Option<RegisterEntry> {
        *self.places.get(offset as usize / 4)?
    }
}

impl Default for RegisterMap {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the reset value of every register, and zero at reserved offsets.
fn reset_values() -> Box<[u32; WORDS]> {
    let mut values = filled(0);
    table::rows()
        .flat_map(PfRegister::resets)
        .for_each(|(offset, value)| values[offset as usize / 4] = value);
    values
}

/// Returns an array on the heap with `value` for each dword: such an array is too large for the stack. The array's
/// length is part of its type, which saves the bounds check for constant offsets.
fn filled<T: Clone>(value: T) -> Box<[T; WORDS]> {
    let Ok(all) = alloc::vec![value; WORDS].into_boxed_slice().try_into() else { unreachable!() };
    all
}

impl Default for RegisterFile {
    fn default() -> Self {
        Self::new()
    }
}
