//! A single processor under Xen 2, gigabit ports, and guests with a stream over each: the servers of Willmann et al.,
//! *Concurrent Direct Network Access*, HPCA 2007, and of Menon et al., *Optimizing Network Virtualization in Xen*, ATC
//! 2006. With CDNA each guest drives a context of each card. With Xen a driver domain drives the cards and bridges,
//! over the original channel or the one of Menon et al.
//!
//! | module | contents |
//! |---|---|
//! | `plan` | parameters of a machine |
//! | `wire` | both directions of a port's wire, and its client |
//! | `guest` | steps of a guest |
//! | `driver` | steps of the driver domain |
//! | `cards` | the cards: transmission and interrupts |
//! | `hostile` | attacks of a guest |
//!
//! Windows fit the rings, so no frame is lost. Clients cost nothing, and programs send or receive bulk
//! streams only.

mod cards;
mod driver;
mod guest;
mod hostile;
mod plan;
#[cfg(test)]
mod tests;
mod wire;

pub use hostile::{CdnaAttack, attack};
pub use plan::{CardDriver, PacketChannelOptions, PayloadDirection, SingleCpuSetup, SingleCpuWire};

use super::books::ConservationChecks;
use super::engine::{Actor, ModelDefect, Simulation};
use super::parts::cdna::pages::PageOwners;
use ::guest::packet::TCP_PAYLOAD;
use cards::CdnaPort;
use driver::DriverDomain;
use guest::SingleCpuGuest;
use hypervisor::cost::CostConstant;
use hypervisor::cpu::{HardwareThreadId, HostMachine, PagingMode, ProcessorConfig, Tlb, VcpuStep};
use hypervisor::domain::DomainKind;
use sim::{RandomStream, VirtualDuration, VirtualInstant};

/// Event of the machine with a single processor.
#[derive(Debug, Clone, Copy)]
pub enum SingleCpuEvent {
    /// Event: the streams of this guest start.
    Begin(usize),
    /// Event: the card of this port has new work.
    Kick(usize),
    /// Event: this port has sent a frame.
    Left(usize),
    /// Event: frames have arrived at this port.
    Arrived(usize),
    /// Event: the card of this port interrupts.
    Interrupt(usize),
}

type SingleCpuCore = super::engine::SimulationCore<SingleCpuEvent>;

/// Modelled machine with a single processor; handles the events of guests, driver domain and cards.
#[derive(Debug)]
pub struct SingleCpuMachine {
    drive: CardDriver,
    channel: PacketChannelOptions,
    /// Paging mode of the kernels.
    paging: PagingMode,
    direction: PayloadDirection,
    /// TCP window of each guest's stream, in segments.
    window: u32,
    /// Rate at which a guest's kernel copies a program's payload to send.
    send_copy: CostConstant,
    /// Number of ring slots that a guest processes in a step, per direction and port.
    turn: u32,
    /// Number of frames that the driver domain processes per step in each direction.
    driver_turn: usize,
    /// Least time between two interrupts of a card.
    interval: VirtualDuration,
    wire: SingleCpuWire,
    ports: Vec<CdnaPort>,
    guests: Vec<SingleCpuGuest>,
    driver: DriverDomain,
    pages: PageOwners,
}

/// Machine with a single processor that runs in virtual time.
pub type SingleCpuSimulation = Simulation<SingleCpuMachine>;

/// Throughput and processor use of a measured interval of the single-processor machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SingleCpuResults {
    /// Payload of all streams, in Mb/s.
    pub throughput_mbps: f64,
    /// Processor cycles per segment of payload.
    pub cycles_per_packet: f64,
    /// Processor use of the hypervisor for all domains, in percent.
    pub hypervisor_pct: f64,
    /// Processor use of the driver domain, in percent.
    pub driver_pct: f64,
    /// Processor use of the guests, in percent.
    pub guest_pct: f64,
    /// Idle time of the processor, in percent.
    pub idle_pct: f64,
}

