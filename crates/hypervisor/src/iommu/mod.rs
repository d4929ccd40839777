//! The IOMMU: what a function addresses is translated by its domain's page tables, and nothing else is
//! reached (Intel's VT-d specification, chapters 3, 6 and 7).
//!
//! - [`context`]: which domain a routing id belongs to;
//! - [`table`]: page tables of four levels, with pages of 4 KiB and 2 MiB;
//! - [`tlb`]: the IOTLB, which remembers translations until told to forget them;
//! - [`fault`]: what was blocked, in a log of bounded length.
//!
//! As in hardware, unmapping alone does not stop a device: what the IOTLB remembers goes on working until it
//! is invalidated. Left out: caches of the walk itself, first-stage tables, page requests, queued invalidation
//! and what any of this costs.

pub mod context;
pub mod fault;
pub mod table;
#[cfg(test)]
mod tests;
pub mod tlb;

pub use fault::{Fault, FaultLog, Reason};
pub use table::{MapError, PageTables, Rights, Size};
pub use tlb::{Counts, Tlb};

use crate::domain::DomainId;
use alloc::vec::Vec;
use context::Contexts;
use pcie::{Iova, Rid};

/// What a function wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read memory.
    Read,
    /// Write memory.
    Write,
}

/// A translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Translation {
    /// The host's address.
    pub address: u64,
    /// Bytes from there to the end of the page.
    pub room: u64,
    /// Table entries loaded; 0 if the IOTLB knew.
    pub loads: u8,
}

/// What it took to translate a range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effort {
    /// Translations.
    pub pages: u32,
    /// Of which the IOTLB did not know.
    pub misses: u32,
    /// Table entries loaded for those.
    pub loads: u32,
}

/// The IOMMU of a machine.
#[derive(Debug, Clone)]
pub struct Iommu {
    contexts: Contexts,
    tables: Vec<PageTables>,
    tlb: Tlb,
    faults: FaultLog,
}

impl Iommu {
    /// An IOMMU that blocks everything. `tlb` is its IOTLB.
    #[must_use]
    pub fn new(tlb: Tlb) -> Self {
        Self { contexts: Contexts::default(), tables: Vec::new(), tlb, faults: FaultLog::default() }
    }

    /// Assigns a function to a domain.
    pub fn attach(&mut self, rid: Rid, domain: DomainId) {
        self.contexts.set(rid, Some(domain));
        self.domain(domain);
    }

    /// Takes a function away: all that it does from now on is a fault.
    pub fn detach(&mut self, rid: Rid) {
        self.contexts.set(rid, None);
    }

    /// The domain of a function.
    #[must_use]
    pub fn owner(&self, rid: Rid) -> Option<DomainId> {
        self.contexts.get(rid)
    }

    /// The page tables of a domain, empty at first. After unmapping or taking rights away, invalidate.
    pub fn domain(&mut self, domain: DomainId) -> &mut PageTables {
        let at = domain.index();
        if self.tables.len() <= at {
            self.tables.resize_with(at + 1, PageTables::default);
        }
        &mut self.tables[at]
    }

    /// The IOTLB, to invalidate and to read its counts.
    pub fn tlb(&mut self) -> &mut Tlb {
        &mut self.tlb
    }

    /// Unmaps a page and forgets it at once: what is done before memory changes owner.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn unmap_and_flush(&mut self, domain: DomainId, iova: Iova, size: Size) -> Result<(), MapError> {
        self.domain(domain).unmap(iova, size)?;
        self.tlb.invalidate_page(domain, iova);
        Ok(())
    }

    /// What was blocked.
    pub fn faults(&mut self) -> &mut FaultLog {
        &mut self.faults
    }

    /// Translates one access, up to the end of its page.
    ///
    /// # Errors
    /// [`Fault`]: blocked and recorded.
    pub fn translate(&mut self, rid: Rid, iova: Iova, access: Access) -> Result<Translation, Fault> {
        let found = self.find(rid, iova, access);
        found.map_err(|reason| self.faults.record(Fault { rid, iova, access, reason }))
    }

    /// Translates `length` bytes from `iova` on; `visit` is given each piece: host address and bytes.
    ///
    /// # Errors
    /// [`Fault`]: blocked at that address and recorded; the pieces before it have been visited.
    pub fn translate_range(
        &mut self,
        rid: Rid,
        iova: Iova,
        length: usize,
        access: Access,
        mut visit: impl FnMut(u64, usize),
    ) -> Result<Effort, Fault> {
        let mut effort = Effort::default();
        let mut done = 0;
        while done < length {
            let at = iova.saturating_add(done as u64);
            let translation = self.translate(rid, at, access)?;
            let piece = translation.room.min((length - done) as u64) as usize;
            visit(translation.address, piece);
            effort.pages += 1;
            effort.misses += u32::from(translation.loads > 0);
            effort.loads += u32::from(translation.loads);
            done += piece;
        }
        Ok(effort)
    }

    fn find(&mut self, rid: Rid, iova: Iova, access: Access) -> Result<Translation, Reason> {
        let domain = self.contexts.get(rid).ok_or(Reason::UnknownFunction)?;
        if let Some(page) = self.tlb.lookup(domain, iova).filter(|page| page.rights.allow(access)) {
            self.tlb.count_hit();
            return Ok(page.translation(iova, 0));
        }
        self.tlb.count_miss();
        let tables = self.tables.get(domain.index()).ok_or(Reason::Unmapped)?;
        let (page, loads) = tables.walk(iova)?;
        if !page.rights.allow(access) {
            return Err(Reason::Rights);
        }
        self.tlb.fill(domain, iova, page);
        Ok(page.translation(iova, loads))
    }
}
