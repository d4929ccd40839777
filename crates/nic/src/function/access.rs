//! Register accesses of any width and alignment, divided into dwords. A narrow write to a plain register changes its
//! bytes only; in other registers the missing bytes count as zeros, which set and clear nothing.

use super::interrupts::throttle_of;
use super::pf;
use crate::Nic;
use i82576::bits::eitr;
use i82576::table::RegisterAccessRule;
use i82576::window::{self, ResolvedVfRegister};
use i82576::{Time, VfIndex};
use pcie::Function;

impl Nic {
    /// Reads bytes of a function's BAR0. Bytes beyond its end read zero.
    pub fn read_bytes(&mut self, function: Function, offset: u64, into: &mut [u8], now: Time) {
        into.fill(0);
        for_each_dword(offset, into.len(), |dword, lane, range| {
            let bytes = self.read(function, dword, now).to_le_bytes();
            into[range.clone()].copy_from_slice(&bytes[lane..lane + range.len()]);
        });
    }

    /// Writes bytes of a function's BAR0.
    pub fn write_bytes(&mut self, function: Function, offset: u64, from: &[u8], now: Time) {
        for_each_dword(offset, from.len(), |dword, lane, range| {
            let mut bytes = if range.len() == 4 { [0; 4] } else { self.kept(function, dword).to_le_bytes() };
            bytes[lane..lane + range.len()].copy_from_slice(&from[range]);
            self.write(function, dword, u32::from_le_bytes(bytes), now);
        });
    }

    /// Returns the dword whose bytes fill the rest of a narrow write: the stored value for a plain register, zero for
    /// any other.
    fn kept(&self, function: Function, offset: u32) -> u32 {
        let slot = match function {
            Function::Pf => pf::own_place(&self.derived.map, offset),
            Function::Vf(n) => VfIndex::new(n).and_then(|vf| window::resolve(vf, offset)),
        };
        let Some(ResolvedVfRegister { offset, shift, mask, access }) = slot else { return 0 };
        let stored = self.state.file.get(offset) >> shift & mask;
        match access {
            // The counter of EITR keeps running unless the driver writes it, so the write must not touch it.
            RegisterAccessRule::Rw(_) if throttle_of(offset).is_some() => stored | eitr::CNT_IGNR,
            RegisterAccessRule::Rw(_) | RegisterAccessRule::Ro => stored,
            RegisterAccessRule::Rc
            | RegisterAccessRule::W1c(_)
            | RegisterAccessRule::W1s(_)
            | RegisterAccessRule::Wo => 0,
        }
    }
}

/// Calls `each` for every dword that an access of `length` bytes at `offset` touches. Its arguments are the dword's
/// offset, the first byte in the dword, and the range of the access's bytes. Stops at offsets beyond 32 bits.
fn for_each_dword(offset: u64, length: usize, mut each: impl FnMut(u32, usize, core::ops::Range<usize>)) {
    let mut done = 0;
    while done < length {
        let Some(at) = offset.checked_add(done as u64) else { return };
        let Ok(dword) = u32::try_from(at & !3) else { return };
        let lane = (at & 3) as usize;
        let count = (4 - lane).min(length - done);
        each(dword, lane, done..done + count);
        done += count;
    }
}
