//! Access of the PF driver to an AVF card: the PF's registers, memory for its admin queues, and orders to the card.
//! No guest can reach this memory.

use crate::port::engine::bus::GuestBus;
use avf::control::{CardCommand, CardControl};
use avf::ids::MAX_VFS;
use avf::pf_register::{VFSWR, VPGEN_VFRTRIG};
use avf::virtchnl::VfTrafficStatistics;
use avf_nic::Nic;
use driver::{DmaAllocation, DmaHal, Hal, OutOfDmaMemory};
use i82576::{MacAddress, Time};
use pcie::{Bus, DmaFault, Function, Iova, VfIndex, VfSet};
use plane::PortIndex;
use plane::guard::GuardedPlane;
use std::time::Duration;
use units::WorkCost;

/// Bytes of the PF driver's DMA memory: two queues of 32 descriptors with a buffer of 4 KB each.
const MEMORY: usize = 2 * (1 + 32) * 4096;

/// DMA memory of the AVF PF driver, for its admin queues.
#[derive(Debug)]
pub(in crate::port::engine) struct PfDmaMemory {
    memory: Box<[u8]>,
    used: usize,
    /// True if the PF driver has changed state of the card on which the switch's tables and rates depend.
    pub(in crate::port::engine) changed: bool,
    /// VFs whose requests or resets have caused such a change.
    pub(super) changed_by: VfSet,
}

impl PfDmaMemory {
    pub(super) fn new() -> Self {
        Self { memory: vec![0; MEMORY].into(), used: 0, changed: true, changed_by: VfSet::NONE }
    }

    /// Returns the guests' bus, extended by the memory of the PF driver.
    pub(in crate::port::engine) fn bus<'a>(&'a mut self, guests: &'a mut GuestBus) -> PfAndGuestBus<'a> {
        PfAndGuestBus { memory: &mut self.memory, guests }
    }
}

/// Bus through which an AVF card accesses guests' memory and the PF driver's memory.
pub(in crate::port::engine) struct PfAndGuestBus<'a> {
    memory: &'a mut [u8],
    guests: &'a mut GuestBus,
}

/// Returns the range of a DMA access in the PF driver's memory, or a fault if it lies outside.
fn range_of(memory: &[u8], iova: Iova, length: usize) -> Result<std::ops::Range<usize>, DmaFault> {
    let start = usize::try_from(iova).unwrap_or(usize::MAX);
    let range = start..start.saturating_add(length);
    if range.end <= memory.len() { Ok(range) } else { Err(DmaFault { function: Function::Pf, iova }) }
}

impl Bus for PfAndGuestBus<'_> {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        if function != Function::Pf {
            return self.guests.dma_read(function, iova, into);
        }
        into.copy_from_slice(&self.memory[range_of(self.memory, iova, into.len())?]);
        Ok(())
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        if function != Function::Pf {
            return self.guests.dma_write(function, iova, from);
        }
        let range = range_of(self.memory, iova, from.len())?;
        self.memory[range].copy_from_slice(from);
        Ok(())
    }

    fn msix(&mut self, function: Function, vector: u16) {
        self.guests.msix(function, vector);
    }
}

/// Access of the PF driver to an AVF card and to its own DMA memory.
pub(super) struct AvfPfHal<'a> {
    pub(super) card: &'a mut Nic,
    pub(super) pf_memory: &'a mut PfDmaMemory,
    pub(super) guests: &'a mut GuestBus,
    /// Guards of the port's switch.
    pub(super) guards: &'a mut dyn GuardedPlane,
    pub(super) now: Time,
    /// True if the PF driver works for requests and resets of VFs, which are charged for it.
    pub(super) charges: bool,
}

impl AvfPfHal<'_> {
    /// Records work for a VF: its cost, and true if the switch's tables depend on it.
    fn note_work(&mut self, vf: u8, cost: WorkCost, changes: bool) {
        self.pf_memory.changed |= changes;
        if self.charges
            && let Some(vf) = VfIndex::new(vf)
        {
            self.card.owe(vf, cost);
            if changes {
                self.pf_memory.changed_by = self.pf_memory.changed_by.or([vf].into_iter().collect());
            }
        }
    }
}

/// Offsets of the registers that reset VFs, which clears the VFs' filters.
const RESETS: std::ops::Range<u32> = VPGEN_VFRTRIG..VPGEN_VFRTRIG + 4 * MAX_VFS as u32;

impl Hal for AvfPfHal<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        self.card.pf_read(offset)
    }

    fn write(&mut self, offset: u32, value: u32) {
        if RESETS.contains(&offset) && value & VFSWR != 0 {
            self.note_work(((offset - RESETS.start) / 4) as u8, WorkCost::SETUP, true);
        }
        self.card.pf_write(offset, value, &mut self.pf_memory.bus(self.guests));
    }

    fn now(&self) -> Time {
        self.now
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    fn may_have_address(&mut self, vf: u8, address: MacAddress) -> bool {
        self.note_work(vf, WorkCost::ACCESS, false);
        self.guards.may_request(PortIndex::of_field(vf.into()), address)
    }

    fn revoke_address(&mut self, vf: u8, address: MacAddress) -> bool {
        self.guards.revoke_address(PortIndex::of_field(vf.into()), address)
    }
}

/// Implements the PF driver's DMA memory. An access outside of it is a bug of the driver: it reads zeros and writes
/// nothing.
impl DmaHal for AvfPfHal<'_> {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        let start = self.pf_memory.used.next_multiple_of(align);
        let range =
            range_of(&self.pf_memory.memory, start as Iova, length).map_err(|_| OutOfDmaMemory(length))?;
        self.pf_memory.used = range.end;
        Ok(DmaAllocation { iova: start as Iova, length })
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        match range_of(&self.pf_memory.memory, iova, into.len()) {
            Ok(range) => into.copy_from_slice(&self.pf_memory.memory[range]),
            Err(_) => into.fill(0),
        }
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        if let Ok(range) = range_of(&self.pf_memory.memory, iova, from.len()) {
            self.pf_memory.memory[range].copy_from_slice(from);
        }
    }
}

impl CardControl for AvfPfHal<'_> {
    fn order(&mut self, vf: u8, order: CardCommand<'_>) {
        self.note_work(vf, WorkCost::ACCESS, order.changes_forwarding());
        self.card.order(vf, order);
    }

    fn statistics(&mut self, vf: u8) -> VfTrafficStatistics {
        self.card.statistics(vf)
    }

    fn charge_comparisons(&mut self, vf: u8, count: usize) {
        self.note_work(vf, WorkCost::of_comparisons(count), false);
    }
}
