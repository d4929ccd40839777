//! A lightweight hypervisor under one guest that owns its machine except the PF of a 10 Gb/s card (Iida et
//! al., on BitVisor). The guest has its VF, APIC and timer without VM exits; sensitive instructions exit. A
//! PF driver with interrupts makes every interrupt of the guest exit, since external-interrupt exiting is all
//! or nothing.
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

use super::books::ConservationChecks;
use super::engine::{Actor, ModelDefect, Simulation};
use super::parts::thin::admin::{AdminQueueFirmware, VFS, VfMessage};
use super::parts::thin::monitor::PfInboxThread;
use avf::admin::SIZE;
use driver::avf::inbox::{VfMessageInbox, VfMessageInboxLimits};
use driver::avf::queue::AdminReceiveQueue;
use guest::ThinHypervisorGuest;
use hypervisor::account::CycleCategory;
use hypervisor::cost::{CostConstant, CostTable};
use hypervisor::cpu::{HardwareThreadId, HostMachine, ProcessorConfig, VcpuStep};
use hypervisor::domain::DomainKind;
use sim::{RandomStream, VirtualDuration, VirtualInstant};
use traffic::SingleClientWire;

/// Method by which the PF driver is notified of VF requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PfNotificationMethod {
    /// PF driver with interrupts, for which every interrupt of the guest causes a VM exit.
    Classical,
    /// PF driver without interrupts, which polls at VM exits for other reasons, so that no interrupt causes
    /// an exit.
    Interruptless,
    /// PF driver with interrupts, of which only the PF's cause VM exits: the guest's interrupts are posted.
    Posted,
}

/// Traffic between the client and the guest: a TCP stream or requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireTraffic {
    /// Traffic of a TCP stream, sent at the rate of wire and window.
    Stream,
    /// Traffic of requests of 64 bytes, each sent some time after the previous answer.
    Requests,
}

/// Parameters of the machine under a lightweight hypervisor.
#[derive(Debug, Clone)]
pub struct ThinHypervisorSetup {
    /// Cost table of the machine's processor.
    pub table: CostTable,
    /// Method by which the PF driver is notified of VF requests.
    pub pf: PfNotificationMethod,
    /// A busy program runs on the guest's processor.
    pub busy: bool,
    /// Traffic between the client and the guest.
    pub load: WireTraffic,
    /// Card, wire and kernels of the machine.
    pub properties: ThinHypervisorProperties,
    /// Seed of the phases of clocks and traffic.
    pub seed: u64,
}

/// Card, wire and kernels of the machine under a lightweight hypervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThinHypervisorProperties {
    /// Speed of the wire in bits per second.
    pub bits_per_second: u64,
    /// Time that a 64-byte request takes one way: wire, card and the client's machine.
    pub one_way: VirtualDuration,
    /// Minimum time between an answer and the client's next request; the maximum is twice as long.
    pub pause: VirtualDuration,
    /// Interval between interrupts of the VF in bulk traffic.
    pub interval: VirtualDuration,
    /// Interval between requests of the VF to the PF: link and statistics, by the guest's driver.
    pub request_interval: VirtualDuration,
    /// Window of the stream in frames in flight or unread.
    pub window: u64,
    /// Number of frames per poll of the receive ring.
    pub poll: u64,
    /// Number of frames that the guest's receiver reads in one step of the guest's virtual CPU.
    pub read: u64,
    /// Period of the guest's timer tick.
    pub tick: VirtualDuration,
    /// VM exits of the guest per second for sensitive instructions.
    pub exits: u64,
}

#[cfg(test)]
impl ThinHypervisorProperties {
    /// Returns the machine of Iida et al.: the driver's default of 20 us between interrupts, and a window of 2 MB.
    pub(crate) const fn iida(is_busy: bool) -> Self {
        Self {
            bits_per_second: 10_000_000_000,
            one_way: VirtualDuration::from_micros(8),
            pause: VirtualDuration::from_micros(100),
            interval: VirtualDuration::from_micros(20),
            request_interval: VirtualDuration::from_millis(10),
            window: 1_448,
            poll: 64,
            read: 16,
            tick: VirtualDuration::from_millis(1),
            exits: if is_busy { 1_000 } else { 200 },
        }
    }
}

/// Number of slots of the PF driver's admin queue.
pub(crate) const SLOTS: u16 = 32;
/// Bytes of a buffer of the admin queue, as in Linux.
const BUFFER: u16 = 4_096;
/// Maximum number of messages that the PF driver processes per poll of its inbox, and number of polls between
/// its checks for VF resets.
const LIMITS: VfMessageInboxLimits = VfMessageInboxLimits { messages: 8, resets_every: 16 };
/// Creates the PF driver's inbox on an admin receive queue in `ring`; no message of the experiments fills a
/// buffer.
pub(crate) fn inbox(ring: &mut [u8]) -> VfMessageInbox {
    VfMessageInbox::new(AdminReceiveQueue::new(SLOTS, BUFFER, 0, VFS, ring), LIMITS, VFS)
}

