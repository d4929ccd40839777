//! Fixture of the tests: a card, memory of each function, the PF driver, and a clock moved by hand. Without a
//! forwarding plane, a packet of VF n goes to the same queue of VF n ^ 1. A VF may map its doorbells (`pages`).

use super::pages::MappedVfPages;
use avf::control::{CardCommand, CardControl};
use avf::virtchnl::VfTrafficStatistics;
use avf_nic::{DescriptorOffloads, NextPacketResult, Nic, RxDescriptorFields, StagedPacket};
use core::time::Duration;
use driver::avf::pf::AvfPf;
use driver::avf::vf::AvfDriver;
use driver::{DmaAllocation, DmaHal, Hal, OutOfDmaMemory};
use pcie::pages::GuestRegisterPages;
use pcie::{Bus, DmaFault, Function, Iova};
use plane::frame::HEADROOM;
use plane::pacing::TransmitPacing;
use plane::switch::{PortMirrorRules, StormState, SwitchTables};
use plane::uplink::{UplinkMode, UplinkWire};
use plane::{ForwardingPlane, PortCounters};
use std::collections::{BTreeMap, VecDeque};
use units::{MacAddress, Time};

/// Size of a function's memory in bytes.
pub(crate) const MEMORY: usize = 5 << 20;

#[derive(Default)]
pub(crate) struct TestBus {
    memory: BTreeMap<Function, Vec<u8>>,
    used: BTreeMap<Function, usize>,
    /// Interrupts that the card has sent, by function and vector.
    pub(crate) interrupts: Vec<(Function, u16)>,
}

impl TestBus {
    pub(crate) fn of(&mut self, function: Function) -> &mut Vec<u8> {
        self.memory.entry(function).or_insert_with(|| vec![0; MEMORY])
    }

    /// Frees all memory that a function's driver has allocated.
    pub(crate) fn forget(&mut self, function: Function) {
        self.used.remove(&function);
    }

    fn range(&mut self, function: Function, iova: Iova, length: usize) -> Result<&mut [u8], DmaFault> {
        let start = usize::try_from(iova).unwrap_or(usize::MAX);
        let end = start.saturating_add(length);
        self.of(function).get_mut(start..end).ok_or(DmaFault { function, iova })
    }
}

impl Bus for TestBus {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        into.copy_from_slice(self.range(function, iova, into.len())?);
        Ok(())
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        self.range(function, iova, from.len())?.copy_from_slice(from);
        Ok(())
    }

    fn msix(&mut self, function: Function, vector: u16) {
        self.interrupts.push((function, vector));
    }
}

pub(crate) struct CardFixture {
    pub(crate) card: Nic,
    pub(crate) memories: TestBus,
    pub(crate) pf: Option<AvfPf>,
    pub(crate) now: Time,
    /// Packets that VFs sent without a plane, with VF and offload requests.
    pub(crate) packets: Vec<(u8, DescriptorOffloads, Vec<u8>)>,
    /// Forwarding plane. Without one each packet of VF n goes to VF n ^ 1.
    pub(crate) plane: Option<Box<ForwardingPlane<64>>>,
    /// Mirror rules of the port, which the plane carries out.
    pub(crate) mirrors: PortMirrorRules,
    /// Uplink of the forwarding plane.
    pub(crate) cable: InMemoryUplinkWire,
    /// Number of runs of the PF driver so far.
    pub(crate) visits: u64,
    /// Mapped pages of the VFs that map their doorbells.
    pub(crate) mapped: BTreeMap<u8, MappedVfPages>,
}

/// Uplink in memory: a list of frames that the card has sent, and a queue of frames that the card receives.
#[derive(Default)]
pub(crate) struct InMemoryUplinkWire(pub(crate) Vec<Vec<u8>>, pub(crate) VecDeque<Vec<u8>>);

impl UplinkWire for InMemoryUplinkWire {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        self.0.push(frame.to_vec());
        true
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        let frame = self.1.pop_front()?;
        let length = frame.len().min(into.len());
        into[..length].copy_from_slice(&frame[..length]);
        Some(length)
    }
}

impl CardFixture {
    /// Creates a card with `vfs` VFs, a PF driver and a link of 25 Gb/s.
    pub(crate) fn new(vfs: u8) -> Self {
        let card = Nic::new(vfs);
        let mut world = Self {
            card,
            memories: TestBus::default(),
            pf: None,
            now: Time::ZERO,
            packets: Vec::new(),
            plane: None,
            mirrors: PortMirrorRules::NONE,
            cable: InMemoryUplinkWire::default(),
            visits: 0,
            mapped: BTreeMap::new(),
        };
        (0..vfs).for_each(|vf| world.card.set_bus_master(vf, true));
        let mut pf = AvfPf::probe(&mut world.side(Function::Pf), vfs).unwrap();
        pf.set_link(&mut world.side(Function::Pf), Some(25_000));
        world.pf = Some(pf);
        world
    }

