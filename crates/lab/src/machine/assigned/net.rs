//! A TCP stream to the guest. Through the service domain: the card's interrupt, a poll, the bridge, the back
//! end's copy into a guest page and an event, and the reverse for each acknowledgement. With a queue of the
//! card for the guest: no bridge and no copy, and the guest's pages stay mapped for the card (Santos et al.,
//! USENIX ATC 2008). With an assigned card: the guest's own interrupt and poll. No frame is lost or merged,
//! and the guest sends only acknowledgements.

use super::{Domains, Path, upcall};
use crate::machine::books::Books;
use crate::machine::engine::{Actor, Defect, Engine};
use crate::machine::parts::bulk::Bulk;
use crate::machine::parts::guest::RING;
use guest::packet::{TCP_HEADERS, TCP_PAYLOAD};
use hypervisor::account::{Category, Charge};
use hypervisor::cost::{Cost, CostTable};
use hypervisor::cpu::{AfterStep, BufferRing, LastLevelCache, Step};
use sim::{EventKey, Generator, Instant, Span};

/// Parameters of the machine with one network path.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Cost table of the machine's processors.
    pub table: CostTable,
    /// Path from the guest to the wire.
    pub path: Path,
    /// Seed of the stream's start time.
    pub seed: u64,
}

const BITS_PER_SECOND: u64 = 10_000_000_000;
/// Interval between interrupts of the card: 8,000 a second, a usual default of drivers.
const INTERVAL: Span = Span::from_micros(125);
/// Frames per turn, frames per system call of the reader, segments per acknowledgement.
const TURN: u64 = 64;
const READ: u64 = 16;
const PER_ACK: u64 = 2;

/// Event of the machine with a network card.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// Event: the network card interrupts.
    Interrupt,
}

type Core = crate::machine::engine::Core<Event>;

/// State of the service domain.
#[derive(Debug, Default)]
struct Service {
    /// An interrupt of the card is pending; then: an event of the guest is.
    interrupted: bool,
    called: bool,
    polls: bool,
    turn: u8,
    /// Number of polled frames that wait for the back end.
    queued: u64,
}

/// State of the guest.
#[derive(Debug)]
struct Guest {
    interrupted: bool,
    polls: bool,
    /// Numbers of frames on the guest's ring, and of frames not read by its program.
    inbox: u64,
    unread: u64,
    read: u64,
    /// Numbers of acknowledgements made, and of those waiting for the service domain.
    acknowledged: u64,
    acks: u64,
    unacknowledged: u64,
    buffers: BufferRing,
}

/// Returns the frames in flight or unread, at most: the pages a driver posts. A frame without a page is lost,
/// so a stream settles at a window that fits.
fn window(path: Path) -> u32 {
    if path == Path::Direct { RING.into() } else { split::ring::SLOTS }
}

/// Parts of the machine, which handle its events.
#[derive(Debug)]
pub struct Host {
    domains: Domains,
    bulk: Bulk,
    /// Numbers of frames taken off the card by its driver, and of acknowledgements sent.
    polled: u64,
    left: u64,
    interrupt: Option<EventKey>,
    last: Option<Instant>,
    service: Service,
    guest: Guest,
    cache: LastLevelCache,
}

/// Machine with a network card that runs in virtual time.
pub type Net = Engine<Host>;

/// Results of a measured interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Results {
    /// Payload that the guest's program read, Gb/s.
    pub throughput_gbps: f64,
    /// Use of both processors, in percent of one.
    pub cpu_total_pct: f64,
    /// Processor use of the service domain, including the hypervisor's work for it, in percent of its processor.
    pub service_pct: f64,
}

impl Net {
    /// Creates the machine with idle processors.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let (mut core, domains) = Domains::build(&plan.table, plan.path);
        let guest = Guest {
            interrupted: false,
            polls: false,
            inbox: 0,
            unread: 0,
            read: 0,
            acknowledged: 0,
            acks: 0,
            unacknowledged: 0,
            buffers: BufferRing::new(window(plan.path)),
        };
        let begin = Generator::named(plan.seed, "stream begins").below(INTERVAL.picos());
        let interrupt = Some(core.schedule(Instant::ZERO + Span::from_picos(begin), Event::Interrupt));
        let system = Host {
            domains,
            bulk: Bulk::new(BITS_PER_SECOND, window(plan.path).into()),
            polled: 0,
            left: 0,
            interrupt,
            last: None,
            service: Service::default(),
            guest,
            cache: LastLevelCache::new(plan.table[Cost::LastLevelCache] * 1_024),
        };
        Self { core, system }
    }

    /// Runs for `warm_up`, then for `span`. Returns the results of `span`.
    ///
    /// # Errors
    /// [`Defect`] of the model.
    pub fn measure(&mut self, warm_up: Span, span: Span) -> Result<Results, Defect> {
        let (before, usage) = self.observe((warm_up, span), |host: &Host| host.guest.read)?;
        let bits = (self.system.guest.read - before) as f64 * TCP_PAYLOAD as f64 * 8.0;
        let service = self.system.domains.service_id;
        Ok(Results {
            throughput_gbps: bits / span.as_secs_f64() / 1e9,
            cpu_total_pct: usage.percent(usage.busy()),
            service_pct: usage.percent(usage.own(service) + usage.hypervisor_for(service)),
        })
    }
}

