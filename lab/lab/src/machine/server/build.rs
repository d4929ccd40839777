//! Creates a modelled server, with every driver started.

use super::setup::{NetworkAccessMode, ServerBuildError, ServerSetup};
use super::{ServerCore, ServerEvent, ServerMachine, ServerSimulation};
use crate::machine::chipset::Chipset;
use crate::machine::code::GuestApicCode;
use crate::machine::controller::InterruptController;
use crate::machine::memory::{DomainMemoryRegion, GUEST_MEMORY};
use crate::machine::parts::card::{FrameRecipient, NicPort};
use crate::machine::parts::guest::{GuestHardware, GuestKernel, ServerGuest};
use crate::machine::parts::monitor::PfMonitor;
use crate::machine::parts::service::ServiceCpu;
use crate::machine::parts::split::ServiceDomainNetwork;
use guest::KernelModel;
use hypervisor::cost::CostConstant;
use hypervisor::cpu::{LastLevelCache, PagingMode, ProcessorConfig, Tlb, VcpuId};
use hypervisor::domain::DomainKind;
use i82576::MacAddress;
use sim::{RandomStream, VirtualDuration, VirtualInstant};

/// Bytes of the longest frame on a wire.
const FRAME: usize = ETHERNET_HEADER + 1_500;
/// Bytes of the header before a frame's IP packet.
const ETHERNET_HEADER: usize = 14;
impl ServerSimulation {
    /// Creates a server with every driver started and no frame in flight.
    ///
    /// # Errors
    /// [`ServerBuildError`] if the setup is invalid or a driver fails.
    pub fn new(setup: &ServerSetup) -> Result<Self, ServerBuildError> {
        let (guests, ports, topology) = (setup.guests, setup.ports, setup.topology);
        let room = topology.guests_per_port;
        if ports == 0 || guests < ports || guests.div_ceil(ports) > room {
            return Err(ServerBuildError::Guests { guests, ports, room });
        }
        let config = ProcessorConfig::from_table(&setup.table, topology.cores(), topology.threads_per_core);
        let mut core = ServerCore::new(setup.table.clone(), setup.scheduling.machine(config));
        let system = ServerMachine::new(setup, &mut core)?;
        Ok(Self { core, system })
    }
}

