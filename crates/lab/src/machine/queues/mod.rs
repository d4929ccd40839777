//! A current server with one guest of several processors and a VF of the second family, which has a queue pair for each of
//! them. Each processor's part of the guest's kernel is a kernel of its own, with its own flow; the driver and the VF are
//! one. Doorbells are stores to mapped pages, or exits whose messages the service domain takes to the card.
//!
//! | module | what it is |
//! |---|---|
//! | `build` | putting it together |
//! | `turns` | turns of processors |
//! | `measure` | reading it |
//!
//! Left out: locks and cache lines that processors of a guest share, more flows than queues, requests to the PF, and what
//! the card itself takes.

mod build;
mod measure;
#[cfg(test)]
mod tests;
mod turns;

pub use super::parts::avf::pair::Doorbell;
pub use measure::Found;

use super::books::Books;
use super::chipset::Chipset;
use super::engine::{Actor, Engine};
use super::parts::avf::Port;
use super::parts::avf::pair::{Pair, Rung};
use super::parts::guest::Hardware;
use driver::avf::vf::Vf;
use guest::Kernel;
use hypervisor::account::Category;
use hypervisor::cost::{Cost, CostTable};
use hypervisor::cpu::{LastLevelCache, Step, VcpuId};
use hypervisor::domain::DomainKind;
use sim::{EventKey, Instant};
use std::collections::VecDeque;

/// What moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// A stream of segments to each processor of the guest.
    Stream,
    /// Datagrams from each, as fast as it can.
    Datagrams,
    /// Requests of a byte to the first, one at a time.
    Requests,
}

/// What a machine is to be.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What things cost.
    pub table: CostTable,
    /// Queue pairs, and processors of the guest.
    pub pairs: u8,
    /// How doorbells reach the card.
    pub doorbell: Doorbell,
    /// What moves.
    pub load: Load,
    /// Decides which client goes first.
    pub seed: u64,
}

/// What happens.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// Something may happen at the port.
    Port,
    /// A processor's timer is due.
    Timer(usize),
    /// A processor's accesses are there to be carried out.
    Rung(usize),
    /// One of them is done.
    Answered(usize),
}

type Core = super::engine::Core<Event>;

/// A processor of the guest.
#[derive(Debug)]
struct Processor {
    kernel: Kernel<Pair>,
    hardware: Hardware,
    timer: Option<EventKey>,
    /// Registers to be written for it, sent and not yet carried out.
    messages: VecDeque<(u32, u32)>,
    /// Answers that it waits for.
    awaits: usize,
}

/// The process of the service domain that carries out accesses that have exited.
#[derive(Debug)]
struct Courier {
    vcpu: VcpuId,
    /// The processors whose accesses wait, in order.
    requests: VecDeque<usize>,
    /// Registers written.
    written: u64,
}

/// The parts.
#[derive(Debug)]
pub struct Host {
    chipset: Chipset,
    port: Port,
    port_event: Option<EventKey>,
    driver: Vf,
    doorbell: Doorbell,
    rung: Rung,
    processors: Vec<Processor>,
    courier: Courier,
    cache: LastLevelCache,
}

/// The machine that runs.
pub type Queues = Engine<Host>;

impl Actor for Host {
    type Event = Event;

    fn handle(&mut self, event: Event, now: Instant, core: &mut Core) {
        match event {
            Event::Port => {
                self.port_event = None;
                self.sync(now, core);
            }
            Event::Timer(processor) => {
                self.processors[processor].timer = None;
                self.timer(processor, now, core);
            }
            Event::Rung(processor) => {
                self.courier.requests.push_back(processor);
                core.tell(self.courier.vcpu, DomainKind::Dom0, 0, now);
                core.wake(self.courier.vcpu, now);
            }
            Event::Answered(processor) => self.answered(processor, now, core),
        }
    }

    /// The courier's virtual CPU is the first, the guest's follow.
    fn execute(&mut self, step: Step, core: &mut Core) {
        match step.vcpu().index().checked_sub(1) {
            None => self.execute_courier(step, core),
            Some(processor) => self.execute_guest(processor, step, core),
        }
    }

    fn owes(&self, books: &mut Books) {
        self.port.owes(books);
        let broken = self.processors.iter().find_map(|it| it.hardware.broken).or(self.chipset.broken);
        if let Some(broken) = broken {
            books.never(&broken.to_string(), 1);
        }
        books.never("interrupts blocked that nobody forged", self.chipset.remapper.blocked());
        books.never("requests of functions to memory of others", self.chipset.escaped);
        let waiting: usize = self.processors.iter().map(|it| it.messages.len()).sum();
        books.balance("accesses that exited", self.rung.exits, self.courier.written + waiting as u64);
    }
}

impl Host {
    /// Lets the port catch up.
    fn sync(&mut self, now: Instant, core: &mut Core) {
        let next = self.port.sync(now, &mut self.chipset);
        self.settle(next, now, core);
    }

    /// Takes the port's interrupts on, and schedules the next look at it.
    fn settle(&mut self, next: Option<Instant>, now: Instant, core: &mut Core) {
        self.port_event = core.replace(self.port_event, next, Event::Port);
        let mut sent = core::mem::take(&mut self.port.functions.sent);
        for (rid, message) in sent.drain(..) {
            let Some(interrupt) = self.chipset.arrive(rid, message) else { continue };
            // Vector 0 is the mailbox's; nobody asks anything.
            let Some(processor) = usize::from(interrupt.owner.entry).checked_sub(1) else { continue };
            let hardware = &mut self.processors[processor].hardware;
            hardware.controller.request(super::vectors::DEVICE_VECTOR, &mut self.chipset.channels);
            core.tell(hardware.vcpu, hardware.kind, 0, now);
            self.wake(processor, now, core);
        }
        self.port.functions.sent = sent;
    }

    /// A processor has something to do, and does it unless it waits for an answer.
    fn wake(&mut self, processor: usize, now: Instant, core: &mut Core) {
        let hardware = &self.processors[processor].hardware;
        if !hardware.waits {
            core.wake(hardware.vcpu, now);
        }
    }

    /// One of a processor's accesses is done. When all are, it goes on; waking an idle thread is dear.
    fn answered(&mut self, processor: usize, now: Instant, core: &mut Core) {
        let Processor { hardware, awaits, .. } = &mut self.processors[processor];
        *awaits -= 1;
        if *awaits > 0 {
            return;
        }
        hardware.waits = false;
        let (thread, domain) = (core.processors.home(hardware.vcpu), hardware.domain);
        let cycles = core.table[Cost::EventBlocked];
        core.processors.steal(thread, domain, Category::EventChannel, cycles, now);
        core.wake(hardware.vcpu, now);
    }

    /// A processor's timer is due: the hypervisor's own timer interrupt, and the guest's.
    fn timer(&mut self, processor: usize, now: Instant, core: &mut Core) {
        let hardware = &mut self.processors[processor].hardware;
        hardware.controller.run_timer(now, &mut self.chipset.channels);
        let (thread, domain) = (core.processors.home(hardware.vcpu), hardware.domain);
        core.processors.steal(thread, domain, Category::Timer, core.table[Cost::HypervisorTick], now);
        self.wake(processor, now, core);
        self.set_timer(processor, core);
    }

    /// Schedules a processor's timer as its kernel has programmed it.
    fn set_timer(&mut self, processor: usize, core: &mut Core) {
        let Processor { hardware, timer, .. } = &mut self.processors[processor];
        *timer = core.replace(*timer, hardware.controller.deadline(), Event::Timer(processor));
    }
}