    /// Adds a forwarding plane, through which the card then moves frames.
    pub(crate) fn across_a_plane(mut self) -> Self {
        let counters = [PortCounters::default(); 64];
        let mut plane = ForwardingPlane::new(
            SwitchTables::closed(0),
            TransmitPacing::new(None),
            StormState::default(),
            counters,
        );
        plane.uplink = UplinkMode { link: true, receives: true, ..UplinkMode::default() };
        self.plane = Some(Box::new(plane));
        self
    }

    /// Returns access to the registers and memory of a function, for the function's driver.
    pub(crate) fn side(&mut self, function: Function) -> TestPciFunction<'_> {
        TestPciFunction { world: self, function }
    }

    pub(crate) fn vf(&mut self, vf: u8) -> TestPciFunction<'_> {
        self.side(Function::Vf(vf))
    }

    /// Probes and starts the driver of VF `vf`, whose address is [`mac`]`(vf)`.
    pub(crate) fn start(&mut self, vf: u8) -> AvfDriver {
        let mut driver = AvfDriver::probe(&mut self.vf(vf), mac(vf)).unwrap();
        driver.start(&mut self.vf(vf)).unwrap();
        driver
    }

    pub(crate) fn with_pf<R>(&mut self, act: impl FnOnce(&mut AvfPf, &mut TestPciFunction<'_>) -> R) -> R {
        let mut pf = self.pf.take().unwrap();
        let answer = act(&mut pf, &mut self.side(Function::Pf));
        self.pf = Some(pf);
        answer
    }

    /// Runs a round of the port: polls messages and interrupts, runs the PF driver, and moves frames.
    pub(crate) fn round(&mut self) {
        self.read_doorbells();
        self.card.poll(self.now, &mut self.memories);
        if self.pf.is_some() {
            self.visits += 1;
            self.with_pf(|pf, side| pf.visit(side));
        }
        self.move_frames();
        self.card.poll(self.now, &mut self.memories);
        self.publish_registers();
    }

    fn move_frames(&mut self) {
        if let Some(plane) = &mut self.plane {
            self.card.apply_policy(plane, &self.mirrors);
            plane.now = self.now;
            while self.card.arrive(plane, 16, &mut self.memories, &mut self.cable) {}
            while self.card.visit_ready(plane, 16, &mut self.memories, &mut self.cable) {}
            return;
        }
        let mut bytes = StagedPacket::default();
        for vf in 0..8 {
            for queue in 0..16 {
                for _ in 0..64 {
                    match self.card.transmit(vf, queue, &mut bytes, &mut self.memories) {
                        NextPacketResult::Nothing | NextPacketResult::Empty => break,
                        NextPacketResult::Dropped(_) => {}
                        NextPacketResult::Packet(packet) => {
                            let arrival = RxDescriptorFields::default();
                            let next = vf ^ 1;
                            let bytes = &bytes[HEADROOM..];
                            let _ = self.card.receive(next, queue, bytes, &arrival, &mut self.memories);
                            self.packets.push((vf, packet, bytes.to_vec()));
                        }
                    }
                }
            }
        }
    }
}

/// Access of a function's driver to its registers and memory.
pub(crate) struct TestPciFunction<'a> {
    pub(crate) world: &'a mut CardFixture,
    pub(crate) function: Function,
}

impl Hal for TestPciFunction<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        match self.function {
            Function::Pf => self.world.card.pf_read(offset),
            Function::Vf(vf) => match self.world.page_of(vf, offset) {
                Some(pages) => pages.load(offset),
                None => self.world.access(|card| card.read(vf, offset)),
            },
        }
    }

    fn write(&mut self, offset: u32, value: u32) {
        match self.function {
            Function::Pf => self.world.card.pf_write(offset, value, &mut self.world.memories),
            Function::Vf(vf) => match self.world.page_of(vf, offset) {
                Some(pages) => pages.store(offset, value),
                None => self.world.access(|card| card.write(vf, offset, value)),
            },
        }
    }

    fn now(&self) -> Time {
        self.world.now
    }

    fn wait(&mut self, time: Duration) {
        self.world.now = self.world.now + time;
        self.world.round();
    }
}

impl DmaHal for TestPciFunction<'_> {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        let used = self.world.memories.used.entry(self.function).or_default();
        let start = used.next_multiple_of(align);
        if start + length > MEMORY {
            return Err(OutOfDmaMemory(length));
        }
        *used = start + length;
        self.world.memories.of(self.function)[start..start + length].fill(0);
        Ok(DmaAllocation { iova: start as u64, length })
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        let memory = &self.world.memories.memory[&self.function];
        into.copy_from_slice(&memory[iova as usize..][..into.len()]);
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        self.world.memories.of(self.function)[iova as usize..][..from.len()].copy_from_slice(from);
    }
}

impl CardControl for TestPciFunction<'_> {
    fn order(&mut self, vf: u8, order: CardCommand<'_>) {
        self.world.card.order(vf, order);
    }

    fn statistics(&mut self, vf: u8) -> VfTrafficStatistics {
        self.world.card.statistics(vf)
    }
}

pub(crate) fn mac(n: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, n])
}
