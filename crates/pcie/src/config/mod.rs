//! Configuration space of a function: 4 KiB of which every bit is read-only, writable or write-1-to-clear. The bytes
//! are the whole state; [`ConfigSpaceBuilder`] defines once which writes are permitted, and all copies of a space share
//! that definition.
//!
//! `endpoint` has the side effects of writes.

mod bar;
mod builder;
pub mod offset;
mod register;
#[cfg(test)]
mod tests;

pub use bar::{Bar, BarKind};
pub use builder::{ConfigSpaceBuilder, FunctionIds};
pub use register::ConfigRegister;

use crate::low::low_word;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

/// Bytes of a PCIe function's configuration space.
pub const SIZE: usize = 4096;

/// Image of configuration space: one value, such as a mask, for each byte.
type ConfigImage = [u8; SIZE];

/// Layout of a configuration space: a mask for each property of a bit. A bit in none of the masks is read-only.
#[derive(Clone, PartialEq, Eq)]
struct ConfigLayout {
    reset: ConfigImage,
    writable: ConfigImage,
    clearable: ConfigImage,
    sticky: ConfigImage,
    /// Offsets of the few bytes with a writable, clearable or sticky bit, in order.
    changeable: Vec<u16>,
}

impl ConfigLayout {
    /// Collects the offsets of the bytes with a writable, clearable or sticky bit.
    fn find_changeable(&mut self) {
        let masks = [&self.writable, &self.clearable, &self.sticky];
        let is_changeable = |i: &u16| masks.iter().any(|mask| mask[usize::from(*i)] != 0);
        self.changeable = (0..).take(SIZE).filter(is_changeable).collect();
    }
}

/// Configuration space of a function. Cloning copies the state and shares the layout.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigSpace {
    bytes: Box<ConfigImage>,
    layout: Arc<ConfigLayout>,
}

impl ConfigSpace {
    /// Reads bytes of the configuration space at `offset`. Bytes beyond 4 KiB read as all ones.
    pub fn read_bytes(&self, offset: u64, into: &mut [u8]) {
        for (at, byte) in (0u64..).zip(into) {
            *byte = index(offset, at).map_or(0xff, |i| self.bytes[i]);
        }
    }

    /// Writes bytes of the configuration space at `offset`, in address order. Bytes beyond 4 KiB are ignored.
    pub fn write_bytes(&mut self, offset: u64, from: &[u8]) {
        for (at, &value) in (0u64..).zip(from) {
            let Some(i) = index(offset, at) else { return };
            let writable = self.layout.writable[i];
            let kept = (self.bytes[i] & !writable) | (value & writable);
            self.bytes[i] = kept & !(value & self.layout.clearable[i]);
        }
    }

    /// Reads 1, 2 or 4 bytes of the configuration space, little endian, at any alignment. Any other size reads as all
    /// ones.
    #[must_use]
    pub fn read(&self, offset: u16, size: u8) -> u32 {
        let mut bytes = [0; 4];
        match size {
            1 | 2 | 4 => self.read_bytes(offset.into(), &mut bytes[..size.into()]),
            _ => return u32::MAX,
        }
        u32::from_le_bytes(bytes)
    }

    /// Writes the low 1, 2 or 4 bytes of `value` to the configuration space. Any other size is ignored.
    pub fn write(&mut self, offset: u16, size: u8, value: u32) {
        if matches!(size, 1 | 2 | 4) {
            self.write_bytes(offset.into(), &value.to_le_bytes()[..size.into()]);
        }
    }

    /// Returns the 16-bit word of the configuration space at `offset`.
    #[must_use]
    pub fn word(&self, offset: u16) -> u16 {
        low_word(self.read(offset, 2))
    }

    /// Returns the dword of the configuration space at `offset`.
    #[must_use]
    pub fn dword(&self, offset: u16) -> u32 {
        self.read(offset, 4)
    }

    /// Sets a 16-bit word on behalf of the device, regardless of the masks for software.
    pub(crate) fn set_word(&mut self, offset: u16, value: u16) {
        self.set_bytes(offset, &value.to_le_bytes());
    }

