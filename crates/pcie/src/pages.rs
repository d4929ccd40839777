//! Registers of a BAR that a guest has as memory: its loads and stores there are no accesses to the device. The device
//! remembers what it has put into the place of each register ([`Places`]). What differs from that the guest has stored.
//!
//! Of several stores to a place between two looks the last counts. A store of the value that is there already cannot be seen.
//!
//! Left out: the memory itself; what a store means, which is each device's; and when to look.

use alloc::vec::Vec;
use core::ops::Range;

/// Memory that a guest reads and writes at the same time, by dword-aligned byte offsets of its BAR. An access is whole, and
/// what the guest has stored in memory before it stored here can be seen after a load that has found it.
pub trait Pages {
    /// What is there now.
    fn load(&self, offset: u32) -> u32;

    /// What is there from `offset` on, a dword behind the other. The last is loaded first.
    #[inline]
    fn load_run(&self, offset: u32, into: &mut [u32]) {
        for (at, value) in into.iter_mut().enumerate().rev() {
            *value = self.load(offset.wrapping_add(4 * at as u32));
        }
    }

    /// Stores, whatever is there.
    fn store(&self, offset: u32, value: u32);

    /// Stores `new` if `old` is there; answers whether it was.
    fn replace(&self, offset: u32, old: u32, new: u32) -> bool;
}

/// Loads of all tails in one look at most, while the guest keeps storing there.
const TAIL_LOADS: usize = 4;

/// The places of `N` registers, in the order in which stores are taken, and what the device has put into each.
#[derive(Debug, Clone)]
pub struct Places<const N: usize> {
    offsets: &'static [u32; N],
    shown: [u32; N],
    /// The first place of a tail that counts only with the registers of its ring. All later ones are tails too.
    tails: usize,
    /// Places whose registers follow each other in the pages.
    runs: Vec<Range<usize>>,
}

impl<const N: usize> Places<N> {
    /// Of pages that hold what `value` says of each place, by its number, but for what the guest has stored since. Places
    /// from `tails` on are tails of rings that the guest sets up in these pages; `N` if there are none.
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

    /// Puts into every place what is to be there. Stores so far do not count.
    pub fn fill<P: Pages>(&self, pages: &P) {
        for (offset, value) in self.offsets.iter().zip(self.shown) {
            pages.store(*offset, value);
        }
    }

    /// Whether the guest has stored anything since the last look.
    #[must_use]
    pub fn stirred<P: Pages>(&self, pages: &P) -> bool {
        let mut found = [0; N];
        // The last first: tails, which are what a guest stores most.
        self.runs.iter().rev().any(|run| {
            let found = &mut found[run.clone()];
            pages.load_run(self.offsets[run.start], found);
            *found != self.shown[run.clone()]
        })
    }

    /// Has `write` take what the guest has stored since the last look, by offset and value. Answers whether there was
    /// anything. Where a register `acts` on a store even of the value that it has, what was shown is there again
    /// afterwards, so that the same store is seen again.
    pub fn take<P: Pages>(
        &mut self,
        pages: &P,
        acts: impl Fn(u32) -> bool,
        mut write: impl FnMut(u32, u32),
    ) -> bool {
        let found = self.load(pages);
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
                    // There is more already: the next look takes it.
                    continue;
                }
                write(offset, stored);
            }
        }
        any
    }

    /// Loads every place. The last first: a look that has seen a tail has not missed what the guest stored before it. Nor may
    /// it see a ring that was set up anew with the tail of before. So where anything but tails has changed, tails are loaded
    /// once more, and all places again if a tail has changed meanwhile.
    #[inline]
    fn load<P: Pages>(&self, pages: &P) -> [u32; N] {
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

    /// Loads the places from `first` on, which begins a run.
    #[inline]
    fn load_from<P: Pages>(&self, first: usize, pages: &P, found: &mut [u32; N]) {
        for run in self.runs.iter().rev().take_while(|run| run.start >= first) {
            pages.load_run(self.offsets[run.start], &mut found[run.clone()]);
        }
    }

    /// Puts into `places`, by their numbers, what loads are to give from now on. What the guest has stored since the last look
    /// stays for the next; `false` if there was such a store.
    pub fn show<P: Pages>(
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