/// Number of registers that report resets of 128 VFs.
pub(crate) const RESET_REGISTERS: u64 = 4;

/// Event of the machine under a lightweight hypervisor.
#[derive(Debug, Clone, Copy)]
pub enum ThinHypervisorEvent {
    /// Event: the VF's interrupt is due.
    Interrupt,
    /// Event: the guest executes a sensitive instruction, which causes a VM exit.
    Exit,
    /// Event: the guest's own timer ticks.
    Tick,
    /// Event: the guest's driver sends the PF a request.
    Ask,
    /// Event: a client sends the guest's program a request.
    Request,
}

type ThinHypervisorCore = super::engine::SimulationCore<ThinHypervisorEvent>;

/// Modelled machine under a lightweight hypervisor; handles the events of guest, card and PF driver.
#[derive(Debug)]
pub struct ThinHypervisorMachine {
    pf: PfNotificationMethod,
    properties: ThinHypervisorProperties,
    exits: RandomStream,
    every: VirtualDuration,
    guest: ThinHypervisorGuest,
    wire: SingleClientWire,
    ring: Vec<u8>,
    card: AdminQueueFirmware,
    monitor: PfInboxThread,
    served: u64,
    /// Number of VM exits for interrupts.
    interrupt_exits: u64,
    /// Number of VM exits for reasons other than interrupts.
    other_exits: u64,
}

/// Machine under a lightweight hypervisor that runs in virtual time.
pub type ThinHypervisorSimulation = Simulation<ThinHypervisorMachine>;

/// Throughput, VM exits and latency of a measured interval.
#[derive(Debug, Clone, PartialEq)]
pub struct ThinHypervisorResults {
    /// Payload that the guest's program read, Gb/s.
    pub throughput_gbps: f64,
    /// Processor time of the guest in percent of a processor, without the time of the guest's busy program.
    pub guest_pct: f64,
    /// Number of VM exits for interrupts per second.
    pub interrupt_exits_per_s: f64,
    /// Number of VM exits for other reasons per second.
    pub other_exits_per_s: f64,
    /// Times from each request to its answer, us, shortest first.
    pub latencies_us: Vec<f64>,
}

impl ThinHypervisorSimulation {
    /// Creates the machine, and schedules the first VM exit, tick, PF request and traffic.
    #[must_use]
    pub fn new(plan: &ThinHypervisorSetup) -> Self {
        let mut core = ThinHypervisorCore::new(
            plan.table.clone(),
            HostMachine::new(ProcessorConfig::from_table(&plan.table, 1, 1)),
        );
        let domain = core.processors.add_domain(DomainKind::Hvm, "guest".into());
        let vcpu = core.processors.add_vcpu(domain, HardwareThreadId::new(0));
        let mut ring = vec![0; usize::from(SLOTS) * SIZE];
        let monitor = PfInboxThread::new(inbox(&mut ring));
        let properties = plan.properties;
        let mut system = ThinHypervisorMachine {
            pf: plan.pf,
            properties,
            exits: RandomStream::named(plan.seed, "sensitive instructions"),
            every: VirtualDuration::from_nanos(1_000_000_000 / properties.exits),
            guest: ThinHypervisorGuest::new(vcpu, plan.busy),
            wire: SingleClientWire::new(plan),
            ring,
            card: AdminQueueFirmware::new(SLOTS),
            monitor,
            served: 0,
            interrupt_exits: 0,
            other_exits: 0,
        };
        let first = VirtualInstant::ZERO + VirtualDuration::from_micros(1);
        match plan.load {
            WireTraffic::Stream => system.await_frames(first, &mut core),
            WireTraffic::Requests => {
                core.schedule(first, ThinHypervisorEvent::Request);
            }
        }
        core.schedule(first, ThinHypervisorEvent::Exit);
        core.schedule(first + properties.request_interval, ThinHypervisorEvent::Ask);
        core.schedule(first + properties.tick, ThinHypervisorEvent::Tick);
        core.wake(vcpu, VirtualInstant::ZERO);
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
    ) -> Result<ThinHypervisorResults, ModelDefect> {
        let counts = |host: &ThinHypervisorMachine| {
            let ThinHypervisorMachine { guest, interrupt_exits, other_exits, wire, .. } = host;
            ([guest.read, *interrupt_exits, *other_exits], wire.answered.len())
        };
        let ((before, answered), usage) = self.observe((warm_up, span), counts)?;
        let (after, _) = counts(&self.system);
        let per_second = |n: usize| (after[n] - before[n]) as f64 / span.as_secs_f64();
        let networking: u64 = CycleCategory::ALL
            .into_iter()
            .filter(|category| !category.is_hypervisor() && *category != guest::BUSY)
            .map(|category| usage.category(category))
            .sum();
        let mut latencies_us: Vec<f64> =
            self.system.wire.answered[answered..].iter().map(|took| took.as_secs_f64() * 1e6).collect();
        latencies_us.sort_by(f64::total_cmp);
        Ok(ThinHypervisorResults {
            throughput_gbps: per_second(0) * 8.0 / 1e9,
            guest_pct: usage.percent(networking),
            interrupt_exits_per_s: per_second(1),
            other_exits_per_s: per_second(2),
            latencies_us,
        })
    }
}