impl ServerMachine {
    fn new(setup: &ServerSetup, core: &mut ServerCore) -> Result<Self, ServerBuildError> {
        let (guests, ports, topology) = (setup.guests, setup.ports, setup.topology);
        let kernels = usize::from(guests) + setup.service_functions()?;
        let cache = LastLevelCache::new(setup.table[CostConstant::LastLevelCache] * 1_024);
        let split = setup.network != NetworkAccessMode::Direct;
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
            monitor: PfMonitor::default(),
            caches: vec![cache; topology.sockets.into()],
        };
        if setup.kind != DomainKind::Native {
            server.add_service_domain(core);
        }
        let config = driver::vf::VfDriverConfig {
            moderation: setup.moderation,
            transmit_interval_us: setup.inside.map(|inside| inside.transmit_interval_us),
            rx_descriptors: topology.receive_ring,
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

    fn add_service_domain(&mut self, core: &mut ServerCore) {
        let domain = core.processors.add_domain(DomainKind::Dom0, "dom0".into());
        for n in 0..self.topology.service_cpus {
            let vcpu = core.processors.add_vcpu(domain, self.topology.service(n));
            self.service.push(ServiceCpu::new(vcpu));
        }
    }

    /// Creates the service domain's network drivers. Returns `None` if guests have VFs.
    fn service_network(
        &mut self,
        setup: &ServerSetup,
        core: &ServerCore,
    ) -> Result<Option<ServiceDomainNetwork>, ServerBuildError> {
        let NetworkAccessMode::Split { workers } = setup.network else { return Ok(None) };
        let cpus = self.service.len();
        let refused = ServerBuildError::Workers { workers, cpus: self.topology.service_cpus };
        let first = self.service.first().filter(|_| workers > 0 && usize::from(workers) <= cpus);
        let domain = core.processors.domain_of(first.ok_or(refused)?.vcpu);
        let (netback, converts) = ((workers.into(), setup.netback), setup.kind == DomainKind::Hvm);
        let order = self.topology.service_order(setup.guests.into());
        let channels = &mut self.chipset.channels;
        Ok(Some(ServiceDomainNetwork::new(domain, order, netback, converts, channels)))
    }

    /// Adds a domain with memory for guest `n` of a port.
    fn add_domain(&mut self, setup: &ServerSetup, n: u8, core: &mut ServerCore) -> FrameRecipient {
        let index = self.vms.len() + usize::from(n);
        let domain = core.processors.add_domain(setup.kind, format!("guest{index}"));
        let flushed = Tlb::new(&setup.table).switch(PagingMode::of(setup.kind));
        core.processors.flush_at_switches(domain, flushed);
        FrameRecipient { domain, region: DomainMemoryRegion::of(index), part: 0 }
    }

    /// Adds a port with a VF for each guest, and with a VF for the service domain if the service domain
    /// sends.
    fn add_direct(
        &mut self,
        setup: &ServerSetup,
        port: u8,
        guests: &[FrameRecipient],
        config: &driver::vf::VfDriverConfig,
        core: &mut ServerCore,
    ) -> Result<(), ServerBuildError> {
        let service = self.service_function(setup, guests.len() as u8, core);
        let recipients: Vec<_> = guests.iter().copied().chain(service).collect();
        let built = NicPort::new(port, &recipients, setup.outside(port), config, &mut self.chipset);
        let (built, drivers) = built.map_err(ServerBuildError::Card)?;
        self.ports.push(built);
        for ((recipient, driver), vf) in recipients.iter().zip(drivers).zip(0..) {
            let (kind, spec) = setup.system_of(port, usize::from(vf) < guests.len());
            let (vcpu, code) = self.add_processor(recipient, core)?;
            let code = (code, spec.tick);
            let controller =
                InterruptController::direct(kind, recipient.domain, code, &mut self.chipset.channels);
            let hardware = GuestHardware::direct(
                kind,
                (recipient.domain, vcpu),
                setup.msix,
                controller,
                config.rx_descriptors,
            );
            let kernel = Box::new(KernelModel::new(spec, driver));
            self.vms.push(ServerGuest {
                system: GuestKernel::Direct { kernel, vf },
                port: port.into(),
                hardware,
            });
        }
        Ok(())
    }

    /// Adds a port driven by the service domain, with its guests behind a bridge.
    fn add_bridged(
        &mut self,
        setup: &ServerSetup,
        port: u8,
        guests: &[FrameRecipient],
        (config, split): (&driver::vf::VfDriverConfig, &mut ServiceDomainNetwork),
        core: &mut ServerCore,
    ) -> Result<(), ServerBuildError> {
        let region = DomainMemoryRegion::of_service(setup.guests.into(), setup.ports);
        let part = u64::from(port) * GUEST_MEMORY;
        let service = FrameRecipient { domain: split.domain(), region, part };
        let macs: Vec<_> = (0..guests.len()).map(|n| MacAddress([0x02, 0xcc, port, 0, 0, n as u8])).collect();
        let built = NicPort::shared(port, (service, &macs), setup.outside(port), config, &mut self.chipset);
        let (built, driver) = built.map_err(ServerBuildError::Card)?;
        self.ports.push(built);
        let refused =
            |error: hypervisor::evtchn::EventChannelError| ServerBuildError::Card(error.to_string());
        split.add_card(driver, &mut self.chipset.channels).map_err(refused)?;
        for (guest, mac) in guests.iter().zip(macs) {
            let (vcpu, code) = self.add_processor(guest, core)?;
            let socket = self.topology.socket(core.processors.home(vcpu));
            let place = (guest.domain, socket, self.topology.sockets.into());
            let added = split.add_guest(place, port.into(), mac, &mut self.chipset.channels);
            let (mut front, event) = added.map_err(refused)?;
            if setup.netback.merge {
                front.merge_segments();
            }
            let spec = setup.spec_of(port);
            let (code, ends) = ((code, spec.tick), (guest.domain, event));
            let controller = InterruptController::split(setup.kind, ends, code, &mut self.chipset.channels);
            let hardware = GuestHardware::split(setup.kind, (guest.domain, vcpu), controller);
            let system = GuestKernel::Split(Box::new(KernelModel::new(spec, front)));
            self.vms.push(ServerGuest { system, port: port.into(), hardware });
        }
        Ok(())
    }

    /// Adds a guest's virtual CPU and the code of the guest's kernel. Guests are assigned to hardware threads
    /// in turn.
    fn add_processor(
        &mut self,
        guest: &FrameRecipient,
        core: &mut ServerCore,
    ) -> Result<(VcpuId, GuestApicCode), ServerBuildError> {
        let turn = self.vms.len() as u16;
        let topology = &self.topology;
        let home = if self.service.is_empty() { topology.bare(turn) } else { topology.guest(turn) };
        let vcpu = core.processors.add_vcpu(guest.domain, home);
        let code = GuestApicCode::load(&mut self.chipset.memory, guest.region);
        self.guests.resize(self.guests.len().max(guest.domain.index() + 1), None);
        self.guests[guest.domain.index()] = Some(self.vms.len());
        Ok((
            vcpu,
            code.ok_or_else(|| ServerBuildError::Card("the guest's memory has no room for a kernel".into()))?,
        ))
    }

    /// Starts the timer ticks of guests and service domain at random times within a tick, and the clients of each port
    /// at a random time within a millisecond, and schedules the first poll of every port.
    fn start_clocks(&mut self, setup: &ServerSetup, core: &mut ServerCore) {
        let mut phases = RandomStream::named(setup.seed, "tick phases");
        let mut phase = |period: VirtualDuration| {
            VirtualInstant::ZERO + VirtualDuration::from_picos(phases.below(period.picos().max(1)))
        };
        for cpu in 0..self.service.len() {
            core.schedule(phase(self.topology.service_tick), ServerEvent::ServiceTick(cpu));
        }
        if let guest::kernel::TickMode::Periodic(period) = setup.spec.tick {
            for vm in 0..self.vms.len() {
                self.vms[vm].hardware.controller.start_periodic(phase(period), period);
                self.set_timer(vm, core);
            }
        }
        for port in 0..self.ports.len() {
            // Clients start one after another, and each card has its own oscillator (IEEE 802.3: 100 ppm).
            self.ports[port].line.delay(VirtualDuration::from_nanos(phases.below(1_000_000)));
            self.sync(port, VirtualInstant::ZERO, core);
        }
    }
}
