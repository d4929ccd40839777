//! A card with its PF driver and its wire. Frames reach the card only when their effect could be observed: when a guest
//! polls, when a throttled interrupt is due, and when the next frame would interrupt a VF. The caller delivers the
//! interrupts.

use super::bus::{FunctionMemory, PortBus, PortVirtualFunctions};
use super::traffic::ClientTraffic;
use super::wire::ClientWire;
use crate::machine::chipset::{AssignedFunction, Chipset};
use crate::machine::memory::{DomainMemoryRegion, GUEST_MEMORY};
use crate::machine::topology::WireProperties;
use crate::machine::vectors::VECTORS;
use driver::pf::Pf;
use driver::vf::Vf;
use driver::{DmaAllocation, DmaHal, Hal, hal::OutOfDmaMemory};
use hypervisor::domain::DomainId;
use i82576::{MacAddress, Time, VfIndex};
use iovm::{BusRouting, SrIovManager, VfOwner};
use nic::{Nic, PollBudget};
use pcie::{ConfigAccess, Function, Rid};
use policy::{PortPolicy, VfPolicy};
use sim::{RandomStream, VirtualInstant};
use std::num::NonZeroU64;
use std::time::Duration;

/// Port of a server: a card with its PF driver and VF manager, and the wire with its clients.
#[derive(Debug)]
pub(crate) struct NicPort {
    pub(crate) nic: Nic,
    pub(crate) pf: Pf,
    pub(crate) manager: SrIovManager,
    pub(crate) line: ClientWire,
    pub(crate) functions: PortVirtualFunctions,
    /// Bit mask of VFs whose receive interrupt waits for its interval or its unmasking.
    waiting: u8,
    /// Time by which the card has to be polled even if no frame arrives.
    deadline: Option<VirtualInstant>,
}

/// Converts an instant to the time of the card's clock: whole nanoseconds, rounded down.
pub(crate) fn card_time(now: VirtualInstant) -> Time {
    Time::from_nanos(now.nanos())
}

/// Domain, and the part of its memory, that receive a VF's frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameRecipient {
    pub(crate) domain: DomainId,
    pub(crate) region: DomainMemoryRegion,
    /// Start, in the domain's memory, of the part that the VF may access; the part is as large as a guest's memory.
    pub(crate) part: u64,
}

/// Traffic, wire and limits of a card's port.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PortTrafficSetup {
    pub(crate) traffic: ClientTraffic,
    pub(crate) wire: WireProperties,
    /// Bandwidth between functions of the card, in bits per second.
    pub(crate) loopback: Option<NonZeroU64>,
    pub(crate) limits: TrafficLimits,
    pub(crate) seed: u64,
}

/// Traffic limits that the administrator sets through the PF driver; 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrafficLimits {
    /// Transmit rate limit of a VF, Mb/s.
    pub max_tx_rate: u32,
    /// Limit of broadcasts to a port's VFs, Kb/s.
    pub broadcast_kbps: u32,
}

/// Creates the random generator of a port's clients.
fn clients_chance(seed: u64, port: u8) -> RandomStream {
    RandomStream::named(seed, &format!("clients of port {port}"))
}

impl NicPort {
    /// Creates a port of the card with a VF for each guest or domain that receives frames. Starts the VFs' drivers, and
    /// gives each VF a client on the network.
    pub(crate) fn new(
        number: u8,
        recipients: &[FrameRecipient],
        line: PortTrafficSetup,
        config: &driver::vf::VfDriverConfig,
        chipset: &mut Chipset,
    ) -> Result<(Self, Vec<Vf>), String> {
        let mut port = Self::without_drivers(number, recipients, &line, true, chipset)?;
        let start = |n| port.start_driver(n, config, chipset);
        let drivers = (0..recipients.len() as u8).map(start).collect::<Result<Vec<_>, _>>()?;
        let guests: Vec<_> = drivers.iter().map(Vf::mac).zip(0..).collect();
        port.line = ClientWire::new(line.traffic, line.wire, &guests, clients_chance(line.seed, number));
        Ok((port, drivers))
    }

