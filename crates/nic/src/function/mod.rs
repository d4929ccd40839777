//! Register accesses of each function's BAR0. The register file handles plain registers. This module handles registers
//! with side effects, and calls the module that owns the effect.

pub(crate) mod access;
mod board;
mod config;
pub mod doorbell;
mod interrupts;
pub(crate) mod io;
mod link;
pub(crate) mod pf;
mod police;
mod queues;
pub(crate) mod reset;
mod slot;
pub(crate) mod vf;

use crate::Nic;
use i82576::{Time, VfIndex};
use pcie::Function;

impl Nic {
    /// Reads the register at a dword-aligned byte offset of a function's BAR0. Reserved offsets read zero. All ones are read
    /// from a VF that does not exist, from VFs while VF MSE is clear, and from any function while the PF is in D3hot. The bus
    /// checks the PF's own memory enable.
    pub fn read(&mut self, function: Function, offset: u32, now: Time) -> u32 {
        match function {
            Function::Pf if self.sleeps() => u32::MAX,
            Function::Pf => self.pf_read(offset, now),
            Function::Vf(n) => self.answering(n).map_or(u32::MAX, |vf| self.vf_read(vf, offset, now)),
        }
    }

    /// Writes the register at a dword-aligned byte offset of a function's BAR0. A function that does not answer ignores the
    /// write: the queues and vectors of a VF that does not exist are the PF's.
    pub fn write(&mut self, function: Function, offset: u32, value: u32, now: Time) {
        match function {
            Function::Pf if self.sleeps() => {}
            Function::Pf => self.pf_write(offset, value, now),
            Function::Vf(n) => {
                if let Some(vf) = self.answering(n) {
                    self.vf_write(vf, offset, value, now);
                }
            }
        }
    }

    /// Returns VF `n` if it exists and answers memory requests.
    pub(crate) fn answering(&self, n: u8) -> Option<VfIndex> {
        VfIndex::new(n).filter(|_| n < self.state.owners.vfs && self.state.vf_memory && !self.sleeps())
    }
}
