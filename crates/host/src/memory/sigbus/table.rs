//! Entries of the SIGBUS handler's table of mappings: threads register and release mappings while the handler of any
//! thread searches the table.
//!
//! The proofs include this file with the atomics of a model checker, which runs it in every order and under weak
//! memory.

use super::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

pub(super) const FREE: usize = 0;
/// Value of an entry of the mapping table that is taken and whose mapping is not recorded yet; never a mapping's first
/// address.
const BUSY: usize = 1;

/// First address and length of one memory mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MappedAddressRange {
    pub(crate) start: usize,
    /// Length of the memory mapping in bytes.
    pub(crate) len: usize,
}

pub(super) struct MappingTableEntry {
    /// Number of times that an entry of the mapping table was taken. By it the SIGBUS handler detects that the start
    /// and the length it has read belong to different mappings.
    pub(super) generation: AtomicU32,
    pub(super) start: AtomicUsize,
    pub(super) len: AtomicUsize,
    pub(super) poisoned: AtomicBool,
}

/// Records a mapping in a free entry, searched from entry `first` on. Returns its index, or `None` if the table is
/// full.
pub(super) fn take_entry(
    table: &[MappingTableEntry],
    first: usize,
    span: MappedAddressRange,
) -> Option<usize> {
    let index = (0..table.len()).map(|step| (first + step) % table.len()).find(|index| {
        table[*index].start.compare_exchange(FREE, BUSY, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    })?;
    let entry = &table[index];
    entry.generation.fetch_add(1, Ordering::AcqRel);
    entry.len.store(span.len, Ordering::Release);
    entry.poisoned.store(false, Ordering::Release);
    entry.start.store(span.start, Ordering::Release);
    Some(index)
}

/// Finds the mapping that holds `address`, and marks it as poisoned. Returns `None` if no mapping holds it.
pub(super) fn poison_holder(table: &[MappingTableEntry], address: usize) -> Option<MappedAddressRange> {
    let (entry, span) = table.iter().find_map(|entry| Some((entry, entry.holding(address)?)))?;
    entry.poisoned.store(true, Ordering::Release);
    Some(span)
}

impl MappingTableEntry {
    pub(super) fn poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    /// Frees the entry. The mapping's owner calls it before it unmaps.
    pub(super) fn release(&self) {
        self.start.store(FREE, Ordering::Release);
    }

    fn holding(&self, address: usize) -> Option<MappedAddressRange> {
        let generation = self.generation.load(Ordering::Acquire);
        let start = self.start.load(Ordering::Acquire);
        let len = self.len.load(Ordering::Acquire);
        let whole = self.generation.load(Ordering::Acquire) == generation;
        let held = start > BUSY && address.checked_sub(start).is_some_and(|offset| offset < len);
        (whole && held).then_some(MappedAddressRange { start, len })
    }
}
