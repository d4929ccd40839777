//! A lightweight hypervisor under one guest that owns its machine except the PF of a 10 Gb/s card (Iida et
//! al., on BitVisor). The guest has its VF, APIC and timer without exits; sensitive instructions exit. A PF
//! driver with interrupts makes every interrupt of the guest exit, since external-interrupt exiting is all or
//! nothing.
//!
//! | module | contents |
//! |---|---|
//! | `guest` | the guest's kernel, its receiver and a busy program |
//! | `traffic` | the wire, in bulk or with single requests, and the VF's interrupts |
//! | `liveness` | waiting time of VF requests |
//!
//! The guest has one processor. Contents of PF requests are not modelled.

mod guest;
pub mod liveness;
#[cfg(test)]
mod tests;
mod traffic;

use super::books::Books;
use super::engine::{Actor, Defect, Engine};
use super::parts::thin::admin::{Firmware, Sent, VFS};
use super::parts::thin::monitor::Monitor;
use avf::admin::SIZE;
use driver::avf::inbox::{Inbox, Limits};
use driver::avf::queue::Queue;
use guest::Guest;
use hypervisor::account::Category;
use hypervisor::cost::{Cost, CostTable};
use hypervisor::cpu::{Config, Machine, Step, ThreadId};
use hypervisor::domain::DomainKind;
use sim::{Generator, Instant, Span};
use traffic::Wire;

/// Way in which the PF driver is notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PfDriver {
    /// PF driver with interrupts, for which every interrupt of the guest exits.
    Classical,
    /// By polling at exits for other reasons, so that no interrupt exits.
    Interruptless,
    /// By interrupts of its own: the guest's are posted, and only the PF's exit.
    Posted,
}

/// Traffic on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// A TCP stream is sent at the rate of wire and window.
    Stream,
    /// Requests of 64 bytes are sent, each some time after the previous answer.
    Requests,
}

/// Parameters of the thin-hypervisor machine.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Cost table of the machine's processor.
    pub table: CostTable,
    /// Way in which the PF driver is notified.
    pub pf: PfDriver,
    /// A busy program runs on the guest's processor.
    pub busy: bool,
    /// Traffic on the wire.
    pub load: Load,
    /// Seed of the phases of clocks and traffic.
    pub seed: u64,
}

/// Exits for sensitive instructions per second, of an otherwise idle guest and of a busy one.
const EXITS_IDLE: u64 = 200;
const EXITS_BUSY: u64 = 1_000;
/// Interval between requests of the VF to the PF: link and statistics, by the guest's driver.
const ASKED: Span = Span::from_millis(10);
/// Slots and buffer bytes of the PF driver's admin queue, as in Linux.
pub(crate) const SLOTS: u16 = 32;
const BUFFER: u16 = 4_096;
/// Messages that the PF driver processes per visit, and visits per check for resets.
const LIMITS: Limits = Limits { messages: 8, resets_every: 16 };
/// Creates the PF driver's inbox of a ring; no message of the experiments fills a buffer.
pub(crate) fn inbox(ring: &mut [u8]) -> Inbox {
    Inbox::new(Queue::new(SLOTS, BUFFER, 0, VFS, ring), LIMITS, VFS)
}

/// Registers that report resets of 128 VFs.
pub(crate) const RESET_REGISTERS: u64 = 4;

/// Event of the machine under a lightweight hypervisor.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// Event: the VF's interrupt is due.
    Interrupt,
    /// The guest executes a sensitive instruction.
    Exit,
    /// Tick of the guest's own timer.
    Tick,
    /// The guest's driver sends the PF a request.
    Ask,
    /// A client sends the guest's program a request.
    Request,
}

type Core = super::engine::Core<Event>;