    /// Creates a port whose only VF is the service domain's and receives the frames of all `guests`, each of which has
    /// a client.
    pub(crate) fn shared(
        number: u8,
        (service, guests): (FrameRecipient, &[MacAddress]),
        line: PortTrafficSetup,
        config: &driver::vf::VfDriverConfig,
        chipset: &mut Chipset,
    ) -> Result<(Self, Vf), String> {
        // Spoof checking is off: frames from a bridge carry the guests' addresses.
        let mut port = Self::without_drivers(number, &[service], &line, false, chipset)?;
        let mut driver = port.start_driver(0, config, chipset)?;
        let mut hal = VfBootHal { port: &mut port, chipset, vf: 0, now: Time::ZERO };
        for guest in guests {
            driver.add_mac(&mut hal, *guest).map_err(|error| error.to_string())?;
        }
        let clients: Vec<_> = guests.iter().map(|guest| (*guest, 0)).collect();
        port.line = ClientWire::new(line.traffic, line.wire, &clients, clients_chance(line.seed, number));
        Ok((port, driver))
    }

    fn without_drivers(
        number: u8,
        recipients: &[FrameRecipient],
        &PortTrafficSetup { loopback, limits, .. }: &PortTrafficSetup,
        spoofchk: bool,
        chipset: &mut Chipset,
    ) -> Result<Self, String> {
        let vfs = recipients.len() as u8;
        let mac = MacAddress([0x02, 0xaa, number, 0, 0, 0]);
        let mut nic = Nic::new(nic::NicConfig { mac, iov: true, loopback });
        let command = pcie::config::offset::COMMAND_MEMORY | pcie::config::offset::COMMAND_BUS_MASTER;
        nic.config_write(Function::Pf, pcie::config::offset::COMMAND, 2, command.into());
        nic.set_link(true);
        let (pf, manager) = bring_up(&mut nic, number, vfs, (spoofchk, limits))?;
        let line =
            ClientWire::new(ClientTraffic::Silent, WireProperties::GIGABIT, &[], clients_chance(0, number));
        let mut port = Self {
            nic,
            pf,
            manager,
            line,
            functions: PortVirtualFunctions::default(),
            waiting: 0,
            deadline: None,
        };
        for (vf, recipient) in VfIndex::all().zip(recipients) {
            port.hand_over(vf, *recipient, chipset)?;
        }
        Ok(port)
    }

    /// Assigns a VF to a guest: the VF then accesses the guest's memory and interrupts the guest, with the routing id
    /// that the VF manager gave the VF.
    fn hand_over(&mut self, vf: VfIndex, to: FrameRecipient, chipset: &mut Chipset) -> Result<(), String> {
        let owner = VfOwner(to.domain.index() as u64);
        self.manager.assign(&mut ManagedCard(&mut self.nic), vf, owner).map_err(|error| error.to_string())?;
        let function = self.manager.function(vf).ok_or("the card has no such VF")?;
        let assigned = AssignedFunction { rid: function.rid(), region: to.region };
        let messages = chipset.assign(assigned, to.domain, to.part..to.part + GUEST_MEMORY, VECTORS)?;
        self.functions.paths.push(FunctionMemory::new(assigned, messages, to.part));
        iovm::SrIovDevice::set_bus_master(&mut ManagedCard(&mut self.nic), Function::Vf(vf.get()), true);
        Ok(())
    }

    fn start_driver(
        &mut self,
        n: u8,
        config: &driver::vf::VfDriverConfig,
        chipset: &mut Chipset,
    ) -> Result<Vf, String> {
        let mut hal = VfBootHal { port: self, chipset, vf: n, now: Time::ZERO };
        let mut vf = Vf::probe(&mut hal, config).map_err(|error| error.to_string())?;
        vf.start(&mut hal).map_err(|error| error.to_string())?;
        Ok(vf)
    }

    /// Advances the card's port to `now`. Returns the time by which `sync` has to be called again. The interrupts sent
    /// are in `functions` afterwards.
    pub(crate) fn sync(&mut self, now: VirtualInstant, chipset: &mut Chipset) -> Option<VirtualInstant> {
        self.line.advance(now);
        let mut bus = PortBus { functions: &mut self.functions, chipset };
        let mut poll = self.nic.poll(card_time(now), PollBudget::default(), &mut bus, &mut self.line);
        while poll.more {
            poll = self.nic.poll(card_time(now), PollBudget::default(), &mut bus, &mut self.line);
        }
        self.waiting |= self.line.delivered;
        self.waiting &= !core::mem::take(&mut self.functions.received);
        self.deadline = poll.deadline.map(|at| VirtualInstant::from_nanos(at.as_nanos()));
        let arrival = match self.line.sends_ahead() {
            _ if self.all_wait() => None,
            true => self.first_noticed(),
            false => self.line.next_arrival(),
        };
        [arrival, self.deadline].into_iter().flatten().min()
    }

