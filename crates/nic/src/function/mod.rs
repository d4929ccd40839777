//! What each function's BAR0 shows, and what reading and writing it sets off. Plain registers are done by the
//! file; what follows here is the list of those that are more.
//!
//! Left out: the effects themselves, which belong to the stop of the frame that has them.

pub mod access;
mod board;
mod config;
pub mod doorbell;
mod interrupts;
pub mod io;
mod link;
pub mod pf;
mod police;
mod queues;
pub mod reset;
mod slot;
pub mod vf;

use crate::Nic;
use i82576::{Time, VfIndex};
use pcie::Function;

impl Nic {
    /// Reads the register at a dword-aligned byte offset of a function's BAR0; zero where nothing is. A VF
    /// that does not exist, or whose memory is not enabled, does not answer, nor does a port that sleeps: that
    /// reads as all ones. Whether the PF's own memory is enabled is for the bus to say.
    pub fn read(&mut self, function: Function, offset: u32, now: Time) -> u32 {
        match function {
            Function::Pf if self.sleeps() => u32::MAX,
            Function::Pf => self.pf_read(offset, now),
            Function::Vf(n) => self.answering(n).map_or(u32::MAX, |vf| self.vf_read(vf, offset, now)),
        }
    }

    /// Writes the register at a dword-aligned byte offset of a function's BAR0, where it answers. A VF that does
    /// not exist must not reach its queues and vectors, which are the PF's.
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

    pub(crate) fn answering(&self, n: u8) -> Option<VfIndex> {
        VfIndex::new(n).filter(|_| n < self.state.owners.vfs && self.state.vf_memory && !self.sleeps())
    }
}