/// Parts of the machine, which handle its events.
#[derive(Debug)]
pub struct Host {
    pf: PfDriver,
    exits: Generator,
    every: Span,
    guest: Guest,
    wire: Wire,
    ring: Vec<u8>,
    card: Firmware,
    monitor: Monitor,
    served: u64,
    /// Number of exits for interrupts, and for other reasons.
    interrupt_exits: u64,
    other_exits: u64,
}

/// Machine under a lightweight hypervisor that runs in virtual time.
pub type Thin = Engine<Host>;

/// Results of a measured interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// Payload that the guest's program read, Gb/s.
    pub throughput_gbps: f64,
    /// Processor use of the guest without its busy program, in percent.
    pub guest_pct: f64,
    /// Number of exits for interrupts per second.
    pub interrupt_exits_per_s: f64,
    /// Number of exits for other reasons per second.
    pub other_exits_per_s: f64,
    /// Times from each request to its answer, us, shortest first.
    pub latencies_us: Vec<f64>,
}

impl Thin {
    /// Creates the machine.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let mut core = Core::new(plan.table.clone(), Machine::new(Config::from_table(&plan.table, 1, 1)));
        let domain = core.processors.add_domain(DomainKind::Hvm, "guest".into());
        let vcpu = core.processors.add_vcpu(domain, ThreadId::new(0));
        let mut ring = vec![0; usize::from(SLOTS) * SIZE];
        let monitor = Monitor::new(inbox(&mut ring));
        let rate = if plan.busy { EXITS_BUSY } else { EXITS_IDLE };
        let mut system = Host {
            pf: plan.pf,
            exits: Generator::named(plan.seed, "sensitive instructions"),
            every: Span::from_nanos(1_000_000_000 / rate),
            guest: Guest::new(vcpu, plan.busy),
            wire: Wire::new(plan.load, plan.seed),
            ring,
            card: Firmware::new(SLOTS),
            monitor,
            served: 0,
            interrupt_exits: 0,
            other_exits: 0,
        };
        let first = Instant::ZERO + Span::from_micros(1);
        match plan.load {
            Load::Stream => system.await_frames(first, &mut core),
            Load::Requests => {
                core.schedule(first, Event::Request);
            }
        }
        core.schedule(first, Event::Exit);
        core.schedule(first + ASKED, Event::Ask);
        core.schedule(first + guest::TICK, Event::Tick);
        core.wake(vcpu, Instant::ZERO);
        Self { core, system }
    }

    /// Runs for `warm_up`, then for `span`. Returns the results of `span`.
    ///
    /// # Errors
    /// [`Defect`] of the model.
    pub fn measure(&mut self, warm_up: Span, span: Span) -> Result<Results, Defect> {
        let counts = |host: &Host| {
            let Host { guest, interrupt_exits, other_exits, wire, .. } = host;
            ([guest.read, *interrupt_exits, *other_exits], wire.answered.len())
        };
        let ((before, answered), usage) = self.observe((warm_up, span), counts)?;
        let (after, _) = counts(&self.system);
        let per_second = |n: usize| (after[n] - before[n]) as f64 / span.as_secs_f64();
        let networking: u64 = Category::ALL
            .into_iter()
            .filter(|category| !category.is_hypervisor() && *category != guest::BUSY)
            .map(|category| usage.category(category))
            .sum();
        let mut latencies_us: Vec<f64> =
            self.system.wire.answered[answered..].iter().map(|took| took.as_secs_f64() * 1e6).collect();
        latencies_us.sort_by(f64::total_cmp);
        Ok(Results {
            throughput_gbps: per_second(0) * 8.0 / 1e9,
            guest_pct: usage.percent(networking),
            interrupt_exits_per_s: per_second(1),
            other_exits_per_s: per_second(2),
            latencies_us,
        })
    }
}

