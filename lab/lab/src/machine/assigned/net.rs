//! A TCP stream to the guest. Through the service domain: the card's interrupt, a poll, the bridge, the back end's copy
//! into a guest page and an event, and the reverse for each acknowledgement. With a queue of the card for the guest: no
//! bridge and no copy, and grants are reused (Santos et al., USENIX ATC 2008). The pages of received frames stay mapped
//! for the card, and those of acknowledgements for the back end, which reads headers there. With an assigned card: the
//! guest's own interrupt and poll. No frame is lost or merged, and the guest sends only acknowledgements.

mod guest_steps;

use super::{DeviceAccessMode, ServiceAndGuestDomains, upcall};
use crate::machine::books::ConservationChecks;
use crate::machine::engine::{Actor, ModelDefect, Simulation};
use crate::machine::parts::bulk::BulkStream;
use guest::packet::{TCP_HEADERS, TCP_PAYLOAD};
use hypervisor::account::{CycleCategory, CycleSink};
use hypervisor::cost::{CostConstant, CostTable};
use hypervisor::cpu::{LastLevelCache, PacketBufferRing, VcpuStep, VcpuStepOutcome};
use sim::{EventKey, RandomStream, VirtualDuration, VirtualInstant};

/// Parameters of the machine with a network card.
#[derive(Debug, Clone)]
pub struct NicMachineSetup {
    /// Cost table of the machine's processors.
    pub table: CostTable,
    /// Path from the guest to the network's wire.
    pub path: DeviceAccessMode,
    /// Network card, with its driver and wire.
    pub card: AssignedCardProperties,
    /// Seed of the stream's start time.
    pub seed: u64,
}

/// Network card of the machine, with its driver, its wire, and the program that reads the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AssignedCardProperties {
    /// Speed of the wire in bits per second.
    pub bits_per_second: u64,
    /// Least time between two interrupts of the card.
    pub interval: VirtualDuration,
    /// Buffers of the receive ring of an assigned card.
    pub receive_ring: u32,
    /// Number of frames that a domain processes before its processor takes interrupts and other work.
    pub turn: u64,
    /// Number of frames that the guest's program reads per system call.
    pub read: u64,
}

#[cfg(test)]
impl AssignedCardProperties {
    /// 10 Gb/s card with 8,000 interrupts a second, a usual default of drivers.
    pub(crate) const TEN_GIGABIT: Self = Self {
        bits_per_second: 10_000_000_000,
        interval: VirtualDuration::from_micros(125),
        receive_ring: 1_024,
        turn: 64,
        read: 16,
    };
}

/// Number of segments that the guest acknowledges together.
const PER_ACK: u64 = 2;

/// Event of the machine with a network card.
#[derive(Debug, Clone, Copy)]
pub enum NicMachineEvent {
    /// Event: the network card sends an interrupt.
    Interrupt,
}

type NetworkCore = crate::machine::engine::SimulationCore<NicMachineEvent>;

/// State of the service domain, which passes frames and TCP acknowledgements between card and guest.
#[derive(Debug, Default)]
struct ServiceDomainState {
    /// An interrupt of the network card is pending for the service domain.
    interrupted: bool,
    /// An event of the guest is pending for the service domain.
    called: bool,
    polls: bool,
    turn: u8,
    /// Number of polled frames that wait for the back end.
    queued: u64,
    /// Number of the guest's transmit pages that stay mapped, because the front end reuses their grants.
    mapped: u64,
}

/// State of the guest, whose program reads the stream.
#[derive(Debug)]
struct NicMachineGuest {
    interrupted: bool,
    polls: bool,
    /// Number of frames on the guest's receive ring.
    inbox: u64,
    /// Number of frames in the socket that the guest's program has not read.
    unread: u64,
    read: u64,
    /// Number of TCP acknowledgements that the guest has made for received segments.
    acknowledged: u64,
    /// Number of TCP acknowledgements that wait for the service domain.
    acks: u64,
    unacknowledged: u64,
    buffers: PacketBufferRing,
}

/// Returns the stream's window, in frames in flight or unread: the number of pages that a driver posts. A frame without
/// a page is lost, so a stream settles at a window that fits.
fn window(plan: &NicMachineSetup) -> u32 {
    if plan.path == DeviceAccessMode::Direct { plan.card.receive_ring } else { split::ring::SLOTS }
}

/// Modelled machine with a network card; handles the events of card, service domain and guest.
#[derive(Debug)]
pub struct NicMachine {
    domains: ServiceAndGuestDomains,
    card: AssignedCardProperties,
    bulk: BulkStream,
    /// Number of frames that the card's driver took off the card.
    polled: u64,
    /// Number of TCP acknowledgements sent to the wire.
    left: u64,
    interrupt: Option<EventKey>,
    last: Option<VirtualInstant>,
    service: ServiceDomainState,
    guest: NicMachineGuest,
    cache: LastLevelCache,
}

