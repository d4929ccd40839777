//! Allocates physical interrupt vectors, each with at most one owner.

use super::VectorOwner;
use alloc::vec;
use alloc::vec::Vec;

/// First interrupt vector that the hypervisor allocates to devices; lower numbers are exceptions.
pub const FIRST: u8 = 0x20;
/// Last interrupt vector that the hypervisor allocates to devices; higher ones are its own: timers, kicks, spurious.
pub const LAST: u8 = 0xdf;

/// All physical interrupt vectors are in use; vectors are never shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host has no free physical interrupt vector")]
pub struct VectorsExhausted;

/// Physical interrupt vector: an interrupt table and an entry of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PhysicalVector {
    /// Number of the interrupt table: 0, or the CPU's number if every CPU has its own table.
    pub table: u16,
    /// Number of the interrupt vector in its interrupt table.
    pub vector: u8,
}

/// All physical interrupt vectors of the machine. Lookup by vector is a single access; allocation searches for a free
/// one.
#[derive(Debug, Clone)]
pub struct PhysicalVectorSpace {
    tables: Vec<[Option<VectorOwner>; 256]>,
}

impl PhysicalVectorSpace {
    /// Creates one interrupt table shared by all CPUs, as in Xen 3.4: 191 vectors for the machine.
    #[must_use]
    pub fn shared() -> Self {
        Self::per_cpu(1)
    }

    /// Creates an interrupt table for each of `cpus` CPUs (at least one), with vectors to allocate.
    #[must_use]
    pub fn per_cpu(cpus: u16) -> Self {
        Self { tables: vec![[None; 256]; cpus.max(1).into()] }
    }

    /// Returns the number of free physical interrupt vectors.
    #[must_use]
    pub fn free_vectors(&self) -> usize {
        let free = |table: &[Option<VectorOwner>; 256]| {
            dynamic().filter(|&v| table[usize::from(v)].is_none()).count()
        };
        self.tables.iter().map(free).sum()
    }

    /// Returns the owner of a physical interrupt vector.
    #[must_use]
    pub fn owner(&self, at: PhysicalVector) -> Option<VectorOwner> {
        self.tables.get(usize::from(at.table))?[usize::from(at.vector)]
    }

    /// Allocates a physical vector in the interrupt table with the most free vectors.
    ///
    /// # Errors
    /// [`VectorsExhausted`] if none is free.
    pub fn allocate(&mut self, owner: VectorOwner) -> Result<PhysicalVector, VectorsExhausted> {
        let used = |table: &[Option<VectorOwner>; 256]| table.iter().flatten().count();
        let emptiest =
            (0..self.tables.len()).min_by_key(|&table| used(&self.tables[table])).ok_or(VectorsExhausted)?;
        let table = &mut self.tables[emptiest];
        let vector = dynamic().find(|&v| table[usize::from(v)].is_none()).ok_or(VectorsExhausted)?;
        table[usize::from(vector)] = Some(owner);
        Ok(PhysicalVector { table: emptiest as u16, vector })
    }

    /// Frees a physical interrupt vector.
    pub fn free(&mut self, at: PhysicalVector) {
        if let Some(table) = self.tables.get_mut(usize::from(at.table)) {
            table[usize::from(at.vector)] = None;
        }
    }
}

/// Returns the vector numbers of an interrupt table that are allocated to devices. 80h is excluded: a guest's Linux
/// uses it for system calls.
fn dynamic() -> impl Iterator<Item = u8> {
    (FIRST..=LAST).filter(|&vector| vector != 0x80)
}
