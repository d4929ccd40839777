//! Physical vectors: each has at most one owner. Left out: which CPU an interrupt is best sent to.

use super::Owner;
use alloc::vec;
use alloc::vec::Vec;

/// Vectors below are exceptions; from here on the hypervisor hands out.
pub const FIRST: u8 = 0x20;
/// Vectors above are the hypervisor's own: timers, kicks, spurious.
pub const LAST: u8 = 0xdf;

/// No physical vector is left: one more device would have to share, and does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no physical vector left")]
pub struct Exhausted;

/// A physical vector: which interrupt table, and which of its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PhysicalVector {
    /// The table: 0, or the CPU's number where every CPU has its own.
    pub table: u16,
    /// The entry.
    pub vector: u8,
}

/// All physical vectors. Lookup by vector is one step; allocation looks for a free one.
#[derive(Debug, Clone)]
pub struct VectorSpace {
    tables: Vec<[Option<Owner>; 256]>,
}

impl VectorSpace {
    /// One interrupt table that all CPUs share, as in Xen 3.4: 191 vectors for the whole machine.
    #[must_use]
    pub fn shared() -> Self {
        Self::per_cpu(1)
    }

    /// An interrupt table for each of so many CPUs (at least one).
    #[must_use]
    pub fn per_cpu(cpus: u16) -> Self {
        Self { tables: vec![[None; 256]; cpus.max(1).into()] }
    }

    /// How many more vectors can be allocated.
    #[must_use]
    pub fn free_vectors(&self) -> usize {
        let free =
            |table: &[Option<Owner>; 256]| dynamic().filter(|&v| table[usize::from(v)].is_none()).count();
        self.tables.iter().map(free).sum()
    }

    /// Whose a vector is.
    #[must_use]
    pub fn owner(&self, at: PhysicalVector) -> Option<Owner> {
        self.tables.get(usize::from(at.table))?[usize::from(at.vector)]
    }

    /// A vector for an owner, in the table with the most room.
    ///
    /// # Errors
    /// [`Exhausted`].
    pub fn allocate(&mut self, owner: Owner) -> Result<PhysicalVector, Exhausted> {
        let used = |table: &[Option<Owner>; 256]| table.iter().flatten().count();
        let emptiest =
            (0..self.tables.len()).min_by_key(|&table| used(&self.tables[table])).ok_or(Exhausted)?;
        let table = &mut self.tables[emptiest];
        let vector = dynamic().find(|&v| table[usize::from(v)].is_none()).ok_or(Exhausted)?;
        table[usize::from(vector)] = Some(owner);
        Ok(PhysicalVector { table: emptiest as u16, vector })
    }

    /// Gives a vector back.
    pub fn free(&mut self, at: PhysicalVector) {
        if let Some(table) = self.tables.get_mut(usize::from(at.table)) {
            table[usize::from(at.vector)] = None;
        }
    }
}

/// The vectors that are handed out. Linux's system call, 80h, is a guest's, not a device's.
fn dynamic() -> impl Iterator<Item = u8> {
    (FIRST..=LAST).filter(|&vector| vector != 0x80)
}
