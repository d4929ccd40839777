//! A stream to the guest. Through the service domain: its card's interrupt, its poll, the bridge, the back end's copy
//! into a page of the guest, an event; and the same way back for every acknowledgement. With a queue of the card for the
//! guest: no bridge and no copy, and the guest's pages stay mapped for the card (Santos et al., USENIX ATC 2008). With a
//! card of its own: the guest's own interrupt and poll. Left out: losses, the guest's sends beside acknowledgements, segments that card or
//! kernel merges.

use super::{Domains, Path, upcall};
use crate::machine::books::Books;
use crate::machine::engine::{Actor, Defect, Engine};
use crate::machine::parts::bulk::Bulk;
use crate::machine::parts::guest::RING;
use guest::packet::{TCP_HEADERS, TCP_PAYLOAD};
use hypervisor::account::{Category, Charge};
use hypervisor::cost::{Cost, CostTable};
use hypervisor::cpu::{BufferRing, LastLevelCache, Step, Then};
use sim::{EventKey, Generator, Instant, Span};

/// What a machine is to be.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What things cost.
    pub table: CostTable,
    /// How the guest reaches the wire.
    pub path: Path,
    /// Decides when the stream begins.
    pub seed: u64,
}

const BITS_PER_SECOND: u64 = 10_000_000_000;
/// From one interrupt of the card to the next: 8,000 a second, as drivers of such cards have it by default.
const INTERVAL: Span = Span::from_micros(125);
/// Frames of a turn, frames of a system call of the reader, segments of an acknowledgement.
const TURN: u64 = 64;
const READ: u64 = 16;
const PER_ACK: u64 = 2;

/// What happens.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// The card interrupts.
    Interrupt,
}

type Core = crate::machine::engine::Core<Event>;

/// The service domain's side.
#[derive(Debug, Default)]
struct Service {
    /// An interrupt of the card, or an event of the guest, pends.
    interrupted: bool,
    called: bool,
    polls: bool,
    turn: u8,
    /// Frames that were polled and wait for the back end.
    queued: u64,
}

/// The guest's side.
#[derive(Debug)]
struct Guest {
    interrupted: bool,
    polls: bool,
    /// Frames on its ring, and frames that its program has not read.
    inbox: u64,
    unread: u64,
    read: u64,
    /// Acknowledgements made, and those that wait for the service domain.
    acknowledged: u64,
    acks: u64,
    owes: u64,
    buffers: BufferRing,
}

/// Frames under way or unread: as many pages as a driver posts. What has no page is lost, and a stream finds a window that
/// fits.
fn window(path: Path) -> u32 {
    if path == Path::Direct { RING.into() } else { split::ring::SLOTS }
}

/// The parts.
#[derive(Debug)]
pub struct Host {
    domains: Domains,
    bulk: Bulk,
    /// Frames that whoever drives the card has taken off it, and acknowledgements that have left.
    polled: u64,
    left: u64,
    interrupt: Option<EventKey>,
    last: Option<Instant>,
    service: Service,
    guest: Guest,
    cache: LastLevelCache,
}

/// The machine that runs.
pub type Net = Engine<Host>;

/// What happened in a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// Payload that the guest's program has read, Gb/s.
    pub throughput_gbps: f64,
    /// All of both processors that was in use, percent of one.
    pub cpu_total_pct: f64,
    /// The service domain with what the hypervisor did for it, percent of its processor.
    pub service_pct: f64,
}

impl Net {
    /// Puts a machine together.
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
            owes: 0,
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

    /// Runs `warm_up`, then `span`, and says what happened in the latter.
    ///
    /// # Errors
    /// [`Defect`], of the model.
    pub fn measure(&mut self, warm_up: Span, span: Span) -> Result<Found, Defect> {
        let (before, usage) = self.observe((warm_up, span), |host: &Host| host.guest.read)?;
        let bits = (self.system.guest.read - before) as f64 * TCP_PAYLOAD as f64 * 8.0;
        let service = self.system.domains.service_id;
        Ok(Found {
            throughput_gbps: bits / span.as_secs_f64() / 1e9,
            cpu_total_pct: usage.percent(usage.busy()),
            service_pct: usage.percent(usage.own(service) + usage.hypervisor_for(service)),
        })
    }
}

impl Host {
    /// Takes frames off the card, up to a turn's, and lets it interrupt again if there are no more: how many there were.
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

    /// Whether whoever drives the card polls it.
    fn polls(&mut self) -> &mut bool {
        if self.domains.path == Path::Direct { &mut self.guest.polls } else { &mut self.service.polls }
    }

    /// The card is to interrupt when the interval is over, unless it is polled, or nothing can come before something was
    /// read.
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

    /// The service domain: first an event, then a turn of a poll, of frames to the guest, or of acknowledgements.
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
        let then = if works || self.guest.acks > 0 { Then::Continue } else { Then::Block };
        if then == Then::Block {
            step.charge(Category::Hypercall, core.table[Cost::HypercallPv]);
        }
        let done = step.now();
        core.finish(step, then);
        if tells {
            core.wake(self.domains.guest, done);
        }
    }

    /// The next turn, if there is something to do in it: whether there is something for the guest.
    fn turn(&mut self, step: &mut Step, core: &mut Core) -> Option<bool> {
        self.service.turn = (self.service.turn + 1) % 3;
        let is_sorted = self.domains.path == Path::Vmdq;
        match self.service.turn {
            0 if self.service.polls => {
                let frames = self.poll(step, core);
                let table = &core.table;
                if is_sorted {
                    // The card has written into pages of the guest, and is given as many others.
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
        let then = if works { Then::Continue } else { Then::Block };
        if calls {
            step.charge(Category::Hypercall, core.table[Cost::HypercallPv]);
            Domains::send(core, self.domains.service, &mut step);
        }
        if then == Then::Block {
            self.domains.guest_sleeps(&mut step, &core.table);
        }
        let done = step.now();
        core.finish(step, then);
        if calls {
            self.service.called = true;
            core.wake(self.domains.service, done);
        }
    }

    /// The guest's poll: whether the service domain is to hear of acknowledgements.
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
        guest.owes += frames;
        let acks = guest.owes / PER_ACK;
        guest.owes %= PER_ACK;
        guest.acknowledged += acks;
        step.charge(Category::Kernel, acks * table[Cost::RxAck]);
        let sending = if is_direct { Cost::TxDriver } else { Cost::Frontend };
        step.charge(Category::Driver, acks * table[sending]);
        if is_direct {
            step.charge(Category::Driver, u64::from(acks > 0) * table[Cost::MmioWrite]);
            self.left += acks;
            return false;
        }
        // A back end that has some already looks for more before it sleeps.
        let calls = guest.acks == 0 && acks > 0;
        guest.acks += acks;
        calls && !self.service.called
    }

    /// A system call of the program, which opens the window again.
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

    fn owes(&self, books: &mut Books) {
        let Host { bulk, service, guest, .. } = self;
        let inside = service.queued + guest.inbox + guest.unread;
        books.balance("frames that were polled", self.polled, inside + guest.read);
        books.never("frames beyond the window", bulk.beyond(guest.read));
        books.balance("acknowledgements", guest.acknowledged, self.left + guest.acks);
        books.balance(
            "segments acknowledged",
            guest.acknowledged * PER_ACK + guest.owes,
            guest.unread + guest.read,
        );
    }
}
