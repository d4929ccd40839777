//! Creates a server, with every driver started.

use super::setup::{BuildError, Network, Setup};
use super::{Core, Event, Server, World};
use crate::machine::chipset::Chipset;
use crate::machine::code::Code;
use crate::machine::controller::Controller;
use crate::machine::memory::{GUEST_MEMORY, Region};
use crate::machine::parts::card::{Port, Recipient};
use crate::machine::parts::guest::{Hardware, RING, System, Vm};
use crate::machine::parts::monitor::Monitor;
use crate::machine::parts::service::ServiceCpu;
use crate::machine::parts::split::Split;
use guest::Kernel;
use hypervisor::cost::Cost;
use hypervisor::cpu::{Config, LastLevelCache, VcpuId};
use hypervisor::domain::DomainKind;
use i82576::MacAddress;
use sim::{Generator, Instant, Span};

/// Bytes of the longest frame on a wire, and of the header before its packet.
const FRAME: usize = ETHERNET_HEADER + 1_500;
const ETHERNET_HEADER: usize = 14;
impl World {
    /// Creates a server with every driver started and no frame in flight.
    ///
    /// # Errors
    /// [`BuildError`] if the setup is invalid or a driver fails.
    pub fn new(setup: &Setup) -> Result<Self, BuildError> {
        let (guests, ports, topology) = (setup.guests, setup.ports, setup.topology);
        let room = topology.guests_per_port;
        if ports == 0 || guests < ports || guests.div_ceil(ports) > room {
            return Err(BuildError::Guests { guests, ports, room });
        }
        let config = Config::from_table(&setup.table, topology.cores(), topology.threads_per_core);
        let mut core = Core::new(setup.table.clone(), setup.scheduling.machine(config));
        let system = Server::new(setup, &mut core)?;
        Ok(Self { core, system })
    }
}

impl Server {
    fn new(setup: &Setup, core: &mut Core) -> Result<Self, BuildError> {
        let (guests, ports, topology) = (setup.guests, setup.ports, setup.topology);
        let kernels = usize::from(guests) + setup.service_functions()?;
        let cache = LastLevelCache::new(setup.table[Cost::LastLevelCache] * 1_024);
        let split = setup.network != Network::Direct;
        let mut server = Self {
            topology,
            eoi: setup.eoi,
            chipset: Chipset::new(kernels, if split { ports } else { 0 }, topology.threads()),
            ports: Vec::new(),
            port_events: vec![None; ports.into()],
            vms: Vec::new(),
            guests: Vec::new(),
            split: None,
            timers: vec![None; kernels],
            service: Vec::new(),
            monitor: Monitor::default(),
            caches: vec![cache; topology.sockets.into()],
        };
        if setup.kind != DomainKind::Native {
            server.add_service_domain(core);
        }
        let config = driver::vf::Config {
            moderation: setup.moderation,
            transmit_interval_us: setup.inside.map(|inside| inside.transmit_interval_us),
            rx_descriptors: RING,
            max_frame: setup.inside.map_or(FRAME, |inside| usize::from(inside.mtu) + ETHERNET_HEADER),
            ..Default::default()
        };
        let mut split = server.service_network(setup, core)?;
        for port in 0..ports {
            // Guest g is on port g modulo the number of ports.
            let on_port = (guests - port).div_ceil(ports);
            let recipients: Vec<_> = (0..on_port).map(|n| server.add_domain(setup, n, core)).collect();
            match &mut split {
                None => server.add_direct(setup, port, &recipients, &config, core)?,
                Some(split) => server.add_bridged(setup, port, &recipients, (&config, split), core)?,
            }
        }
        server.split = split;
        server.start_clocks(setup, core);
        if let Some(inside) = setup.inside {
            server.start_inside(inside, setup.spec.buffers(), core)?;
        }
        Ok(server)
    }

    fn add_service_domain(&mut self, core: &mut Core) {
        let domain = core.processors.add_domain(DomainKind::Dom0, "dom0".into());
        for n in 0..self.topology.service_cpus {
            let vcpu = core.processors.add_vcpu(domain, self.topology.service(n));
            self.service.push(ServiceCpu::new(vcpu));
        }
    }

    /// Creates the service domain's network side, if guests have front ends.
    fn service_network(&mut self, setup: &Setup, core: &Core) -> Result<Option<Split>, BuildError> {
        let Network::Split { workers } = setup.network else { return Ok(None) };
        let cpus = self.service.len();
        let refused = BuildError::Workers { workers, cpus: self.topology.service_cpus };
        let first = self.service.first().filter(|_| workers > 0 && usize::from(workers) <= cpus);
        let domain = core.processors.domain_of(first.ok_or(refused)?.vcpu);
        let (netback, converts) = ((workers.into(), setup.netback), setup.kind == DomainKind::Hvm);
        Ok(Some(Split::new(domain, cpus, netback, converts, &mut self.chipset.channels)))
    }

    /// Adds the domain of a port's guest `n`, with memory.
    fn add_domain(&mut self, setup: &Setup, n: u8, core: &mut Core) -> Recipient {
        let index = self.vms.len() + usize::from(n);
        let domain = core.processors.add_domain(setup.kind, format!("guest{index}"));
        Recipient { domain, region: Region::of(index), part: 0 }
    }