/// Machine with a network card that runs in virtual time.
pub type NetworkSimulation = Simulation<NicMachine>;

/// Throughput and processor use of a measured interval with a network card.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NicMachineResults {
    /// Payload that the guest's program read, Gb/s.
    pub throughput_gbps: f64,
    /// Use of both processors, in percent of one.
    pub cpu_total_pct: f64,
    /// Processor use of the service domain, including the hypervisor's work for it, in percent of its processor.
    pub service_pct: f64,
}

impl NetworkSimulation {
    /// Creates the machine with idle processors; the stream starts at a random time.
    #[must_use]
    pub fn new(plan: &NicMachineSetup) -> Self {
        let (mut core, domains) = ServiceAndGuestDomains::build(&plan.table, plan.path);
        let guest = NicMachineGuest {
            interrupted: false,
            polls: false,
            inbox: 0,
            unread: 0,
            read: 0,
            acknowledged: 0,
            acks: 0,
            unacknowledged: 0,
            buffers: PacketBufferRing::new(window(plan)),
        };
        let begin = RandomStream::named(plan.seed, "stream begins").below(plan.card.interval.picos());
        let at = VirtualInstant::ZERO + VirtualDuration::from_picos(begin);
        let interrupt = Some(core.schedule(at, NicMachineEvent::Interrupt));
        let system = NicMachine {
            domains,
            card: plan.card,
            bulk: BulkStream::new(plan.card.bits_per_second, window(plan).into()),
            polled: 0,
            left: 0,
            interrupt,
            last: None,
            service: ServiceDomainState::default(),
            guest,
            cache: LastLevelCache::new(plan.table[CostConstant::LastLevelCache] * 1_024),
        };
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
    ) -> Result<NicMachineResults, ModelDefect> {
        let (before, usage) = self.observe((warm_up, span), |host: &NicMachine| host.guest.read)?;
        let bits = (self.system.guest.read - before) as f64 * TCP_PAYLOAD as f64 * 8.0;
        let service = self.system.domains.service_id;
        Ok(NicMachineResults {
            throughput_gbps: bits / span.as_secs_f64() / 1e9,
            cpu_total_pct: usage.percent(usage.busy()),
            service_pct: usage.percent(usage.own(service) + usage.hypervisor_for(service)),
        })
    }
}

impl NicMachine {
    /// Takes the frames of a turn off the card, and stops polling if there are fewer. Returns their number.
    fn poll(&mut self, step: &mut VcpuStep, core: &mut NetworkCore) -> u64 {
        step.charge(CycleCategory::Kernel, core.table[CostConstant::Softirq]);
        step.charge(CycleCategory::Driver, core.table[CostConstant::NapiEntry]);
        self.bulk.count(self.guest.read, step.began());
        let there = self.bulk.arrived() - self.polled;
        let frames = there.min(self.card.turn);
        step.charge(CycleCategory::Driver, frames * core.table[CostConstant::RxDriver]);
        self.polled += frames;
        *self.polls() = frames == self.card.turn;
        self.await_frames(step.began(), core);
        frames
    }

    /// Returns the flag that is set while the card's driver polls. The flag is in the state of the guest or of the
    /// service domain, whichever runs the driver.
    fn polls(&mut self) -> &mut bool {
        let is_direct = self.domains.path == DeviceAccessMode::Direct;
        if is_direct { &mut self.guest.polls } else { &mut self.service.polls }
    }

    /// Schedules the card's next interrupt after the interval, unless the card is polled or no frame can arrive before
    /// the program reads some.
    fn await_frames(&mut self, now: VirtualInstant, core: &mut NetworkCore) {
        let nothing_comes = self.bulk.is_shut(self.guest.read) && self.on_card() == 0;
        if self.interrupt.is_none() && !*self.polls() && !nothing_comes {
            let due = self.last.map_or(now, |last| last + self.card.interval).max(now);
            self.interrupt = Some(core.schedule(due, NicMachineEvent::Interrupt));
        }
    }

    fn on_card(&self) -> u64 {
        self.bulk.arrived() - self.polled
    }

