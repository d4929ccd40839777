//! Handles registers of a BAR in pages that a guest accesses as memory: its loads and stores there do not reach the
//! device. The device remembers the value that it has published for each register ([`PageRegisters`]). A different
//! value in the page is a store by the guest.
//!
//! Of several stores to a register between two reads the last counts. A store of the present value cannot be
//! detected.
//!
//! The device interprets the stores and decides when to read.

use crate::low::low_dword;
use alloc::vec::Vec;
use core::ops::Range;

/// Pages of registers that a guest accesses at the same time, by dword-aligned byte offsets of its BAR. Accesses are
/// atomic, and a load that returns a guest's store also makes its earlier stores to memory visible.
pub trait GuestRegisterPages {
    /// Loads the dword at an offset of the guest's pages.
    fn load(&self, offset: u32) -> u32;

    /// Loads consecutive dwords of the guest's pages from `offset` on, the last first.
    #[inline]
    fn load_run(&self, offset: u32, into: &mut [u32]) {
        let bytes = low_dword(size_of_val(into) as u64);
        let mut at = offset.wrapping_add(bytes);
        for value in into.iter_mut().rev() {
            at = at.wrapping_sub(4);
            *value = self.load(at);
        }
    }

    /// Stores a dword at an offset of the guest's pages.
    fn store(&self, offset: u32, value: u32);

    /// Stores `new` at an offset of the guest's pages if the dword there is `old`. Returns true if it was `old`.
    fn replace(&self, offset: u32, old: u32, new: u32) -> bool;
}

/// Maximum number of loads of all ring tails in one read of the pages, while the guest keeps storing there.
const TAIL_LOADS: usize = 4;

/// Offsets of `N` registers that a guest accesses as memory, in the order in which stores are handled, and the
/// published value of each.
#[derive(Debug, Clone)]
pub struct PageRegisters<const N: usize> {
    offsets: &'static [u32; N],
    shown: [u32; N],
    /// Index of the first register that is the tail of a ring; all later registers are tails too. A tail is read
    /// together with the ring's other registers.
    tails: usize,
    /// Index ranges of registers whose offsets are consecutive.
    runs: Vec<Range<usize>>,
}

impl<const N: usize> PageRegisters<N> {
    /// Creates the registers of pages in which `value` of each register index was published before. A different value
    /// there is a pending store by the guest. Registers from index `tails` on are tails of rings that the guest sets up
    /// in these pages; `N` if there are none.
    #[must_use]
    pub fn adopt(offsets: &'static [u32; N], tails: usize, value: impl FnMut(usize) -> u32) -> Self {
        let follows = |place: usize| place != tails && offsets[place - 1].wrapping_add(4) == offsets[place];
        let mut runs: Vec<Range<usize>> = Vec::new();
        for place in 0..N {
            match runs.last_mut() {
                Some(run) if follows(place) => run.end = place + 1,
                _ => runs.push(place..place + 1),
            }
        }
        Self { offsets, shown: core::array::from_fn(value), tails, runs }
    }

    /// Publishes the value of every register to the pages, overwriting the guest's stores.
    pub fn fill<P: GuestRegisterPages>(&self, pages: &P) {
        for (offset, value) in self.offsets.iter().zip(self.shown) {
            pages.store(*offset, value);
        }
    }

    /// Returns true if the guest has stored anything to the pages since the last read.
    #[must_use]
    pub fn has_stores<P: GuestRegisterPages>(&self, pages: &P) -> bool {
        let mut found = [0; N];
        // Last places first: tails, which a guest stores most.
        self.runs.iter().rev().any(|run| {
            let found = &mut found[run.clone()];
            pages.load_run(self.offsets[run.start], found);
            // Runs are short, and ports poll them: a comparison of slices would be a call for each.
            found.iter().zip(&self.shown[run.clone()]).any(|(found, shown)| found != shown)
        })
    }

    /// Passes the guest's stores since the last read to `write`, by offset and value. Returns true if there were
    /// any. Where a register `acts` even on a store of its present value, restores the published value, so that the
    /// same store is detected again.
    pub fn take<P: GuestRegisterPages>(
        &mut self,
        pages: &P,
        acts: impl Fn(u32) -> bool,
        mut write: impl FnMut(u32, u32),
    ) -> bool {
        let found = self.load_all(pages);
        let any = found != self.shown;
        for run in self.runs.iter().filter(|_| any) {
            if found[run.clone()] == self.shown[run.clone()] {
                continue;
            }
            for place in run.clone() {
                let (offset, stored, shown) = (self.offsets[place], found[place], self.shown[place]);
                if stored == shown {
                    continue;
                }
                if !acts(offset) {
                    self.shown[place] = stored;
                } else if !pages.replace(offset, stored, shown) {
                    // The guest has stored again meanwhile: the next read handles it.
                    continue;
                }
                write(offset, stored);
            }
        }
        any
    }

    /// Loads all registers from the guest's pages, the last first, so that a loaded tail implies the guest's earlier
    /// stores. The load must not combine a ring that was set up again with its old tail either. So if a register other
    /// than a tail has changed, tails are loaded once more, and all registers again if a tail has changed meanwhile.
    #[inline]
    fn load_all<P: GuestRegisterPages>(&self, pages: &P) -> [u32; N] {
        let mut found = self.shown;
        for _ in 0..TAIL_LOADS {
            self.load_from(0, pages, &mut found);
            let tails = found;
            if found[..self.tails] == self.shown[..self.tails] {
                break;
            }
            self.load_from(self.tails, pages, &mut found);
            if found == tails {
                break;
            }
        }
        found
    }

    /// Loads the registers of the guest's pages from index `first` on, which begins a range of consecutive offsets.
    #[inline]
    fn load_from<P: GuestRegisterPages>(&self, first: usize, pages: &P, found: &mut [u32; N]) {
        for run in self.runs.iter().rev().take_while(|run| run.start >= first) {
            pages.load_run(self.offsets[run.start], &mut found[run.clone()]);
        }
    }

    /// Publishes new values of the registers with the indices `places` to the guest's pages. Keeps a guest's store
    /// since the last read for the next read, and returns false if there was any.
    pub fn publish<P: GuestRegisterPages>(
        &mut self,
        pages: &P,
        places: impl IntoIterator<Item = usize>,
        mut value: impl FnMut(usize) -> u32,
    ) -> bool {
        let mut all = true;
        for place in places {
            let (old, new) = (self.shown[place], value(place));
            if new == old {
                continue;
            }
            if pages.replace(self.offsets[place], old, new) {
                self.shown[place] = new;
            } else {
                all = false;
            }
        }
        all
    }
}
