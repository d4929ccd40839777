//! What a machine is to be, and putting it together: the server of the paper by default.

use super::chipset::{Chipset, GUEST_MEMORY, Region};
use super::code::Code;
use super::controller::Controller;
use super::dom0::ServiceCpu;
use super::inside::Inside;
use super::monitor::Monitor;
use super::port::{Outside, Port, Recipient};
use super::split::Split;
use super::vm::{Hardware, System, Vm};
use super::wire::Traffic;
use super::world::{Event, World};
use driver::moderation::Policy;
use guest::{Kernel, Spec};
use hypervisor::cost::{Cost, CostTable};
use hypervisor::cpu::{Config, LastLevelCache, Machine, ThreadId, VcpuId};
use hypervisor::domain::DomainKind;
use hypervisor::exit::EoiPath;
use hypervisor::msix::Handler;
use i82576::MacAddress;
use sim::{EventQueue, Generator, Instant, Span, Trace};
use std::num::NonZeroU64;
use thiserror::Error;

/// What a machine is to be.
#[derive(Debug, Clone)]
pub struct Setup {
    /// What things cost.
    pub table: CostTable,
    /// Ports.
    pub ports: u8,
    /// Guests, spread over the ports evenly.
    pub guests: u8,
    /// How guests reach the ports.
    pub network: Network,
    /// What guests are to the hypervisor; [`DomainKind::Native`] is one bare machine with a VF a guest.
    pub kind: DomainKind,
    /// Their kernel.
    pub spec: Spec,
    /// What clients send.
    pub traffic: Traffic,
    /// Who sends over the card, or over its bridge, to a guest, if anybody does.
    pub inside: Option<Inside>,
    /// What the functions of a card may send to each other, bits a second; `None` is without a limit.
    pub loopback: Option<NonZeroU64>,
    /// How often the VF driver lets the card interrupt.
    pub moderation: Policy,
    /// Who handles mask bits.
    pub msix: Handler,
    /// How an end of interrupt is handled.
    pub eoi: EoiPath,
    /// Decides the phases of clocks, and nothing else.
    pub seed: u64,
}

/// How guests reach the ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Each has a VF.
    Direct,
    /// Each has the front end of a split driver.
    Split {
        /// Workers of the back end, one to a virtual CPU of the service domain.
        workers: u8,
    },
}

