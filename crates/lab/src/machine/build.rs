//! What a machine is to be, and putting it together: the server of the paper by default.

use super::chipset::{Chipset, Region};
use super::code::Code;
use super::controller::Controller;
use super::dom0::ServiceCpu;
use super::inside::Inside;
use super::port::{Outside, Port, Recipient};
use super::vm::Hardware;
use super::wire::Traffic;
use super::world::{Event, Vm, World};
use driver::moderation::Policy;
use guest::{Kernel, Spec};
use hypervisor::cost::{Cost, CostTable};
use hypervisor::cpu::{Config, LastLevelCache, Machine, ThreadId};
use hypervisor::domain::DomainKind;
use hypervisor::exit::EoiPath;
use hypervisor::msix::Handler;
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
    /// What guests are to the hypervisor; [`DomainKind::Native`] is one bare machine with a VF a guest.
    pub kind: DomainKind,
    /// Their kernel.
    pub spec: Spec,
    /// What clients send.
    pub traffic: Traffic,
    /// Who sends over the card to a guest, if anybody does.
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
    /// The card and its drivers disagree: a defect of this program.
    #[error("the card does not come up: {0}")]
    Card(String),
}

/// The server: two sockets of four cores, two threads each. Thread 0 of a core is the service domain's, thread
/// 1 the guests'.
const CORES: u16 = 8;
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
        let mut world = Self {
            table: setup.table.clone(),
            eoi: setup.eoi,
            machine: Machine::new(Config::from_table(&setup.table, CORES, 2)),
            queue: EventQueue::new(),
            chipset: Chipset::new(kernels, 2 * CORES),
            ports: Vec::new(),
            port_events: vec![None; ports.into()],
            vms: Vec::new(),
            guests: Vec::new(),
            timers: vec![None; kernels],
            service: Vec::new(),
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
            ..Default::default()
        };
        let outside = Outside { traffic: setup.traffic, loopback: setup.loopback };
        for port in 0..ports {
            // Guest g is on port g modulo the number of ports.
            let vfs = (guests - port).div_ceil(ports);
            let mut recipients: Vec<_> = (0..vfs).map(|n| world.add_domain(setup, n)).collect();
            recipients.extend(world.service_function(setup, vfs));
            let built = Port::new(port, &recipients, outside, &config, &mut world.chipset);
            let (built, drivers) = built.map_err(BuildError::Card)?;
            world.ports.push(built);
            for (vf, (recipient, driver)) in recipients.iter().zip(drivers).enumerate() {
                let (kind, spec) = setup.system_of(vf < usize::from(vfs));
                let system = (kind, spec, setup.msix);
                world.add_kernel(system, (port.into(), vf as u8), *recipient, driver)?;
            }
        }
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

    /// The domain of a port's guest `n`, with memory.
    fn add_domain(&mut self, setup: &Setup, n: u8) -> Recipient {
        let index = self.vms.len() + usize::from(n);
        let domain = self.machine.add_domain(setup.kind, format!("guest{index}"));
        Recipient { domain, region: Region::of(index) }
    }

    fn add_kernel(
        &mut self,
        (kind, spec, msix): (DomainKind, Spec, Handler),
        (port, vf): (usize, u8),
        Recipient { domain, region }: Recipient,
        driver: driver::vf::Vf,
    ) -> Result<(), BuildError> {
        let home = ThreadId::new(2 * (self.vms.len() as u16 % CORES) + 1);
        let vcpu = self.machine.add_vcpu(domain, home);
        let code = Code::load(&mut self.chipset.memory, region);
        let code = code.ok_or_else(|| BuildError::Card("no room for a kernel".into()))?;
        let controller = Controller::new(kind, domain, code, spec.tick);
        let hardware = Hardware::new(kind, (domain, vcpu), vf, msix, controller);
        self.guests.resize(self.guests.len().max(domain.index() + 1), None);
        self.guests[domain.index()] = Some(self.vms.len());
        self.vms.push(Vm { kernel: Kernel::new(spec, driver), hardware, port });
        Ok(())
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
