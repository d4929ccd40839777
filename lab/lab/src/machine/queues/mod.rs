//! A current server with one guest of several processors and an adaptive VF with a queue pair for each. Each
//! processor has its own kernel instance and flow; the driver and the VF are shared. Doorbells are stores to
//! mapped pages, or VM exits whose messages the service domain carries to the card.
//!
//! | module | contents |
//! |---|---|
//! | `build` | creation |
//! | `turns` | steps of processors |
//! | `measure` | results |
//!
//! Locks and cache lines shared by a guest's processors, more flows than queues, PF requests and the card's
//! processing time are not modelled.

mod build;
mod measure;
#[cfg(test)]
mod tests;
mod turns;

pub use super::parts::avf::pair::DoorbellPath;
pub use measure::MultiqueueResults;

use super::books::ConservationChecks;
use super::chipset::Chipset;
use super::engine::{Actor, Simulation};
use super::parts::avf::AvfPort;
use super::parts::avf::pair::{DoorbellCounters, VfQueuePair};
use super::parts::guest::GuestHardware;
use driver::avf::vf::AvfDriver;
use guest::KernelModel;
use hypervisor::account::CycleCategory;
use hypervisor::cost::{CostConstant, CostTable};
use hypervisor::cpu::{LastLevelCache, VcpuId, VcpuStep};
use hypervisor::domain::DomainKind;
use sim::{EventKey, VirtualInstant};
use std::collections::VecDeque;

/// Traffic between the guest and its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MultiqueueTraffic {
    /// Traffic of a TCP stream to each processor of the guest.
    Stream,
    /// Traffic of datagrams, which each processor sends as fast as possible.
    Datagrams,
    /// Traffic of requests of one byte to the first processor, one at a time.
    Requests,
}

/// Parameters of the machine with several queue pairs.
#[derive(Debug, Clone)]
pub struct MultiqueueSetup {
    /// Cost table of the machine's processor.
    pub table: CostTable,
    /// Number of queue pairs of the VF, and of processors of the guest: one pair per processor.
    pub pairs: u8,
    /// Path of a guest's doorbells to the card.
    pub doorbell: DoorbellPath,
    /// Traffic between the guest and its clients in the queue-pair machine.
    pub load: MultiqueueTraffic,
    /// Seed of the order in which clients send.
    pub seed: u64,
}

/// Event of the modelled machine with queue pairs: of the card, or of a guest processor.
#[derive(Debug, Clone, Copy)]
pub enum MultiqueueEvent {
    /// Event: the port's card is due to be polled.
    Port,
    /// Event: the timer of this guest processor has expired.
    Timer(usize),
    /// Event: a register write of this guest processor has reached the service domain.
    Forwarded(usize),
    /// Event: the answer to a register write of this guest processor has arrived.
    Answered(usize),
}

type MultiqueueCore = super::engine::SimulationCore<MultiqueueEvent>;

/// Processor of the guest, with its kernel.
#[derive(Debug)]
struct GuestProcessor {
    kernel: KernelModel<VfQueuePair>,
    hardware: GuestHardware,
    timer: Option<EventKey>,
    /// Register writes that the processor has sent and the service domain has not made.
    messages: VecDeque<(u32, u32)>,
    /// Number of answers to register writes that the processor waits for.
    awaits: usize,
}

/// Process of the service domain that carries out register accesses of the guest.
#[derive(Debug)]
struct RegisterAccessProcess {
    vcpu: VcpuId,
    /// Guest processors with pending register accesses, in the order of service.
    requests: VecDeque<usize>,
    /// Number of registers that the service domain's process has written.
    written: u64,
}

/// Modelled machine with several queue pairs; handles the events of card, guest processors and service
/// domain.
#[derive(Debug)]
pub struct MultiqueueMachine {
    chipset: Chipset,
    port: AvfPort,
    port_event: Option<EventKey>,
    driver: AvfDriver,
    doorbell: DoorbellPath,
    doorbells: DoorbellCounters,
    processors: Vec<GuestProcessor>,
    courier: RegisterAccessProcess,
    cache: LastLevelCache,
}

/// Machine with queue pairs that runs in virtual time.
pub type MultiqueueSimulation = Simulation<MultiqueueMachine>;

impl Actor for MultiqueueMachine {
    type Event = MultiqueueEvent;

