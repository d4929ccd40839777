//! The server of Willmann et al., *Concurrent Direct Network Access*, HPCA 2007: one processor, two gigabit ports, and
//! guests with streams over both. With CDNA each guest drives a context of each card; with Xen a driver domain drives
//! the cards, bridges, and exchanges pages of received frames with the guests'.
//!
//! | module | what it is |
//! |---|---|
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
#[cfg(test)]
mod tests;
mod wire;

pub use hostile::{Attack, attack};

use super::books::Books;
use super::engine::{Actor, Defect, Engine};
use super::parts::cdna::pages::Pages;
use cards::Port;
use driver::Driver;
use guest::Guest;
use hypervisor::cost::CostTable;
use hypervisor::cpu::{Config, Machine, Step, ThreadId};
use hypervisor::domain::DomainKind;
use sim::{Generator, Instant, Span};

/// Who drives the cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drive {
    /// A driver domain, over a split driver.
    Xen,
    /// Each guest a context, with the hypervisor between it and the card's rings.
    Cdna,
    /// Each guest a context, and writes the card's rings itself.
    Unprotected,
}

/// Which way the payload goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From guests.
    Transmit,
    /// To guests.
    Receive,
}

/// What a machine is to be.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What things cost.
    pub table: CostTable,
    /// Who drives the cards.
    pub drive: Drive,
    /// Which way the payload goes.
    pub direction: Direction,
    /// Guests, each with a stream on each port; 1 to 128.
    pub guests: u8,
    /// Decides when streams begin.
    pub seed: u64,
}

/// Ports.
const PORTS: usize = 2;
/// Pages of a guest that frames are in.
const PAGES: u64 = 2 * PORTS as u64 * super::parts::cdna::RING as u64;

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
    direction: Direction,
    /// Segments of a stream that may be under way.
    window: u32,
    ports: [Port; PORTS],
    guests: Vec<Guest>,
    driver: Driver,
    pages: Pages,
}

/// The machine that runs.
pub type Cdna = Engine<Network>;

/// What happened in a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// Payload, Mb/s.
    pub throughput_mbps: f64,
    /// The hypervisor, for whomever, percent of the processor.
    pub hypervisor_pct: f64,
    /// The driver domain.
    pub driver_pct: f64,
    /// The guests.
    pub guest_pct: f64,
    /// Nobody.
    pub idle_pct: f64,
}

impl Cdna {
    /// Puts a machine together.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let mut core = Core::new(plan.table.clone(), Machine::new(Config::from_table(&plan.table, 1, 1)));
        let home = ThreadId::new(0);
        let domain = core.processors.add_domain(DomainKind::Dom0, "driver domain".into());
        let vcpu = core.processors.add_vcpu(domain, home);
        // A domain that waits for cards most of the time has used the least virtual time: it is next when it wakes.
        core.processors.favour(vcpu);
        let driver = Driver::new(vcpu);
        let mut system = Network {
            drive: plan.drive,
            direction: plan.direction,
            window: wire::window(plan),
            ports: [Port::default(), Port::default()],
            guests: Vec::new(),
            driver,
            pages: Pages::new(usize::from(plan.guests) * PAGES as usize),
        };
        let mut phases = Generator::named(plan.seed, "streams begin");
        for n in 0..plan.guests {
            let domain = core.processors.add_domain(DomainKind::Pvm, format!("guest{n}"));
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
        let bits = (self.system.payload() - before) as f64 * 8.0;
        Ok(Found {
            throughput_mbps: bits / span.as_secs_f64() / 1e6,
            hypervisor_pct: usage.percent(usage.hypervisor()),
            driver_pct: own(DomainKind::Dom0),
            guest_pct: own(DomainKind::Pvm),
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
        books.balance("references to pages", described, self.pages.references());
    }
}
