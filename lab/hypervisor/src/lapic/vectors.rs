//! Set of interrupt vectors, in the layout of the APIC's 256-bit registers (SDM volume 3, 10.8.4).

/// Set of interrupt vectors 0 to 255; higher numbers have higher priority.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InterruptVectorSet([u64; 4]);

impl InterruptVectorSet {
    /// Adds an interrupt vector to the set. Returns `true` if it was not in the set.
    pub const fn insert(&mut self, vector: u8) -> bool {
        let new = !self.contains(vector);
        self.0[vector as usize / 64] |= 1 << (vector % 64);
        new
    }

    /// Removes an interrupt vector from the set.
    pub const fn remove(&mut self, vector: u8) {
        self.0[vector as usize / 64] &= !(1 << (vector % 64));
    }

    /// Returns `true` if the set contains the interrupt vector.
    #[must_use]
    pub const fn contains(&self, vector: u8) -> bool {
        self.0[vector as usize / 64] >> (vector % 64) & 1 != 0
    }

    /// Returns the interrupt vector of highest priority in the set.
    #[must_use]
    pub fn highest(&self) -> Option<u8> {
        let word = (0..4).rev().find(|&word| self.0[word] != 0)?;
        Some((64 * word as u32 + self.0[word].ilog2()) as u8)
    }

    /// Returns the number of interrupt vectors in the set.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns a 32-bit register of the set: interrupt vectors 32n to 32n+31, or zero for n of 8 and above.
    #[must_use]
    pub fn dword(&self, n: usize) -> u32 {
        self.0.get(n / 2).map_or(0, |word| (word >> (32 * (n % 2))) as u32)
    }
}
