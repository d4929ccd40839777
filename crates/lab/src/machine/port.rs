//! A card with its PF driver and the wire that feeds it. Frames reach the card when somebody might notice: when
//! a guest looks, when a throttled interrupt is due, and when the next frame would interrupt. Left out: what
//! happens to the interrupts.

use super::bus::{Memory, PortBus};
use super::wire::{Line, Traffic};
use driver::pf::{Pf, VfPolicy};
use driver::vf::Vf;
use driver::{DmaHal, DmaRegion, Hal, hal::OutOfDmaMemory};
use i82576::{MacAddress, Time, VfIndex};
use iovm::{Hierarchy, Manager, Owner};
use nic::{Budget, Nic};
use pcie::{ConfigAccess, Function, Rid};
use sim::Instant;
use std::time::Duration;

/// One port.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) nic: Nic,
    pub(super) pf: Pf,
    pub(super) line: Line,
    pub(super) bus: PortBus,
    /// VFs, a bit each, with a receive interrupt to come that only waits for its time or its unmasking.
    waiting: u8,
}

/// The card's clock counts nanoseconds, and is never ahead of the world's.
pub(super) fn card_time(now: Instant) -> Time {
    Time::from_nanos(now.nanos())
}

impl Port {
    /// A port with `vfs` VFs whose drivers are probed and started, and a client for each.
    pub(super) fn new(
        number: u8,
        vfs: u8,
        traffic: Traffic,
        config: &driver::vf::Config,
    ) -> Result<(Self, Vec<Vf>), String> {
        let mut nic = Nic::new(nic::Config { mac: MacAddress([0x02, 0xaa, number, 0, 0, 0]), iov: true });
        let command = pcie::config::offset::COMMAND_MEMORY | pcie::config::offset::COMMAND_BUS_MASTER;
        nic.config_write(Function::Pf, pcie::config::offset::COMMAND, 2, command.into());
        nic.set_link(true);
        let pf = bring_up(&mut nic, number, vfs)?;
        let mut bus = PortBus::default();
        bus.memory.resize_with(usize::from(vfs), Memory::default);
        let line = Line::new(traffic, &[]);
        let mut port = Self { nic, pf, line, bus, waiting: 0 };
        let drivers = (0..vfs).map(|n| port.start_driver(n, config)).collect::<Result<Vec<_>, _>>()?;
        let guests: Vec<_> = drivers.iter().map(Vf::mac).collect();
        port.line = Line::new(traffic, &guests);
        Ok((port, drivers))
    }

    fn start_driver(&mut self, n: u8, config: &driver::vf::Config) -> Result<Vf, String> {
        let mut hal = BootHal { port: self, function: Function::Vf(n), now: Time::ZERO };
        let mut vf = Vf::probe(&mut hal, config).map_err(|error| error.to_string())?;
        vf.start(&mut hal).map_err(|error| error.to_string())?;
        Ok(vf)
    }

    /// Lets everything happen that happens up to `now`; answers when to come again at the latest. Interrupts are
    /// in the bus afterwards.
    pub(super) fn sync(&mut self, now: Instant) -> Option<Instant> {
        self.line.advance(now);
        let mut poll = self.nic.poll(card_time(now), Budget::default(), &mut self.bus, &mut self.line);
        while poll.more {
            poll = self.nic.poll(card_time(now), Budget::default(), &mut self.bus, &mut self.line);
        }
        self.waiting |= self.line.delivered;
        for (vf, vector) in &self.bus.sent {
            if *vector == driver::vf::RECEIVE_VECTOR {
                self.waiting &= !(1 << vf);
            }
        }
        let all = (1u16 << self.bus.memory.len()) - 1;
        let arrival = self.line.next_arrival().filter(|_| u16::from(self.waiting) & all != all);
        let deadline = poll.deadline.map(|at| Instant::from_nanos(at.as_nanos()));
        [arrival, deadline].into_iter().flatten().min()
    }
}

/// The card with VFs, each assigned and allowed to start.
fn bring_up(nic: &mut Nic, number: u8, vfs: u8) -> Result<Pf, String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let mut pf = Pf::probe(&mut PfHal(nic)).map_err(|e| told(&e))?;
    let mut manager = Manager::discover(&mut Card(nic), Rid(0x0100)).map_err(|e| told(&e))?;
    manager.enable(&mut Card(nic), vfs.into(), Hierarchy::Ari).map_err(|e| told(&e))?;
    for vf in VfIndex::all().take(vfs.into()) {
        let mac = Some(MacAddress([0x02, 0xbb, number, 0, 0, vf.get()]));
        let policy = VfPolicy { mac, ..VfPolicy::default() };
        pf.set_policy(&mut PfHal(nic), vf, policy).map_err(|e| told(&e))?;
        manager.assign(&mut Card(nic), vf, Owner(vf.get().into())).map_err(|e| told(&e))?;
        iovm::Device::set_bus_master(&mut Card(nic), Function::Vf(vf.get()), true);
    }
    pf.enable_vfs(&mut PfHal(nic), vfs).map_err(|e| told(&e))?;
    Ok(pf)
}

/// The PF driver's registers, before the clock runs.
struct PfHal<'a>(&'a mut Nic);

impl Hal for PfHal<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        self.0.read(Function::Pf, offset, Time::ZERO)
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.0.write(Function::Pf, offset, value, Time::ZERO);
    }

    fn now(&self) -> Time {
        Time::ZERO
    }

    fn wait(&mut self, _time: Duration) {}
}

struct Card<'a>(&'a mut Nic);

impl ConfigAccess for Card<'_> {
    fn config_read(&mut self, function: Function, offset: u16, size: u8) -> u32 {
        self.0.config_read(function, offset, size)
    }

    fn config_write(&mut self, function: Function, offset: u16, size: u8, value: u32) {
        self.0.config_write(function, offset, size, value);
    }
}

impl iovm::Device for Card<'_> {}

/// A VF's hardware while its driver starts: nothing is charged, and the PF driver answers at once.
struct BootHal<'a> {
    port: &'a mut Port,
    function: Function,
    now: Time,
}

impl BootHal<'_> {
    fn memory(&mut self) -> &mut Memory {
        let Function::Vf(n) = self.function else { unreachable!("only VFs boot this way") };
        &mut self.port.bus.memory[usize::from(n)]
    }
}

impl Hal for BootHal<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        self.port.nic.read(self.function, offset, self.now)
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.port.nic.write(self.function, offset, value, self.now);
    }

    fn now(&self) -> Time {
        self.now
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
        self.port.pf.visit(&mut PfHal(&mut self.port.nic));
    }
}

impl DmaHal for BootHal<'_> {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaRegion, OutOfDmaMemory> {
        self.memory().allocate(length, align)
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        let Function::Vf(n) = self.function else { unreachable!("only VFs boot this way") };
        self.port.bus.memory[usize::from(n)].read(iova, into).expect("the driver reads what it set aside");
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        let place = self.memory().at(iova, from.len()).expect("the driver writes what it set aside");
        place.copy_from_slice(from);
    }
}