    /// Executes one simulated step of the service domain: takes an interrupt or event, or else passes frames or
    /// acknowledgements on.
    fn execute_service(&mut self, mut step: VcpuStep, core: &mut NetworkCore) {
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
            ServiceAndGuestDomains::send(core, self.domains.guest, &mut step);
        }
        let service = &self.service;
        let works = service.interrupted || service.called || service.polls || service.queued > 0;
        let then =
            if works || self.guest.acks > 0 { VcpuStepOutcome::Continue } else { VcpuStepOutcome::Block };
        if then == VcpuStepOutcome::Block {
            step.charge(CycleCategory::Hypercall, core.table[CostConstant::HypercallPv]);
        }
        let done = step.now();
        core.finish(step, then);
        if tells {
            core.wake(self.domains.guest, done);
        }
    }

    /// Polls the card, copies frames to the guest, or sends acknowledgements, whichever is next in turn. Returns `true`
    /// if the guest has new work, or `None` if the service domain had nothing to do.
    fn turn(&mut self, step: &mut VcpuStep, core: &mut NetworkCore) -> Option<bool> {
        self.service.turn = (self.service.turn + 1) % 3;
        let is_sorted = self.domains.path == DeviceAccessMode::Vmdq;
        match self.service.turn {
            0 if self.service.polls => {
                let frames = self.poll(step, core);
                let table = &core.table;
                if is_sorted {
                    // The card has written into guest pages and gets as many new ones.
                    step.charge(CycleCategory::Driver, frames * table[CostConstant::TxDriver]);
                    self.guest.inbox += frames;
                } else {
                    step.charge(CycleCategory::Kernel, frames * table[CostConstant::RxSkb]);
                    step.charge(CycleCategory::Bridge, frames * table[CostConstant::Bridge]);
                    self.service.queued += frames;
                }
                Some(is_sorted && frames > 0)
            }
            1 if self.service.queued > 0 => {
                let frames = self.service.queued.min(self.card.turn);
                let copy = core.table.bytes(CostConstant::CopyCold, (TCP_HEADERS + TCP_PAYLOAD) as u64);
                step.charge(CycleCategory::Kernel, core.table[CostConstant::Softirq]);
                step.charge(CycleCategory::Backend, frames * core.table[CostConstant::Backend]);
                step.charge(CycleCategory::Grant, frames * (core.table[CostConstant::GrantCopy] + copy));
                self.service.queued -= frames;
                self.guest.inbox += frames;
                Some(true)
            }
            2 if self.guest.acks > 0 => {
                let acks = self.guest.acks.min(self.card.turn);
                let bridge = if is_sorted { 0 } else { core.table[CostConstant::Bridge] };
                step.charge(CycleCategory::Kernel, core.table[CostConstant::Softirq]);
                step.charge(CycleCategory::Backend, acks * core.table[CostConstant::Backend]);
                self.map(step, acks, &core.table);
                step.charge(CycleCategory::Bridge, acks * bridge);
                step.charge(
                    CycleCategory::Driver,
                    acks * core.table[CostConstant::TxDriver] + core.table[CostConstant::MmioWrite],
                );
                self.guest.acks -= acks;
                self.left += acks;
                Some(false)
            }
            _ => None,
        }
    }

    /// Charges the back end for access to the pages of acknowledgements. With reused grants each page of the ring is
    /// mapped once, and then the headers of an acknowledgement are read in place.
    fn map(&mut self, step: &mut VcpuStep, acks: u64, table: &CostTable) {
        let mut pages = acks;
        if self.domains.path == DeviceAccessMode::Vmdq {
            pages = acks.min(u64::from(split::ring::SLOTS) - self.service.mapped);
            self.service.mapped += pages;
            let read = table.bytes(CostConstant::CopyCold, TCP_HEADERS as u64);
            step.charge(CycleCategory::Backend, acks * read);
        }
        step.charge(CycleCategory::Grant, pages * table[CostConstant::GrantMapUnmap]);
    }
}

impl Actor for NicMachine {
    type Event = NicMachineEvent;

    fn handle(&mut self, event: NicMachineEvent, now: VirtualInstant, core: &mut NetworkCore) {
        let NicMachineEvent::Interrupt = event;
        (self.interrupt, self.last) = (None, Some(now));
        let is_direct = self.domains.path == DeviceAccessMode::Direct;
        let pends = if is_direct { &mut self.guest.interrupted } else { &mut self.service.interrupted };
        *pends = true;
        self.domains.interrupt(core, now);
    }

    fn execute(&mut self, step: VcpuStep, core: &mut NetworkCore) {
        if step.vcpu() == self.domains.service {
            self.execute_service(step, core);
        } else {
            self.execute_guest(step, core);
        }
    }

    fn check_books(&self, books: &mut ConservationChecks) {
        let NicMachine { bulk, service, guest, .. } = self;
        let inside = service.queued + guest.inbox + guest.unread;
        books.balance("frames that the driver polled", self.polled, inside + guest.read);
        books.never("frames beyond the TCP window", bulk.beyond(guest.read));
        books.balance("acknowledgements", guest.acknowledged, self.left + guest.acks);
        let confirmed = guest.acknowledged * PER_ACK + guest.unacknowledged;
        books.balance("segments acknowledged", confirmed, guest.unread + guest.read);
    }
}
