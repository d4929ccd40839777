//! What lies between functions, guests and the machine: memory, the IOMMU that says which of it a function reaches, the
//! remapping of interrupts, and event channels. Left out: what walking its tables costs.
//!
//! Xen 3.4 has one interrupt table for all processors: 191 vectors. Sixty VFs take 180 of them, and the PFs of ten
//! ports, their service domain's disk and its console do not fit the rest; so every processor has a table of its
//! own here, as in Xen 4.

use super::invariant::Broken;
use super::memory::{GUEST_MEMORY, Region};
use super::vectors;
use hypervisor::domain::DomainId;
use hypervisor::evtchn::Channels;
use hypervisor::iommu::{Access, Iommu, Rights, Tlb};
use hypervisor::memory::HostMemory;
use hypervisor::remap::{Interrupt, Owner, PhysicalVector, Remapper, VectorSpace};
use pcie::msix::Message;
use pcie::{Iova, Rid};
use std::collections::BTreeMap;
use std::ops::Range;

/// Sets and ways of the IOTLB. Its size is not published; nothing that is measured hangs on it or on the size of
/// pages (2 MiB here, where Xen 3.4 has 4 KiB), since neither a hit nor a walk is charged to anybody.
const IOTLB: (usize, usize) = (64, 4);

/// A function as it is assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Assigned {
    /// Where it is on the host's bus.
    pub(crate) rid: Rid,
    /// The memory of the guest that has it.
    pub(crate) region: Region,
}

/// A memory request went nowhere.
pub(crate) struct Refused;

/// Memory and IOMMU of the machine.
#[derive(Debug)]
pub(crate) struct Chipset {
    pub(crate) memory: HostMemory,
    pub(crate) iommu: Iommu,
    /// Requests that the IOMMU let through to memory that is not the function's guest's.
    pub(crate) escaped: u64,
    pub(crate) remapper: Remapper,
    /// The event channels of all domains that have any.
    pub(crate) channels: Channels,
    /// The domain that each physical vector came for first.
    came_for: BTreeMap<PhysicalVector, DomainId>,
    /// The first rule that was broken.
    pub(crate) broken: Option<Broken>,
}

impl Chipset {
    /// Memory for so many guests and ports of the service domain, and no function that reaches it.
    pub(crate) fn new(guests: usize, ports: u8, cpus: u16) -> Self {
        Self {
            memory: HostMemory::new((guests + usize::from(ports)) * GUEST_MEMORY as usize),
            iommu: Iommu::new(Tlb::new(IOTLB.0, IOTLB.1)),
            escaped: 0,
            channels: Channels::new(),
            remapper: Remapper::new(VectorSpace::per_cpu(cpus)),
            came_for: BTreeMap::new(),
            broken: None,
        }
    }

    /// Gives a function to a domain: it reaches this part of the domain's memory, and parts of other functions that the
    /// domain has, at the addresses that the domain knows, and
    /// what its first `vectors` vectors send leads to physical vectors that are the domain's alone. Answers those messages.
    pub(crate) fn assign(
        &mut self,
        assigned: Assigned,
        domain: DomainId,
        part: Range<u64>,
        vectors: u16,
    ) -> Result<Vec<Message>, String> {
        let Assigned { rid, region } = assigned;
        self.iommu.attach(rid, domain);
        let tables = self.iommu.domain(domain);
        let length = part.end - part.start;
        tables
            .map_range(part.start, region.host + part.start, length, Rights::ALL)
            .map_err(|error| error.to_string())?;
        let mut program = |entry| {
            let owner = Owner { domain, rid, entry };
            self.remapper.program(owner, vectors::message(entry)).map_err(|refused| refused.to_string())
        };
        (0..vectors).map(&mut program).collect()
    }

    /// A message of a function arrives: whose physical vector it leads to. A blocked one is counted.
    pub(crate) fn arrive(&mut self, rid: Rid, message: Message) -> Option<Interrupt> {
        let interrupt = self.remapper.arrive(rid, message).ok()?;
        let first = *self.came_for.entry(interrupt.vector).or_insert(interrupt.owner.domain);
        if first != interrupt.owner.domain {
            self.broken.get_or_insert(Broken::SharedVector(interrupt.vector));
        }
        Some(interrupt)
    }

    /// A function reads memory.
    pub(crate) fn dma_read(
        &mut self,
        function: Assigned,
        iova: Iova,
        into: &mut [u8],
    ) -> Result<(), Refused> {
        let (mut at, mut rest) = (iova, into);
        while !rest.is_empty() {
            let (host, room) = self.translate(function, at, rest.len(), Access::Read)?;
            let (part, later) = rest.split_at_mut(room);
            self.memory.read(host, part).map_err(|_| Refused)?;
            (at, rest) = (at.wrapping_add(room as u64), later);
        }
        Ok(())
    }

    /// A function writes memory.
    pub(crate) fn dma_write(&mut self, function: Assigned, iova: Iova, from: &[u8]) -> Result<(), Refused> {
        let (mut at, mut rest) = (iova, from);
        while !rest.is_empty() {
            let (host, room) = self.translate(function, at, rest.len(), Access::Write)?;
            let (part, later) = rest.split_at(room);
            self.memory.write(host, part).map_err(|_| Refused)?;
            (at, rest) = (at.wrapping_add(room as u64), later);
        }
        Ok(())
    }

    /// Where a request goes, and how many of its bytes go there. That this is the guest's own is looked at
    /// once more, without the tables.
    fn translate(
        &mut self,
        function: Assigned,
        iova: Iova,
        length: usize,
        access: Access,
    ) -> Result<(u64, usize), Refused> {
        let found = self.iommu.translate(function.rid, iova, access).map_err(|_| Refused)?;
        let room = found.room.min(length as u64) as usize;
        if !function.region.holds(found.address, room) {
            self.escaped += 1;
            return Err(Refused);
        }
        Ok((found.address, room))
    }
}
