//! Fault log of the IOMMU: stores the first blocked requests and counts all, like fault recording registers (VT-d 7.3).
//! No fault interrupt is modelled.

use super::IommuAccessKind;
use alloc::vec::Vec;
use pcie::{Iova, Rid};

/// Maximum number of IOMMU faults stored until they are cleared. The bound keeps a flooding device from filling
/// memory.
pub const MAX_STORED: usize = 64;

/// Reason why the IOMMU blocked a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IommuFaultReason {
    /// The requesting PCI function has no domain.
    UnknownFunction,
    /// The DMA address exceeds 48 bits.
    Width,
    /// No page is mapped at the address.
    Unmapped,
    /// The page's rights forbid the requested access.
    Rights,
}

/// DMA request that the IOMMU blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the IOMMU blocked a DMA {access:?} by function {rid} at {iova:#x}: {reason:?}")]
pub struct IommuFault {
    /// Routing id of the PCI function that made the blocked request.
    pub rid: Rid,
    /// DMA address that the blocked request named.
    pub iova: Iova,
    /// Kind of the blocked DMA access: read or write.
    pub access: IommuAccessKind,
    /// Reason why the IOMMU blocked the request.
    pub reason: IommuFaultReason,
}

/// Log of the requests that the IOMMU blocked.
#[derive(Debug, Clone)]
pub struct IommuFaultLog {
    kept: Vec<IommuFault>,
    count: u64,
}

impl Default for IommuFaultLog {
    fn default() -> Self {
        Self { kept: Vec::with_capacity(MAX_STORED), count: 0 }
    }
}

impl IommuFaultLog {
    /// Returns the number of all IOMMU faults, stored or not.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the stored IOMMU faults, oldest first.
    #[must_use]
    pub fn kept(&self) -> &[IommuFault] {
        &self.kept
    }

    /// Clears the stored IOMMU faults, which makes room for new ones.
    pub fn clear(&mut self) {
        self.kept.clear();
    }

    /// Records a fault in the log and returns it.
    pub(super) fn record(&mut self, fault: IommuFault) -> IommuFault {
        self.count += 1;
        if self.kept.len() < MAX_STORED {
            self.kept.push(fault);
        }
        fault
    }
}
