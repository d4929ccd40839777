//! Chipset of the modelled machine: memory behind an IOMMU, interrupt remapping, and event channels. Table walks are
//! not charged.
//!
//! Xen 3.4 has one interrupt table for all processors: 191 vectors. Sixty VFs take 180 of them, which leaves
//! too few for the PFs of ten ports, the service domain's disk and its console. Therefore every processor has
//! its own table here, as in Xen 4.

use super::invariant::InvariantViolation;
use super::memory::{DomainMemoryRegion, GUEST_MEMORY};
use super::vectors;
use hypervisor::domain::DomainId;
use hypervisor::evtchn::EventChannels;
use hypervisor::iommu::{DmaRights, Iommu, IommuAccessKind, Iotlb};
use hypervisor::memory::HostMemory;
use hypervisor::remap::{
    InterruptRemapper, PhysicalVector, PhysicalVectorSpace, RemappedInterrupt, VectorOwner,
};
use pcie::msix::InterruptMessage;
use pcie::{Iova, Rid};
use std::collections::BTreeMap;
use std::ops::Range;

/// Sets and ways of the IOTLB. Its real size is not published. No result depends on it or on the page size (2 MiB here,
/// 4 KiB in Xen 3.4), since neither hits nor walks are charged.
const IOTLB: (usize, usize) = (64, 4);

/// PCI function that is assigned to a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AssignedFunction {
    /// Routing id (bus, device and function number) of the PCI function on the host's bus.
    pub(crate) rid: Rid,
    /// Memory of the guest that owns the function.
    pub(crate) region: DomainMemoryRegion,
}

/// Error: the IOMMU blocked a DMA request of a PCI function.
pub(crate) struct DmaBlocked;

/// Memory, IOMMU and interrupt hardware of the modelled machine.
#[derive(Debug)]
pub(crate) struct Chipset {
    pub(crate) memory: HostMemory,
    pub(crate) iommu: Iommu,
    /// Number of DMA requests that the IOMMU allowed outside the memory of the function's domain.
    pub(crate) escaped: u64,
    pub(crate) remapper: InterruptRemapper,
    /// Event channels of all domains of the machine.
    pub(crate) channels: EventChannels,
    /// First domain that received each physical interrupt vector.
    first_owners: BTreeMap<PhysicalVector, DomainId>,
    /// First invariant that the chipset found violated.
    pub(crate) broken: Option<InvariantViolation>,
}

impl Chipset {
    /// Creates a chipset with memory for `guests` guests and for `ports` ports of the service domain, and with no PCI
    /// function assigned.
    pub(crate) fn new(guests: usize, ports: u8, cpus: u16) -> Self {
        Self {
            memory: HostMemory::new((guests + usize::from(ports)) * GUEST_MEMORY as usize),
            iommu: Iommu::new(Iotlb::new(IOTLB.0, IOTLB.1)),
            escaped: 0,
            channels: EventChannels::new(),
            remapper: InterruptRemapper::new(PhysicalVectorSpace::per_cpu(cpus)),
            first_owners: BTreeMap::new(),
            broken: None,
        }
    }

    /// Assigns a PCI function to a domain. The function reaches `part` of the domain's memory and the parts of the
    /// domain's other functions, at the domain's addresses. Messages of its first `vectors` vectors are remapped to
    /// physical vectors of the domain. Returns these messages.
    pub(crate) fn assign(
        &mut self,
        assigned: AssignedFunction,
        domain: DomainId,
        part: Range<u64>,
        vectors: u16,
    ) -> Result<Vec<InterruptMessage>, String> {
        let AssignedFunction { rid, region } = assigned;
        self.iommu.attach(rid, domain);
        let tables = self.iommu.domain(domain);
        let length = part.end - part.start;
        tables
            .map_range(part.start, region.host + part.start, length, DmaRights::ALL)
            .map_err(|error| error.to_string())?;
        let mut program = |entry| {
            let owner = VectorOwner { domain, rid, entry };
            self.remapper.program(owner, vectors::msix_message(entry)).map_err(|refused| refused.to_string())
        };
        (0..vectors).map(&mut program).collect()
    }

    /// Delivers a PCI function's interrupt message. Returns the interrupt with its owner; a blocked message is counted.
    pub(crate) fn deliver_message(
        &mut self,
        rid: Rid,
        message: InterruptMessage,
    ) -> Option<RemappedInterrupt> {
        let interrupt = self.remapper.deliver(rid, message).ok()?;
        let first = *self.first_owners.entry(interrupt.vector).or_insert(interrupt.owner.domain);
        if first != interrupt.owner.domain {
            self.broken.get_or_insert(InvariantViolation::SharedVector(interrupt.vector));
        }
        Some(interrupt)
    }

    /// Reads memory by DMA for a PCI function.
    pub(crate) fn dma_read(
        &mut self,
        function: AssignedFunction,
        iova: Iova,
        into: &mut [u8],
    ) -> Result<(), DmaBlocked> {
        let (mut at, mut rest) = (iova, into);
        while !rest.is_empty() {
            let (host, room) = self.translate(function, at, rest.len(), IommuAccessKind::Read)?;
            let (part, later) = rest.split_at_mut(room);
            self.memory.read(host, part).map_err(|_| DmaBlocked)?;
            (at, rest) = (at.wrapping_add(room as u64), later);
        }
        Ok(())
    }

    /// Writes descriptors or a modelled frame to memory by DMA for a PCI function.
    pub(crate) fn dma_write(
        &mut self,
        function: AssignedFunction,
        iova: Iova,
        from: &[u8],
    ) -> Result<(), DmaBlocked> {
        let (mut at, mut rest) = (iova, from);
        while !rest.is_empty() {
            let (host, room) = self.translate(function, at, rest.len(), IommuAccessKind::Write)?;
            let (part, later) = rest.split_at(room);
            self.memory.write_from_card(host, part).map_err(|_| DmaBlocked)?;
            (at, rest) = (at.wrapping_add(room as u64), later);
        }
        Ok(())
    }

    /// Translates a PCI function's DMA request by the IOMMU. Returns the host address and the bytes up to the end of
    /// the page. Checks without the tables that the result is the guest's own memory.
    fn translate(
        &mut self,
        function: AssignedFunction,
        iova: Iova,
        length: usize,
        access: IommuAccessKind,
    ) -> Result<(u64, usize), DmaBlocked> {
        let found = self.iommu.translate(function.rid, iova, access).map_err(|_| DmaBlocked)?;
        let room = found.room.min(length as u64) as usize;
        if !function.region.holds(found.address, room) {
            self.escaped += 1;
            return Err(DmaBlocked);
        }
        Ok((found.address, room))
    }
}