    /// Sets a dword on behalf of the device, regardless of the masks for software.
    pub(crate) fn set_dword(&mut self, offset: u16, value: u32) {
        self.set_bytes(offset, &value.to_le_bytes());
    }

    fn set_bytes(&mut self, offset: u16, from: &[u8]) {
        for (at, &value) in (0u64..).zip(from) {
            if let Some(i) = index(offset.into(), at) {
                self.bytes[i] = value;
            }
        }
    }

    /// Resets every bit except the sticky ones (function level reset).
    pub fn function_level_reset(&mut self) {
        let before = *self.bytes;
        self.reset();
        for &i in &self.layout.changeable {
            let (i, sticky) = (usize::from(i), self.layout.sticky[usize::from(i)]);
            self.bytes[i] = (before[i] & sticky) | (self.bytes[i] & !sticky);
        }
    }

    /// Resets every bit of the space, sticky ones included (conventional reset).
    pub fn reset(&mut self) {
        *self.bytes = self.layout.reset;
    }

    /// Returns the current bytes of the configuration space.
    #[must_use]
    pub fn bytes(&self) -> &[u8; SIZE] {
        &self.bytes
    }

    /// Returns the saved state of the configuration space, from which [`ConfigSpace::load`] restores it.
    #[must_use]
    pub fn save(&self) -> ConfigSpaceState {
        let changeable = self.layout.changeable.iter().map(|&i| (i, usize::from(i)));
        let changed = changeable.filter(|&(_, i)| (self.bytes[i] ^ self.layout.reset[i]) & self.live(i) != 0);
        ConfigSpaceState(changed.map(|(at, i)| (at, self.bytes[i] & self.live(i))).collect())
    }

    /// Restores the saved state of a configuration space of the same layout. Returns false, and resets the space, if
    /// the state has bytes beyond 4 KiB. Read-only bits keep the layout's value, so that a foreign state cannot change
    /// the function's identity.
    #[must_use]
    pub fn load(&mut self, state: &ConfigSpaceState) -> bool {
        self.reset();
        if state.0.iter().any(|(offset, _)| usize::from(*offset) >= SIZE) {
            return false;
        }
        for &(offset, value) in &state.0 {
            let i = usize::from(offset);
            self.bytes[i] = value & self.live(i) | self.layout.reset[i] & !self.live(i);
        }
        true
    }

    /// Returns the bits of byte `i` of the configuration space that can change: the writable and the clearable ones.
    fn live(&self, i: usize) -> u8 {
        self.layout.writable[i] | self.layout.clearable[i]
    }

    /// Returns the offset of capability `id`, if the configuration space has it.
    #[must_use]
    pub fn find(&self, id: u8) -> Option<u16> {
        crate::walk::find(|at| self.dword(at), id)
    }

    /// Returns the offset of extended capability `id`, if the configuration space has it.
    #[must_use]
    pub fn find_extended(&self, id: u16) -> Option<u16> {
        crate::walk::find_extended(|at| self.dword(at), id)
    }
}

/// Saved state of a configuration space: offset and value of each byte that differs from its value after a conventional
/// reset.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "SpaceState")]
pub struct ConfigSpaceState(Vec<(u16, u8)>);

impl FromIterator<(u16, u8)> for ConfigSpaceState {
    fn from_iter<I: IntoIterator<Item = (u16, u8)>>(bytes: I) -> Self {
        Self(bytes.into_iter().collect())
    }
}

/// Returns `offset + at` as an index into configuration space, or `None` from 4 KiB on.
fn index(offset: u64, at: u64) -> Option<usize> {
    let i = usize::try_from(offset.checked_add(at)?).ok()?;
    (i < SIZE).then_some(i)
}

impl fmt::Debug for ConfigSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (vendor, device) = (self.word(offset::VENDOR), self.word(offset::DEVICE));
        let command = self.word(offset::COMMAND);
        write!(f, "ConfigSpace({vendor:04x}:{device:04x}, command {command:#06x})")
    }
}