impl SingleCpuSimulation {
    /// Creates the single-processor machine, with guests whose streams start at random times.
    #[must_use]
    pub fn new(plan: &SingleCpuSetup) -> Self {
        let config = ProcessorConfig::from_table(&plan.table, 1, 1);
        let flushed = Tlb::new(&plan.table).switch(plan.paging());
        let mut core = SingleCpuCore::new(plan.table.clone(), HostMachine::new(config));
        let home = HardwareThreadId::new(0);
        let domain = core.processors.add_domain(DomainKind::Dom0, "driver domain".into());
        core.processors.flush_at_switches(domain, flushed);
        let vcpu = core.processors.add_vcpu(domain, home);
        // A domain that mostly waits for cards has used the least virtual time, so it runs next when it
        // wakes.
        core.processors.favour(vcpu);
        let driver = DriverDomain::new(vcpu, plan.ports.into());
        let pages = usize::from(plan.guests) * guest::pages(plan.ports.into()) as usize;
        let mut system = SingleCpuMachine {
            drive: plan.drive,
            channel: plan.channel,
            paging: plan.paging(),
            direction: plan.direction,
            window: wire::window(plan),
            send_copy: plan.send_copy,
            turn: plan.turn,
            driver_turn: plan.driver_turn as usize,
            interval: plan.interval,
            wire: plan.wire,
            ports: (0..plan.ports).map(|_| CdnaPort::default()).collect(),
            guests: Vec::new(),
            driver,
            pages: PageOwners::new(pages),
        };
        let mut phases = RandomStream::named(plan.seed, "streams begin");
        for n in 0..plan.guests {
            let kind = if plan.drive == CardDriver::Native { DomainKind::Native } else { DomainKind::Pvm };
            let domain = core.processors.add_domain(kind, format!("guest{n}"));
            core.processors.flush_at_switches(domain, flushed);
            let vcpu = core.processors.add_vcpu(domain, home);
            system.add_guest(vcpu);
            let at = VirtualInstant::ZERO + VirtualDuration::from_nanos(phases.below(1_000_000));
            core.schedule(at, SingleCpuEvent::Begin(n.into()));
        }
        Self { core, system }
    }

    /// Runs the machine for `warm_up`, then for `span`. Returns the results of `span`.
    ///
    /// # Errors
    /// [`ModelDefect`] of the model.
    pub fn measure(
        &mut self,
        warm_up: VirtualDuration,
        span: VirtualDuration,
    ) -> Result<SingleCpuResults, ModelDefect> {
        let (before, usage) = self.observe((warm_up, span), SingleCpuMachine::payload)?;
        let domains = self.core.processors.domains();
        let own = |kind: DomainKind| usage.percent(usage.own_of(domains, |found| found == kind));
        let payload = (self.system.payload() - before) as f64;
        let segments = payload / TCP_PAYLOAD as f64;
        Ok(SingleCpuResults {
            throughput_mbps: payload * 8.0 / span.as_secs_f64() / 1e6,
            cycles_per_packet: if segments > 0.0 { usage.busy() as f64 / segments } else { 0.0 },
            hypervisor_pct: usage.percent(usage.hypervisor()),
            driver_pct: own(DomainKind::Dom0),
            guest_pct: own(DomainKind::Pvm) + own(DomainKind::Native),
            idle_pct: usage.percent(usage.idle()),
        })
    }
}

impl Actor for SingleCpuMachine {
    type Event = SingleCpuEvent;

    fn handle(&mut self, event: SingleCpuEvent, now: VirtualInstant, core: &mut SingleCpuCore) {
        match event {
            SingleCpuEvent::Begin(guest) => self.begin(guest, now, core),
            SingleCpuEvent::Kick(port) => self.kick(port, now, core),
            SingleCpuEvent::Left(port) => self.left(port, now, core),
            SingleCpuEvent::Arrived(port) => self.arrived(port, now, core),
            SingleCpuEvent::Interrupt(port) => self.interrupt(port, now, core),
        }
    }

    /// Executes a step of a virtual CPU. The driver domain's virtual CPU is the first one; the guests' follow.
    fn execute(&mut self, step: VcpuStep, core: &mut SingleCpuCore) {
        match step.vcpu().index().checked_sub(1) {
            None => self.execute_driver(step, core),
            Some(guest) => self.execute_guest(guest, step, core),
        }
    }

    fn check_books(&self, books: &mut ConservationChecks) {
        for port in &self.ports {
            port.check_books(books);
        }
        let described: u64 = self.guests.iter().map(SingleCpuGuest::described).sum();
        let (held, waiting) = self.in_flight();
        books.balance("references to pages", described + held, self.pages.references());
        let (given, left): (Vec<_>, Vec<_>) = (
            self.guests.iter().map(|guest| guest.given).collect(),
            self.ports.iter().map(|port| port.segments).collect(),
        );
        books.balance("segments of guests", given.iter().sum(), left.iter().sum::<u64>() + waiting);
        books.never("requests of guests that were refused or wrongly segmented", self.driver.refused);
        books.never("packets from a page that is not their guest's", self.driver.stray_reads);
    }
}