    fn handle(&mut self, event: MultiqueueEvent, now: VirtualInstant, core: &mut MultiqueueCore) {
        match event {
            MultiqueueEvent::Port => {
                self.port_event = None;
                self.sync(now, core);
            }
            MultiqueueEvent::Timer(processor) => {
                self.processors[processor].timer = None;
                self.timer(processor, now, core);
            }
            MultiqueueEvent::Forwarded(processor) => {
                self.courier.requests.push_back(processor);
                core.tell(self.courier.vcpu, DomainKind::Dom0, 0, now);
                core.wake(self.courier.vcpu, now);
            }
            MultiqueueEvent::Answered(processor) => self.answered(processor, now, core),
        }
    }

    /// Executes a step of a virtual CPU: the first one is that of the service domain, the others are the
    /// guest's.
    fn execute(&mut self, step: VcpuStep, core: &mut MultiqueueCore) {
        match step.vcpu().index().checked_sub(1) {
            None => self.execute_courier(step, core),
            Some(processor) => self.execute_guest(processor, step, core),
        }
    }

    fn check_books(&self, books: &mut ConservationChecks) {
        self.port.check_books(books);
        let broken = self.processors.iter().find_map(|it| it.hardware.broken).or(self.chipset.broken);
        if let Some(broken) = broken {
            books.never(&broken.to_string(), 1);
        }
        books.never("interrupts blocked without a forged message", self.chipset.remapper.blocked());
        books.never("requests of functions to memory of others", self.chipset.escaped);
        let waiting: usize = self.processors.iter().map(|it| it.messages.len()).sum();
        books.balance("accesses that exited", self.doorbells.exits, self.courier.written + waiting as u64);
    }
}

impl MultiqueueMachine {
    /// Advances the card's port to `now`.
    fn sync(&mut self, now: VirtualInstant, core: &mut MultiqueueCore) {
        let next = self.port.sync(now, &mut self.chipset);
        self.settle(next, now, core);
    }

    /// Delivers the port's interrupts and schedules its next poll.
    fn settle(&mut self, next: Option<VirtualInstant>, now: VirtualInstant, core: &mut MultiqueueCore) {
        self.port_event = core.replace(self.port_event, next, MultiqueueEvent::Port);
        let mut sent = core::mem::take(&mut self.port.functions.sent);
        for (rid, message) in sent.drain(..) {
            let Some(interrupt) = self.chipset.deliver_message(rid, message) else { continue };
            // Vector 0 is the mailbox's, which is not used.
            let Some(processor) = usize::from(interrupt.owner.entry).checked_sub(1) else { continue };
            let hardware = &mut self.processors[processor].hardware;
            hardware.controller.request(super::vectors::DEVICE_VECTOR, &mut self.chipset.channels);
            core.tell(hardware.vcpu, hardware.kind, 0, now);
            self.wake(processor, now, core);
        }
        self.port.functions.sent = sent;
    }

    /// Wakes a guest processor that has work, unless the processor waits for the answer to a register write.
    fn wake(&mut self, processor: usize, now: VirtualInstant, core: &mut MultiqueueCore) {
        let hardware = &self.processors[processor].hardware;
        if !hardware.waits {
            core.wake(hardware.vcpu, now);
        }
    }

    /// Handles the answer to a register write of a guest processor, and resumes the processor after its last
    /// answer. Waking an idle thread costs more.
    fn answered(&mut self, processor: usize, now: VirtualInstant, core: &mut MultiqueueCore) {
        let GuestProcessor { hardware, awaits, .. } = &mut self.processors[processor];
        *awaits -= 1;
        if *awaits > 0 {
            return;
        }
        hardware.waits = false;
        let (thread, domain) = (core.processors.home(hardware.vcpu), hardware.domain);
        let cycles = core.table[CostConstant::EventBlocked];
        core.processors.steal(thread, domain, CycleCategory::EventChannel, cycles, now);
        core.wake(hardware.vcpu, now);
    }

    /// Handles a guest processor's timer: the hypervisor's own timer interrupt, and the guest's.
    fn timer(&mut self, processor: usize, now: VirtualInstant, core: &mut MultiqueueCore) {
        let hardware = &mut self.processors[processor].hardware;
        hardware.controller.run_timer(now, &mut self.chipset.channels);
        let (thread, domain) = (core.processors.home(hardware.vcpu), hardware.domain);
        core.processors.steal(
            thread,
            domain,
            CycleCategory::Timer,
            core.table[CostConstant::HypervisorTick],
            now,
        );
        self.wake(processor, now, core);
        self.set_timer(processor, core);
    }

    /// Schedules a guest processor's timer as programmed by its kernel.
    fn set_timer(&mut self, processor: usize, core: &mut MultiqueueCore) {
        let GuestProcessor { hardware, timer, .. } = &mut self.processors[processor];
        *timer = core.replace(*timer, hardware.controller.deadline(), MultiqueueEvent::Timer(processor));
    }
}
