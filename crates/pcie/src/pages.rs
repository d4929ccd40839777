//! Registers of a BAR that a guest has as memory: its loads and stores there are no accesses to the device. The device
//! remembers what it has put into the place of each register ([`Places`]). What differs from that the guest has stored.
//!
//! Of several stores to a place between two looks the last counts. A store of the value that is there already cannot be seen.
//!
//! Left out: the memory itself; what a store means, which is each device's; and when to look.

/// Memory that a guest reads and writes at the same time, by dword-aligned byte offsets of its BAR. An access is whole, and
/// what the guest has stored in memory before it stored here can be seen after a load that has found it.
pub trait Pages {
    /// What is there now.
    fn load(&self, offset: u32) -> u32;

    /// Stores, whatever is there.
    fn store(&self, offset: u32, value: u32);

    /// Stores `new` if `old` is there; answers whether it was.
    fn replace(&self, offset: u32, old: u32, new: u32) -> bool;
}

/// The places of `N` registers, in the order in which stores are taken, and what the device has put into each.
#[derive(Debug, Clone)]
pub struct Places<const N: usize> {
    offsets: &'static [u32; N],
    shown: [u32; N],
}

impl<const N: usize> Places<N> {
    /// Of pages that hold what `value` says of each place, by its number, but for what the guest has stored since.
    #[must_use]
    pub fn adopt(offsets: &'static [u32; N], value: impl FnMut(usize) -> u32) -> Self {
        Self { offsets, shown: core::array::from_fn(value) }
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
        self.offsets.iter().zip(self.shown).any(|(offset, shown)| pages.load(*offset) != shown)
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
        // The last first: what a guest stores before its tail is not missed by who has seen the tail.
        let mut found = [0; N];
        for (found, offset) in found.iter_mut().zip(self.offsets).rev() {
            *found = pages.load(*offset);
        }
        let any = found != self.shown;
        for (place, offset) in self.offsets.iter().enumerate().filter(|_| any) {
            let (stored, shown) = (found[place], self.shown[place]);
            if stored == shown {
                continue;
            }
            if !acts(*offset) {
                self.shown[place] = stored;
            } else if !pages.replace(*offset, stored, shown) {
                // There is more already: the next look takes it.
                continue;
            }
            write(*offset, stored);
        }
        any
    }

    /// Puts into each place what loads are to give from now on. What the guest has stored since the last look stays for
    /// the next.
    pub fn show<P: Pages>(&mut self, pages: &P, mut value: impl FnMut(usize) -> u32) {
        for (place, offset) in self.offsets.iter().enumerate() {
            let (old, new) = (self.shown[place], value(place));
            if new != old && pages.replace(*offset, old, new) {
                self.shown[place] = new;
            }
        }
    }
}