impl ThinHypervisorMachine {
    /// Handles a VM exit for a sensitive instruction; a PF driver without interrupts polls its inbox in this
    /// exit.
    fn exit(&mut self, now: VirtualInstant, core: &mut ThinHypervisorCore) {
        let wait = VirtualDuration::from_picos(
            self.exits.within(self.every.picos() / 2..self.every.picos() * 3 / 2),
        );
        core.schedule(now + wait, ThinHypervisorEvent::Exit);
        self.other_exits += 1;
        let mut cycles = core.table[CostConstant::ExitOther];
        if self.pf == PfNotificationMethod::Interruptless {
            cycles += self.visit(core);
        }
        self.steal(CycleCategory::OtherExit, cycles, now, core);
    }

    /// Runs one poll of the PF driver's inbox by the monitor thread. Returns the cost of the poll in cycles.
    fn visit(&mut self, core: &ThinHypervisorCore) -> u64 {
        if !self.monitor.enter() {
            return 0;
        }
        let visit = self.monitor.visit(&mut self.ring, &mut self.card, &mut 0);
        self.monitor.leave();
        self.served += visit.served.len() as u64;
        let registers = if visit.checked_resets { RESET_REGISTERS } else { 0 };
        let table = &core.table;
        table[CostConstant::RxSkb]
            + registers * table[CostConstant::MmioRead]
            + u64::from(visit.wrote_tail) * table[CostConstant::MmioWrite]
            + visit.served.len() as u64 * table[CostConstant::InterruptHandler]
    }

    /// Sends a request of the guest's VF driver to the PF driver, which is interrupted or polls later.
    fn ask(&mut self, now: VirtualInstant, core: &mut ThinHypervisorCore) {
        core.schedule(now + self.properties.request_interval, ThinHypervisorEvent::Ask);
        let message = VfMessage { vf: 0, operation: 15, length: 8 };
        self.card.send(message, &mut self.ring);
        if self.pf != PfNotificationMethod::Interruptless {
            self.interrupt_exits += 1;
            let cycles = core.table[CostConstant::ExitExternalInterrupt] + self.visit(core);
            self.steal(CycleCategory::ExternalInterrupt, cycles, now, core);
        }
    }

    fn steal(
        &mut self,
        category: CycleCategory,
        cycles: u64,
        now: VirtualInstant,
        core: &mut ThinHypervisorCore,
    ) {
        let (thread, domain) =
            (core.processors.home(self.guest.vcpu), core.processors.domain_of(self.guest.vcpu));
        core.processors.steal(thread, domain, category, cycles, now);
    }

    /// Interrupts the guest for its VF. With external-interrupt exiting the guest exits, and exits again if
    /// interrupts were disabled, once they are enabled.
    fn interrupt(&mut self, now: VirtualInstant, core: &mut ThinHypervisorCore) {
        if self.pf == PfNotificationMethod::Classical {
            let running = core.processors.running(core.processors.home(self.guest.vcpu), now).is_some();
            let disabled = running && self.guest.has_disabled_interrupts;
            let window = if disabled { core.table[CostConstant::ExitInterruptWindow] } else { 0 };
            self.interrupt_exits += 1 + u64::from(disabled);
            let cycles = core.table[CostConstant::ExitExternalInterrupt]
                + core.table[CostConstant::Injection]
                + window;
            self.steal(CycleCategory::ExternalInterrupt, cycles, now, core);
        }
        self.guest.interrupted = true;
        core.wake(self.guest.vcpu, now);
    }
}

impl Actor for ThinHypervisorMachine {
    type Event = ThinHypervisorEvent;

    fn handle(&mut self, event: ThinHypervisorEvent, now: VirtualInstant, core: &mut ThinHypervisorCore) {
        match event {
            ThinHypervisorEvent::Interrupt => {
                self.wire.interrupt = None;
                self.wire.interrupted = Some(now);
                self.interrupt(now, core);
            }
            ThinHypervisorEvent::Exit => self.exit(now, core),
            ThinHypervisorEvent::Ask => self.ask(now, core),
            ThinHypervisorEvent::Tick => {
                core.schedule(now + self.properties.tick, ThinHypervisorEvent::Tick);
                self.guest.ticks += 1;
                core.wake(self.guest.vcpu, now);
            }
            ThinHypervisorEvent::Request => self.request(now, core),
        }
    }

    fn execute(&mut self, step: VcpuStep, core: &mut ThinHypervisorCore) {
        self.execute_guest(step, core);
    }

    fn check_books(&self, books: &mut ConservationChecks) {
        let waiting = self.card.written - self.served;
        books.never("requests of VFs served twice", self.served.saturating_sub(self.card.written));
        books.never("requests of VFs that no visit served", waiting.saturating_sub(u64::from(SLOTS)));
        books.never("requests of VFs refused", self.card.refused);
        self.wire.check_books(&self.guest, books);
    }
}