impl Host {
    /// Takes up to a turn's frames off the card, and enables its interrupt if none is left. Returns their
    /// number.
    fn poll(&mut self, step: &mut Step, core: &mut Core) -> u64 {
        step.charge(Category::Kernel, core.table[Cost::Softirq]);
        step.charge(Category::Driver, core.table[Cost::NapiEntry]);
        self.bulk.count(self.guest.read, step.began());
        let there = self.bulk.arrived() - self.polled;
        let frames = there.min(TURN);
        step.charge(Category::Driver, frames * core.table[Cost::RxDriver]);
        self.polled += frames;
        *self.polls() = frames == TURN;
        self.await_frames(step.began(), core);
        frames
    }

    /// Returns the polling flag of the card's driver.
    fn polls(&mut self) -> &mut bool {
        if self.domains.path == Path::Direct { &mut self.guest.polls } else { &mut self.service.polls }
    }

    /// Schedules the card's next interrupt after the interval, unless the card is polled or no frame can arrive
    /// before something is read.
    fn await_frames(&mut self, now: Instant, core: &mut Core) {
        let nothing_comes = self.bulk.is_shut(self.guest.read) && self.on_card() == 0;
        if self.interrupt.is_none() && !*self.polls() && !nothing_comes {
            let due = self.last.map_or(now, |last| last + INTERVAL).max(now);
            self.interrupt = Some(core.schedule(due, Event::Interrupt));
        }
    }

    fn on_card(&self) -> u64 {
        self.bulk.arrived() - self.polled
    }

    /// Executes the service domain: an event first, otherwise a turn of polling, of frames to the guest, or
    /// of acknowledgements.
    fn execute_service(&mut self, mut step: Step, core: &mut Core) {
        let mut tells = false;
        if self.service.interrupted {
            self.service.interrupted = false;
            self.service.polls = true;
            upcall(&mut step, &core.table);
        } else if self.service.called {
            self.service.called = false;
            upcall(&mut step, &core.table);
        } else {
            tells = (0..3).find_map(|_| self.turn(&mut step, core)).unwrap_or(false);
        }
        let tells = tells && !self.guest.polls && !core::mem::replace(&mut self.guest.interrupted, true);
        if tells {
            Domains::send(core, self.domains.guest, &mut step);
        }
        let service = &self.service;
        let works = service.interrupted || service.called || service.polls || service.queued > 0;
        let then = if works || self.guest.acks > 0 { AfterStep::Continue } else { AfterStep::Block };
        if then == AfterStep::Block {
            step.charge(Category::Hypercall, core.table[Cost::HypercallPv]);
        }
        let done = step.now();
        core.finish(step, then);
        if tells {
            core.wake(self.domains.guest, done);
        }
    }

    /// Takes the next turn with work. Returns whether the guest has new work, or `None` if the turn has none.
    fn turn(&mut self, step: &mut Step, core: &mut Core) -> Option<bool> {
        self.service.turn = (self.service.turn + 1) % 3;
        let is_sorted = self.domains.path == Path::Vmdq;
        match self.service.turn {
            0 if self.service.polls => {
                let frames = self.poll(step, core);
                let table = &core.table;
                if is_sorted {
                    // The card has written into guest pages and gets as many new ones.
                    step.charge(Category::Driver, frames * table[Cost::TxDriver]);
                    self.guest.inbox += frames;
                } else {
                    step.charge(Category::Kernel, frames * table[Cost::RxSkb]);
                    step.charge(Category::Bridge, frames * table[Cost::Bridge]);
                    self.service.queued += frames;
                }
                Some(is_sorted && frames > 0)
            }
            1 if self.service.queued > 0 => {
                let frames = self.service.queued.min(TURN);
                let copy = core.table.bytes(Cost::CopyCold, (TCP_HEADERS + TCP_PAYLOAD) as u64);
                step.charge(Category::Kernel, core.table[Cost::Softirq]);
                step.charge(Category::Backend, frames * core.table[Cost::Backend]);
                step.charge(Category::Grant, frames * (core.table[Cost::GrantCopy] + copy));
                self.service.queued -= frames;
                self.guest.inbox += frames;
                Some(true)
            }
            2 if self.guest.acks > 0 => {
                let acks = self.guest.acks.min(TURN);
                let bridge = if is_sorted { 0 } else { core.table[Cost::Bridge] };
                step.charge(Category::Kernel, core.table[Cost::Softirq]);
                step.charge(Category::Backend, acks * core.table[Cost::Backend]);
                step.charge(Category::Grant, acks * core.table[Cost::GrantMapUnmap]);
                step.charge(Category::Bridge, acks * bridge);
                step.charge(
                    Category::Driver,
                    acks * core.table[Cost::TxDriver] + core.table[Cost::MmioWrite],
                );
                self.guest.acks -= acks;
                self.left += acks;
                Some(false)
            }
            _ => None,
        }
    }