    /// Lets frames arrive up to `now` without a poll of the card, if no VF could notice them: the VF's interrupt is
    /// due later, and a guest that polls calls `sync`. Returns the time by which the port has to be called again, or
    /// `None` if the card has to be polled now.
    pub(crate) fn pass(&mut self, now: VirtualInstant) -> Option<VirtualInstant> {
        if self.all_wait() || self.deadline.is_some_and(|at| at <= now) {
            return None;
        }
        self.line.advance(now);
        let arrival = if self.line.is_only_for(self.waiting) { self.first_noticed()? } else { return None };
        Some(self.deadline.map_or(arrival, |deadline| deadline.min(arrival)))
    }

    /// Returns the arrival of the first frame that is not for a waiting VF; a time behind the deadline if there is none.
    fn first_noticed(&mut self) -> Option<VirtualInstant> {
        self.line.first_noticed(self.waiting, self.deadline.unwrap_or(VirtualInstant::NEVER))
    }

    /// Returns `true` if no VF's next frame would interrupt.
    fn all_wait(&self) -> bool {
        let all = (1u16 << self.functions.paths.len()) - 1;
        u16::from(self.waiting) & all == all
    }

    /// Returns the number of frames from the wire before `now`, which the card may not have received. While all VFs
    /// wait, only received frames are counted.
    pub(crate) fn arrived(&self, now: VirtualInstant) -> u64 {
        self.line.frames + if self.all_wait() { 0 } else { self.line.arriving_before(now) }
    }
}

/// Initializes a card with unassigned VFs. Each port is on a PCI bus of its own.
fn bring_up(
    nic: &mut Nic,
    number: u8,
    vfs: u8,
    (spoofchk, limits): (bool, TrafficLimits),
) -> Result<(Pf, SrIovManager), String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let mut pf = Pf::probe(&mut PfHal(nic)).map_err(|e| told(&e))?;
    let mut manager = SrIovManager::discover(&mut ManagedCard(nic), Rid((u16::from(number) + 1) << 8))
        .map_err(|e| told(&e))?;
    manager.enable(&mut ManagedCard(nic), vfs.into(), BusRouting::Ari).map_err(|e| told(&e))?;
    for vf in VfIndex::all().take(vfs.into()) {
        let mac = Some(MacAddress([0x02, 0xbb, number, 0, 0, vf.get()]));
        let policy = VfPolicy { mac, spoofchk, max_tx_rate: limits.max_tx_rate, ..VfPolicy::default() };
        pf.set_policy(&mut PfHal(nic), vf, policy).map_err(|e| told(&e))?;
    }
    let mut policy = PortPolicy::default();
    policy.storm.broadcast = limits.broadcast_kbps;
    pf.set_port_policy(&mut PfHal(nic), policy).map_err(|e| told(&e))?;
    pf.enable_vfs(&mut PfHal(nic), vfs).map_err(|e| told(&e))?;
    Ok((pf, manager))
}

/// Access of the PF driver to the card's registers before simulated time starts.
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

/// Access of the VF manager to the card's configuration space.
pub(crate) struct ManagedCard<'a>(pub(crate) &'a mut Nic);

impl ConfigAccess for ManagedCard<'_> {
    fn config_read(&mut self, function: Function, offset: u16, size: u8) -> u32 {
        self.0.config_read(function, offset, size)
    }

    fn config_write(&mut self, function: Function, offset: u16, size: u8, value: u32) {
        self.0.config_write(function, offset, size, value);
    }
}

impl iovm::SrIovDevice for ManagedCard<'_> {}

/// Hardware of a VF while its driver starts: nothing is charged, and the PF driver responds at once.
struct VfBootHal<'a> {
    port: &'a mut NicPort,
    chipset: &'a mut Chipset,
    vf: u8,
    now: Time,
}

impl VfBootHal<'_> {
    fn path(&self) -> &FunctionMemory {
        &self.port.functions.paths[usize::from(self.vf)]
    }
}

impl Hal for VfBootHal<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        self.port.nic.read(Function::Vf(self.vf), offset, self.now)
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.port.nic.write(Function::Vf(self.vf), offset, value, self.now);
    }

    fn now(&self) -> Time {
        self.now
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
        self.port.pf.visit(&mut PfHal(&mut self.port.nic));
    }
}

impl DmaHal for VfBootHal<'_> {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        self.port.functions.paths[usize::from(self.vf)].allocate(length, align)
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        self.path().read(self.chipset, iova, into);
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        self.port.functions.paths[usize::from(self.vf)].write(self.chipset, iova, from);
    }
}