    /// Adds a port with a VF for each guest, and one for the service domain if it sends.
    fn add_direct(
        &mut self,
        setup: &Setup,
        port: u8,
        guests: &[Recipient],
        config: &driver::vf::Config,
        core: &mut Core,
    ) -> Result<(), BuildError> {
        let service = self.service_function(setup, guests.len() as u8, core);
        let recipients: Vec<_> = guests.iter().copied().chain(service).collect();
        let built = Port::new(port, &recipients, setup.outside(port), config, &mut self.chipset);
        let (built, drivers) = built.map_err(BuildError::Card)?;
        self.ports.push(built);
        for ((recipient, driver), vf) in recipients.iter().zip(drivers).zip(0..) {
            let (kind, spec) = setup.system_of(port, usize::from(vf) < guests.len());
            let (vcpu, code) = self.add_processor(recipient, core)?;
            let code = (code, spec.tick);
            let controller = Controller::direct(kind, recipient.domain, code, &mut self.chipset.channels);
            let hardware = Hardware::direct(kind, (recipient.domain, vcpu), setup.msix, controller);
            let kernel = Box::new(Kernel::new(spec, driver));
            self.vms.push(Vm { system: System::Direct { kernel, vf }, port: port.into(), hardware });
        }
        Ok(())
    }

    /// Adds a port driven by the service domain, with its guests behind a bridge.
    fn add_bridged(
        &mut self,
        setup: &Setup,
        port: u8,
        guests: &[Recipient],
        (config, split): (&driver::vf::Config, &mut Split),
        core: &mut Core,
    ) -> Result<(), BuildError> {
        let region = Region::of_service(setup.guests.into(), setup.ports);
        let part = u64::from(port) * GUEST_MEMORY;
        let service = Recipient { domain: split.domain(), region, part };
        let macs: Vec<_> = (0..guests.len()).map(|n| MacAddress([0x02, 0xcc, port, 0, 0, n as u8])).collect();
        let built = Port::shared(port, (service, &macs), setup.outside(port), config, &mut self.chipset);
        let (built, driver) = built.map_err(BuildError::Card)?;
        self.ports.push(built);
        let refused = |error: hypervisor::evtchn::Error| BuildError::Card(error.to_string());
        split.add_card(driver, &mut self.chipset.channels).map_err(refused)?;
        for (guest, mac) in guests.iter().zip(macs) {
            let (vcpu, code) = self.add_processor(guest, core)?;
            let added = split.add_guest(guest.domain, port.into(), mac, &mut self.chipset.channels);
            let (mut front, event) = added.map_err(refused)?;
            if setup.netback.merge {
                front.merge_segments();
            }
            let spec = setup.spec_of(port);
            let (code, ends) = ((code, spec.tick), (guest.domain, event));
            let controller = Controller::split(setup.kind, ends, code, &mut self.chipset.channels);
            let hardware = Hardware::split(setup.kind, (guest.domain, vcpu), controller);
            let system = System::Split(Box::new(Kernel::new(spec, front)));
            self.vms.push(Vm { system, port: port.into(), hardware });
        }
        Ok(())
    }

    /// Adds a guest's virtual CPU, on the guests' threads in turn, and its kernel's code.
    fn add_processor(&mut self, guest: &Recipient, core: &mut Core) -> Result<(VcpuId, Code), BuildError> {
        let turn = self.vms.len() as u16;
        let topology = &self.topology;
        let home = if self.service.is_empty() { topology.bare(turn) } else { topology.guest(turn) };
        let vcpu = core.processors.add_vcpu(guest.domain, home);
        let code = Code::load(&mut self.chipset.memory, guest.region);
        self.guests.resize(self.guests.len().max(guest.domain.index() + 1), None);
        self.guests[guest.domain.index()] = Some(self.vms.len());
        Ok((
            vcpu,
            code.ok_or_else(|| BuildError::Card("the guest's memory has no room for a kernel".into()))?,
        ))
    }

    /// Starts ticks at random phases, and schedules the first poll of every port.
    fn start_clocks(&mut self, setup: &Setup, core: &mut Core) {
        let mut phases = Generator::named(setup.seed, "tick phases");
        let mut phase = |period: Span| Instant::ZERO + Span::from_picos(phases.below(period.picos().max(1)));
        for cpu in 0..self.service.len() {
            core.schedule(phase(self.topology.service_tick), Event::ServiceTick(cpu));
        }
        if let guest::kernel::Tick::Periodic(period) = setup.spec.tick {
            for vm in 0..self.vms.len() {
                self.vms[vm].hardware.controller.start_periodic(phase(period), period);
                self.set_timer(vm, core);
            }
        }
        for port in 0..self.ports.len() {
            if setup.outside(port as u8).traffic.is_paced() {
                self.ports[port].line.delay(Span::from_nanos(phases.below(1_000_000)));
            }
            self.sync(port, Instant::ZERO, core);
        }
    }
}
