//! One processor under Xen 2, gigabit ports, and guests with a stream over each: the servers of Willmann et al.,
//! *Concurrent Direct Network Access*, HPCA 2007, and of Menon et al., *Optimizing Network Virtualization in Xen*, ATC
//! 2006. With CDNA each guest drives a context of each card; with Xen a driver domain drives the cards and bridges, over
//! a channel as it was or with what Menon et al. add to it.
//!
//! | module | what it is |
//! |---|---|
//! | `plan` | what a machine is to be |
//! | `wire` | both ways of a port's wire, and the client at its end |
//! | `guest` | a guest's turn |
//! | `driver` | the driver domain's turn |
//! | `cards` | the cards: whose frame is next, interrupts |
//! | `hostile` | what a guest does to others |
//!
//! Left out: losses, which windows that fit the rings avoid; a client's own machine; programs other than bulk streams.

mod cards;
mod driver;
mod guest;
mod hostile;
mod plan;
#[cfg(test)]
mod tests;
mod wire;

pub use hostile::{Attack, attack};
pub use plan::{Channel, Direction, Drive, Plan};

use super::books::Books;
use super::engine::{Actor, Defect, Engine};
use super::parts::cdna::pages::Pages;
use ::guest::packet::TCP_PAYLOAD;
use cards::Port;
use driver::Driver;
use guest::Guest;
use hypervisor::cost::Cost;
use hypervisor::cpu::{Config, Machine, Step, ThreadId};
use hypervisor::domain::DomainKind;
use sim::{Generator, Instant, Span};

/// What happens.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// A guest's streams begin.
    Begin(usize),
    /// A card has something new to look at.
    Kick(usize),
    /// A frame has left a port.
    Left(usize),
    /// Frames have arrived at a port.
    Arrived(usize),
    /// A card interrupts.
    Interrupt(usize),
}

type Core = super::engine::Core<Event>;

/// The parts.
#[derive(Debug)]
pub struct Network {
    drive: Drive,
    channel: Channel,
    direction: Direction,
    /// Segments of a stream that may be under way.
    window: u32,
    /// Slots of a guest's turn, in each direction on each port.
    turn: u32,
    ports: Vec<Port>,
    guests: Vec<Guest>,
    driver: Driver,
    pages: Pages,
}

/// The machine that runs.
pub type Single = Engine<Network>;

/// What happened in a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// Payload, Mb/s.
    pub throughput_mbps: f64,
    /// Cycles of the processor for each segment of it.
    pub cycles_per_packet: f64,
    /// The hypervisor, for whomever, percent of the processor.
    pub hypervisor_pct: f64,
    /// The driver domain.
    pub driver_pct: f64,
    /// The guests.
    pub guest_pct: f64,
    /// Nobody.
    pub idle_pct: f64,
}

impl Single {
    /// Puts a machine together.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let mut config = Config::from_table(&plan.table, 1, 1);
        config.refill += if plan.flushes() { plan.table[Cost::TlbKernel] } else { 0 };
        let mut core = Core::new(plan.table.clone(), Machine::new(config));
        let home = ThreadId::new(0);
        let domain = core.processors.add_domain(DomainKind::Dom0, "driver domain".into());
        let vcpu = core.processors.add_vcpu(domain, home);
        // A domain that waits for cards most of the time has used the least virtual time: it is next when it wakes.
        core.processors.favour(vcpu);
        let driver = Driver::new(vcpu, plan.ports.into());
        let pages = usize::from(plan.guests) * guest::pages(plan.ports.into()) as usize;
        let mut system = Network {
            drive: plan.drive,
            channel: plan.channel,
            direction: plan.direction,
            window: wire::window(plan),
            turn: plan.turn,
            ports: (0..plan.ports).map(|_| Port::default()).collect(),
            guests: Vec::new(),
            driver,
            pages: Pages::new(pages),
        };
        let mut phases = Generator::named(plan.seed, "streams begin");
        for n in 0..plan.guests {
            let kind = if plan.drive == Drive::Native { DomainKind::Native } else { DomainKind::Pvm };
            let domain = core.processors.add_domain(kind, format!("guest{n}"));
            let vcpu = core.processors.add_vcpu(domain, home);
            system.add_guest(vcpu);
            let at = Instant::ZERO + Span::from_nanos(phases.below(1_000_000));
            core.schedule(at, Event::Begin(n.into()));
        }
        Self { core, system }
    }

    /// Runs `warm_up`, then `span`, and says what happened in the latter.
    ///
    /// # Errors
    /// [`Defect`], of the model.
    pub fn measure(&mut self, warm_up: Span, span: Span) -> Result<Found, Defect> {
        let (before, usage) = self.observe((warm_up, span), Network::payload)?;
        let domains = self.core.processors.domains();
        let own = |kind: DomainKind| usage.percent(usage.own_of(domains, |found| found == kind));
        let payload = (self.system.payload() - before) as f64;
        let segments = payload / TCP_PAYLOAD as f64;
        Ok(Found {
            throughput_mbps: payload * 8.0 / span.as_secs_f64() / 1e6,
            cycles_per_packet: if segments > 0.0 { usage.busy() as f64 / segments } else { 0.0 },
            hypervisor_pct: usage.percent(usage.hypervisor()),
            driver_pct: own(DomainKind::Dom0),
            guest_pct: own(DomainKind::Pvm) + own(DomainKind::Native),
            idle_pct: usage.percent(usage.idle()),
        })
    }
}

impl Actor for Network {
    type Event = Event;

    fn handle(&mut self, event: Event, now: Instant, core: &mut Core) {
        match event {
            Event::Begin(guest) => self.begin(guest, now, core),
            Event::Kick(port) => self.kick(port, now, core),
            Event::Left(port) => self.left(port, now, core),
            Event::Arrived(port) => self.arrived(port, now, core),
            Event::Interrupt(port) => self.interrupt(port, now, core),
        }
    }

    /// The driver domain's virtual CPU is the first, guests' follow.
    fn execute(&mut self, step: Step, core: &mut Core) {
        match step.vcpu().index().checked_sub(1) {
            None => self.execute_driver(step, core),
            Some(guest) => self.execute_guest(guest, step, core),
        }
    }

    fn owes(&self, books: &mut Books) {
        for port in &self.ports {
            port.owes(books);
        }
        let described: u64 = self.guests.iter().map(Guest::described).sum();
        let (held, waiting) = self.on_their_way();
        books.balance("references to pages", described + held, self.pages.references());
        let (given, left): (Vec<_>, Vec<_>) = (
            self.guests.iter().map(|guest| guest.given).collect(),
            self.ports.iter().map(|port| port.segments).collect(),
        );
        books.balance("segments of guests", given.iter().sum(), left.iter().sum::<u64>() + waiting);
        books.never("requests of guests that were refused, or cut amiss", self.driver.refused);
        books.never("packets from a page that is not their guest's", self.driver.strayed);
    }
}
