//! The IOMMU: translates a PCI function's DMA addresses by its domain's page tables, and blocks all other
//! addresses (Intel VT-d specification, chapters 3, 6 and 7).
//!
//! - [`context`]: the domain of a routing id;
//! - [`table`]: page tables of four levels, with pages of 4 KiB and 2 MiB;
//! - [`tlb`]: the IOTLB, which caches translations until they are invalidated;
//! - [`fault`]: blocked requests, in a bounded log.
//!
//! As in hardware, unmapping alone does not stop a device: a cached translation works until the IOTLB is
//! invalidated. Paging-structure caches, first-stage tables, page requests and queued invalidation are not
//! modelled. The caller charges costs.

pub mod context;
pub mod fault;
pub mod table;
#[cfg(test)]
mod tests;
pub mod tlb;

pub use fault::{IommuFault, IommuFaultLog, IommuFaultReason};
pub use table::{DmaRights, IommuMapError, IommuPageSize, IommuPageTables};
pub use tlb::{Iotlb, IotlbCounts};

use crate::domain::DomainId;
use alloc::vec::Vec;
use context::IommuContextTables;
use pcie::{Iova, Rid};

/// Kind of access of a PCI function to memory by DMA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IommuAccessKind {
    /// Access: a read of memory by DMA.
    Read,
    /// Access: a write to memory by DMA.
    Write,
}

/// Host address that a DMA address translates to, and the work of translating it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DmaTranslation {
    /// Host physical address that the device address is translated to.
    pub address: u64,
    /// Bytes from the translated host address to the end of its page.
    pub room: u64,
    /// Page-table entries loaded for the translation; 0 on an IOTLB hit.
    pub loads: u8,
}

/// Work of translating an address range: translations, IOTLB misses and loads of page-table entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DmaTranslationWork {
    /// Pages of the range that were translated, by IOTLB hits and misses together.
    pub pages: u32,
    /// Translations of the range that missed the IOTLB.
    pub misses: u32,
    /// Page-table entries loaded on IOTLB misses.
    pub loads: u32,
}

/// IOMMU of a machine: contexts, page tables, IOTLB and fault log.
#[derive(Debug, Clone)]
pub struct Iommu {
    contexts: IommuContextTables,
    tables: Vec<IommuPageTables>,
    tlb: Iotlb,
    faults: IommuFaultLog,
}

impl Iommu {
    /// Creates an IOMMU that blocks every request, with `tlb` as its IOTLB.
    #[must_use]
    pub fn new(tlb: Iotlb) -> Self {
        Self {
            contexts: IommuContextTables::default(),
            tables: Vec::new(),
            tlb,
            faults: IommuFaultLog::default(),
        }
    }

    /// Assigns a PCI function to a domain.
    pub fn attach(&mut self, rid: Rid, domain: DomainId) {
        self.contexts.set(rid, Some(domain));
        self.domain(domain);
    }

    /// Detaches a PCI function from its domain: its further requests are faults.
    pub fn detach(&mut self, rid: Rid) {
        self.contexts.set(rid, None);
    }

    /// Returns the domain that a PCI function is assigned to.
    #[must_use]
    pub fn owner(&self, rid: Rid) -> Option<DomainId> {
        self.contexts.get(rid)
    }

    /// Returns the IOMMU page tables of a domain, initially empty. Invalidate the IOTLB after unmapping or
    /// removing rights.
    pub fn domain(&mut self, domain: DomainId) -> &mut IommuPageTables {
        let at = domain.index();
        if self.tables.len() <= at {
            self.tables.resize_with(at + 1, IommuPageTables::default);
        }
        &mut self.tables[at]
    }

    /// Returns the IOTLB, for invalidation and its counters.
    pub fn tlb(&mut self) -> &mut Iotlb {
        &mut self.tlb
    }

    /// Unmaps a page and invalidates its IOTLB entry, as required before the page's memory changes owner.
    ///
    /// # Errors
    /// [`IommuMapError`] if the page cannot be unmapped.
    pub fn unmap_and_flush(
        &mut self,
        domain: DomainId,
        iova: Iova,
        size: IommuPageSize,
    ) -> Result<(), IommuMapError> {
        self.domain(domain).unmap(iova, size)?;
        self.tlb.invalidate_page(domain, iova);
        Ok(())
    }

    /// Returns the log of requests that the IOMMU blocked.
    pub fn faults(&mut self) -> &mut IommuFaultLog {
        &mut self.faults
    }

    /// Translates the address of one DMA access, up to the end of its page.
    ///
    /// # Errors
    /// [`IommuFault`] if the request is blocked; it is recorded.
    pub fn translate(
        &mut self,
        rid: Rid,
        iova: Iova,
        access: IommuAccessKind,
    ) -> Result<DmaTranslation, IommuFault> {
        let found = self.find(rid, iova, access);
        found.map_err(|reason| self.faults.record(IommuFault { rid, iova, access, reason }))
    }

    /// Translates `length` bytes of DMA from `iova`. Calls `visit` with host address and length of each part,
    /// which lies in one page.
    ///
    /// # Errors
    /// [`IommuFault`] if a piece is blocked; it is recorded, and earlier pieces have been visited.
    pub fn translate_range(
        &mut self,
        rid: Rid,
        iova: Iova,
        length: usize,
        access: IommuAccessKind,
        mut visit: impl FnMut(u64, usize),
    ) -> Result<DmaTranslationWork, IommuFault> {
        let mut effort = DmaTranslationWork::default();
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

    fn find(
        &mut self,
        rid: Rid,
        iova: Iova,
        access: IommuAccessKind,
    ) -> Result<DmaTranslation, IommuFaultReason> {
        let domain = self.contexts.get(rid).ok_or(IommuFaultReason::UnknownFunction)?;
        if let Some(page) = self.tlb.lookup(domain, iova).filter(|page| page.rights.allow(access)) {
            self.tlb.count_hit();
            return Ok(page.translation(iova, 0));
        }
        self.tlb.count_miss();
        let tables = self.tables.get(domain.index()).ok_or(IommuFaultReason::Unmapped)?;
        let (page, loads) = tables.walk(iova)?;
        if !page.rights.allow(access) {
            return Err(IommuFaultReason::Rights);
        }
        self.tlb.fill(domain, iova, page);
        Ok(page.translation(iova, loads))
    }
}