/// Why a machine cannot be put together.
#[derive(Debug, Error)]
pub enum BuildError {
    /// The numbers make no sense.
    #[error("{guests} guests on {ports} ports: a port has 1 to 7")]
    Guests {
        /// Guests.
        guests: u8,
        /// Ports.
        ports: u8,
    },
    /// Nobody is there to send, or nobody to send to.
    #[error("traffic inside the server needs {0}")]
    Inside(&'static str),
    /// A bare machine has nobody to split a driver with, and a service domain so many virtual CPUs.
    #[error("{0} back-end workers: a hypervisor's service domain has 1 to {CORES}")]
    Workers(u8),
    /// The card and its drivers disagree: a defect of this program.
    #[error("the card does not come up: {0}")]
    Card(String),
}

impl Setup {
    fn outside(&self) -> Outside {
        Outside { traffic: self.traffic, loopback: self.loopback }
    }
}

/// The server: two sockets of four cores, two threads each. Thread 0 of a core is the service domain's, thread
/// 1 the guests'.
const CORES: u16 = 8;
/// The longest frame on a wire, and the header before its packet, bytes.
const FRAME: usize = ETHERNET_HEADER + 1_500;
const ETHERNET_HEADER: usize = 14;
pub(super) const CORES_PER_SOCKET: u16 = 4;
/// Buffers of a VF's receive ring: dd_bufs of the paper.
pub(super) const RING: u16 = 1_024;

impl World {
    /// Puts a machine together, with every driver started and nothing under way.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn new(setup: &Setup) -> Result<Self, BuildError> {
        let (guests, ports) = (setup.guests, setup.ports);
        if ports == 0 || guests < ports || guests.div_ceil(ports) > 7 {
            return Err(BuildError::Guests { guests, ports });
        }
        let kernels = usize::from(guests) + setup.service_functions()?;
        let cache = LastLevelCache::new(setup.table[Cost::LastLevelCache] * 1_024);
        let split = setup.network != Network::Direct;
        let mut world = Self {
            table: setup.table.clone(),
            eoi: setup.eoi,
            machine: Machine::new(Config::from_table(&setup.table, CORES, 2)),
            queue: EventQueue::new(),
            chipset: Chipset::new(kernels, if split { ports } else { 0 }, 2 * CORES),
            ports: Vec::new(),
            port_events: vec![None; ports.into()],
            vms: Vec::new(),
            guests: Vec::new(),
            split: None,
            timers: vec![None; kernels],
            service: Vec::new(),
            monitor: Monitor::default(),
            caches: vec![cache; usize::from(CORES / CORES_PER_SOCKET)],
            trace: Trace::new(),
        };
        if setup.kind != DomainKind::Native {
            world.add_service_domain();
        }
        let config = driver::vf::Config {
            moderation: setup.moderation,
            transmit_interval_us: setup.inside.map(|inside| inside.transmit_interval_us),
            rx_descriptors: RING,
            max_frame: setup.inside.map_or(FRAME, |inside| usize::from(inside.mtu) + ETHERNET_HEADER),
            ..Default::default()
        };
        let mut split = world.service_network(setup)?;
        for port in 0..ports {
            // Guest g is on port g modulo the number of ports.
            let on_port = (guests - port).div_ceil(ports);
            let recipients: Vec<_> = (0..on_port).map(|n| world.add_domain(setup, n)).collect();
            match &mut split {
                None => world.add_direct(setup, port, &recipients, &config)?,
                Some(split) => world.add_bridged(setup, port, &recipients, &config, split)?,
            }
        }
        world.split = split;
        world.start_clocks(setup);
        if let Some(inside) = setup.inside {
            world.start_inside(inside, setup.spec.socket_packets)?;
        }
        Ok(world)
    }

    fn add_service_domain(&mut self) {
        let domain = self.machine.add_domain(DomainKind::Dom0, "dom0".into());
        for core in 0..CORES {
            let vcpu = self.machine.add_vcpu(domain, ThreadId::new(2 * core));
            self.service.push(ServiceCpu::new(vcpu));
        }
    }

    /// The service domain's network side, if guests have front ends.
    fn service_network(&mut self, setup: &Setup) -> Result<Option<Split>, BuildError> {
        let Network::Split { workers } = setup.network else { return Ok(None) };
        let cpus = self.service.len();
        let first = self.service.first().filter(|_| workers > 0 && usize::from(workers) <= cpus);
        let domain = self.machine.domain_of(first.ok_or(BuildError::Workers(workers))?.vcpu);
        Ok(Some(Split::new(domain, cpus, workers.into(), &mut self.chipset.channels)))
    }

    /// The domain of a port's guest `n`, with memory.
    fn add_domain(&mut self, setup: &Setup, n: u8) -> Recipient {
        let index = self.vms.len() + usize::from(n);
        let domain = self.machine.add_domain(setup.kind, format!("guest{index}"));
        Recipient { domain, region: Region::of(index), part: 0 }
    }

    /// A port with a VF for each guest, and for the service domain if it sends.
    fn add_direct(
        &mut self,
        setup: &Setup,
        port: u8,
        guests: &[Recipient],
        config: &driver::vf::Config,
    ) -> Result<(), BuildError> {
        let service = self.service_function(setup, guests.len() as u8);
        let recipients: Vec<_> = guests.iter().copied().chain(service).collect();
        let built = Port::new(port, &recipients, setup.outside(), config, &mut self.chipset);
        let (built, drivers) = built.map_err(BuildError::Card)?;
        self.ports.push(built);
        for ((recipient, driver), vf) in recipients.iter().zip(drivers).zip(0..) {
            let (kind, spec) = setup.system_of(usize::from(vf) < guests.len());
            let (vcpu, code) = self.add_processor(recipient)?;
            let code = (code, spec.tick);
            let controller = Controller::direct(kind, recipient.domain, code, &mut self.chipset.channels);
            let hardware = Hardware::direct(kind, (recipient.domain, vcpu), setup.msix, controller);
            let kernel = Box::new(Kernel::new(spec, driver));
            self.vms.push(Vm { system: System::Direct { kernel, vf }, port: port.into(), hardware });
        }
        Ok(())
    }