    fn execute_guest(&mut self, mut step: Step, core: &mut Core) {
        let mut calls = false;
        if self.guest.interrupted {
            self.guest.interrupted = false;
            self.guest.polls = true;
            self.domains.guest_takes(&mut step, &core.table);
        } else if self.guest.polls {
            calls = self.guest_polls(&mut step, core);
        } else if self.guest.unread > 0 {
            self.guest_reads(&mut step, core);
        }
        let guest = &self.guest;
        let works = guest.interrupted || guest.polls || guest.unread > 0;
        let then = if works { AfterStep::Continue } else { AfterStep::Block };
        if calls {
            step.charge(Category::Hypercall, core.table[Cost::HypercallPv]);
            Domains::send(core, self.domains.service, &mut step);
        }
        if then == AfterStep::Block {
            self.domains.guest_sleeps(&mut step, &core.table);
        }
        let done = step.now();
        core.finish(step, then);
        if calls {
            self.service.called = true;
            core.wake(self.domains.service, done);
        }
    }

    /// Polls the network card or the front end in the guest's step. Returns `true` if the service domain must be
    /// notified of acknowledgements.
    fn guest_polls(&mut self, step: &mut Step, core: &mut Core) -> bool {
        let is_direct = self.domains.path == Path::Direct;
        let frames = if is_direct {
            self.poll(step, core)
        } else {
            let frames = self.guest.inbox.min(TURN);
            step.charge(Category::Kernel, core.table[Cost::Softirq]);
            step.charge(Category::Driver, core.table[Cost::NapiEntry]);
            step.charge(Category::Driver, frames * core.table[Cost::Frontend]);
            self.guest.inbox -= frames;
            self.guest.polls = self.guest.inbox > 0;
            frames
        };
        let (guest, table) = (&mut self.guest, &core.table);
        step.charge(Category::Kernel, frames * (table[Cost::RxSkb] + table[Cost::RxTcp]));
        guest.unread += frames;
        guest.unacknowledged += frames;
        let acks = guest.unacknowledged / PER_ACK;
        guest.unacknowledged %= PER_ACK;
        guest.acknowledged += acks;
        step.charge(Category::Kernel, acks * table[Cost::RxAck]);
        let sending = if is_direct { Cost::TxDriver } else { Cost::Frontend };
        step.charge(Category::Driver, acks * table[sending]);
        if is_direct {
            step.charge(Category::Driver, u64::from(acks > 0) * table[Cost::MmioWrite]);
            self.left += acks;
            return false;
        }
        // A back end with pending acknowledgements checks for more before it sleeps.
        let calls = guest.acks == 0 && acks > 0;
        guest.acks += acks;
        calls && !self.service.called
    }

    /// Reads frames with a system call of the program, which opens the window.
    fn guest_reads(&mut self, step: &mut Step, core: &mut Core) {
        let frames = self.guest.unread.min(READ);
        step.charge(Category::User, core.table[Cost::RxWake]);
        for _ in 0..frames {
            let is_near = self.guest.buffers.touch(&mut self.cache, TCP_PAYLOAD as u64);
            let rate = if is_near { Cost::RxCopy } else { Cost::CopyCold };
            step.charge(Category::User, core.table.bytes(rate, TCP_PAYLOAD as u64));
        }
        self.bulk.count(self.guest.read, step.began());
        self.guest.unread -= frames;
        self.guest.read += frames;
        self.await_frames(step.began(), core);
    }
}

impl Actor for Host {
    type Event = Event;

    fn handle(&mut self, Event::Interrupt: Event, now: Instant, core: &mut Core) {
        (self.interrupt, self.last) = (None, Some(now));
        let is_direct = self.domains.path == Path::Direct;
        let pends = if is_direct { &mut self.guest.interrupted } else { &mut self.service.interrupted };
        *pends = true;
        self.domains.interrupt(core, now);
    }

    fn execute(&mut self, step: Step, core: &mut Core) {
        if step.vcpu() == self.domains.service {
            self.execute_service(step, core);
        } else {
            self.execute_guest(step, core);
        }
    }

    fn check_books(&self, books: &mut Books) {
        let Host { bulk, service, guest, .. } = self;
        let inside = service.queued + guest.inbox + guest.unread;
        books.balance("frames that the driver polled", self.polled, inside + guest.read);
        books.never("frames beyond the TCP window", bulk.beyond(guest.read));
        books.balance("acknowledgements", guest.acknowledged, self.left + guest.acks);
        books.balance(
            "segments acknowledged",
            guest.acknowledged * PER_ACK + guest.unacknowledged,
            guest.unread + guest.read,
        );
    }
}