impl Host {
    /// Handles an exit for a sensitive instruction, at which a PF driver without interrupts is visited.
    fn exit(&mut self, now: Instant, core: &mut Core) {
        let wait = Span::from_picos(self.exits.within(self.every.picos() / 2..self.every.picos() * 3 / 2));
        core.schedule(now + wait, Event::Exit);
        self.other_exits += 1;
        let mut cycles = core.table[Cost::ExitOther];
        if self.pf == PfDriver::Interruptless {
            cycles += self.visit(core);
        }
        self.steal(Category::OtherExit, cycles, now, core);
    }

    /// Runs one visit of the PF driver to its requests. Returns the cost of the visit in cycles.
    fn visit(&mut self, core: &Core) -> u64 {
        if !self.monitor.enter() {
            return 0;
        }
        let visit = self.monitor.visit(&mut self.ring, &mut self.card, &mut 0);
        self.monitor.leave();
        self.served += visit.served.len() as u64;
        let registers = if visit.checked_resets { RESET_REGISTERS } else { 0 };
        let table = &core.table;
        table[Cost::RxSkb]
            + registers * table[Cost::MmioRead]
            + u64::from(visit.wrote_tail) * table[Cost::MmioWrite]
            + visit.served.len() as u64 * table[Cost::InterruptHandler]
    }

    /// Sends a request of the guest's driver to the PF, whose driver is interrupted, or polls later.
    fn ask(&mut self, now: Instant, core: &mut Core) {
        core.schedule(now + ASKED, Event::Ask);
        let message = Sent { vf: 0, operation: 15, length: 8 };
        self.card.send(message, &mut self.ring);
        if self.pf != PfDriver::Interruptless {
            self.interrupt_exits += 1;
            let cycles = core.table[Cost::ExitExternalInterrupt] + self.visit(core);
            self.steal(Category::ExternalInterrupt, cycles, now, core);
        }
    }

    fn steal(&mut self, category: Category, cycles: u64, now: Instant, core: &mut Core) {
        let (thread, domain) =
            (core.processors.home(self.guest.vcpu), core.processors.domain_of(self.guest.vcpu));
        core.processors.steal(thread, domain, category, cycles, now);
    }

    /// Interrupts the guest for its VF. With external-interrupt exiting the guest exits, and with interrupts
    /// disabled once more when they can be taken.
    fn interrupt(&mut self, now: Instant, core: &mut Core) {
        if self.pf == PfDriver::Classical {
            let running = core.processors.running(core.processors.home(self.guest.vcpu), now).is_some();
            let disabled = running && self.guest.has_disabled_interrupts;
            let window = if disabled { core.table[Cost::ExitInterruptWindow] } else { 0 };
            self.interrupt_exits += 1 + u64::from(disabled);
            let cycles = core.table[Cost::ExitExternalInterrupt] + core.table[Cost::Injection] + window;
            self.steal(Category::ExternalInterrupt, cycles, now, core);
        }
        self.guest.interrupted = true;
        core.wake(self.guest.vcpu, now);
    }
}

impl Actor for Host {
    type Event = Event;

    fn handle(&mut self, event: Event, now: Instant, core: &mut Core) {
        match event {
            Event::Interrupt => {
                self.wire.interrupt = None;
                self.wire.interrupted = Some(now);
                self.interrupt(now, core);
            }
            Event::Exit => self.exit(now, core),
            Event::Ask => self.ask(now, core),
            Event::Tick => {
                core.schedule(now + guest::TICK, Event::Tick);
                self.guest.ticks += 1;
                core.wake(self.guest.vcpu, now);
            }
            Event::Request => self.request(now, core),
        }
    }

    fn execute(&mut self, step: Step, core: &mut Core) {
        self.execute_guest(step, core);
    }

    fn check_books(&self, books: &mut Books) {
        let waiting = self.card.written - self.served;
        books.never("requests of VFs served twice", self.served.saturating_sub(self.card.written));
        books.never("requests of VFs that no visit served", waiting.saturating_sub(u64::from(SLOTS)));
        books.never("requests of VFs refused", self.card.refused);
        self.wire.check_books(&self.guest, books);
    }
}