    /// A port that the service domain drives, with its guests behind a bridge.
    fn add_bridged(
        &mut self,
        setup: &Setup,
        port: u8,
        guests: &[Recipient],
        config: &driver::vf::Config,
        split: &mut Split,
    ) -> Result<(), BuildError> {
        let region = Region::of_service(setup.guests.into(), setup.ports);
        let part = u64::from(port) * GUEST_MEMORY;
        let service = Recipient { domain: split.domain(), region, part };
        let macs: Vec<_> = (0..guests.len()).map(|n| MacAddress([0x02, 0xcc, port, 0, 0, n as u8])).collect();
        let built = Port::shared(port, (service, &macs), setup.outside(), config, &mut self.chipset);
        let (built, driver) = built.map_err(BuildError::Card)?;
        self.ports.push(built);
        let refused = |error: hypervisor::evtchn::Error| BuildError::Card(error.to_string());
        split.add_card(driver, &mut self.chipset.channels).map_err(refused)?;
        for (guest, mac) in guests.iter().zip(macs) {
            let (vcpu, code) = self.add_processor(guest)?;
            let added = split.add_guest(guest.domain, port.into(), mac, &mut self.chipset.channels);
            let (front, event) = added.map_err(refused)?;
            let (code, ends) = ((code, setup.spec.tick), (guest.domain, event));
            let controller = Controller::split(setup.kind, ends, code, &mut self.chipset.channels);
            let hardware = Hardware::split(setup.kind, (guest.domain, vcpu), controller);
            let system = System::Split(Box::new(Kernel::new(setup.spec, front)));
            self.vms.push(Vm { system, port: port.into(), hardware });
        }
        Ok(())
    }

    /// A guest's virtual CPU, on the guests' threads in turn, and its kernel's code. A bare machine has nobody to leave
    /// the other threads to: once every core has something to do, they have their turn.
    fn add_processor(&mut self, guest: &Recipient) -> Result<(VcpuId, Code), BuildError> {
        let turn = self.vms.len() as u16;
        let is_bare = self.service.is_empty();
        let sibling = if is_bare { (turn / CORES + 1) % 2 } else { 1 };
        let home = ThreadId::new(2 * (turn % CORES) + sibling);
        let vcpu = self.machine.add_vcpu(guest.domain, home);
        let code = Code::load(&mut self.chipset.memory, guest.region);
        self.guests.resize(self.guests.len().max(guest.domain.index() + 1), None);
        self.guests[guest.domain.index()] = Some(self.vms.len());
        Ok((vcpu, code.ok_or_else(|| BuildError::Card("no room for a kernel".into()))?))
    }

    /// Ticks begin at a phase of their own, and every port is looked at.
    fn start_clocks(&mut self, setup: &Setup) {
        let mut phases = Generator::named(setup.seed, "tick phases");
        let mut phase = |period: Span| Instant::ZERO + Span::from_picos(phases.below(period.picos().max(1)));
        for cpu in 0..self.service.len() {
            self.queue.schedule(phase(super::dom0::TICK), Event::ServiceTick(cpu));
        }
        if let guest::kernel::Tick::Periodic(period) = setup.spec.tick {
            for vm in 0..self.vms.len() {
                self.vms[vm].hardware.controller.start_periodic(phase(period), period);
                self.set_timer(vm);
            }
        }
        for port in 0..self.ports.len() {
            self.sync(port, Instant::ZERO);
        }
    }
}
