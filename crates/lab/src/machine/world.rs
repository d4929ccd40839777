//! The machine as it runs: events, and who does what at each. Left out: what steps do, which is the kernels' and
//! the service domain's.

use super::chipset::Chipset;
use super::dom0::{self, ServiceCpu};
use super::env::Env;
use super::port::Port;
use super::vm::Hardware;
use driver::vf::Vf;
use guest::Kernel;
use hypervisor::account::Category;
use hypervisor::cost::{Cost, CostTable};
use hypervisor::cpu::{LastLevelCache, Machine, Next, Step, Then, ThreadId, Visit};
use hypervisor::domain::DomainKind;
use hypervisor::exit::EoiPath;
use hypervisor::remap::{Interrupt, Owner};
use sim::{EventKey, EventQueue, Instant, Label, Trace};

/// What happens.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// A thread wants to be visited.
    Visit(ThreadId),
    /// Something may happen at a port.
    Port(usize),
    /// A guest's timer is due.
    Timer(usize),
    /// The service domain's tick.
    ServiceTick(usize),
}

/// A guest.
#[derive(Debug)]
pub(super) struct Vm {
    pub(super) kernel: Kernel<Vf>,
    pub(super) hardware: Hardware,
    pub(super) port: usize,
}

/// The machine.
#[derive(Debug)]
pub struct World {
    pub(super) table: CostTable,
    pub(super) eoi: EoiPath,
    pub(super) machine: Machine,
    pub(super) queue: EventQueue<Event>,
    pub(super) chipset: Chipset,
    pub(super) ports: Vec<Port>,
    pub(super) port_events: Vec<Option<EventKey>>,
    pub(super) vms: Vec<Vm>,
    /// The guest of each domain that is one.
    pub(super) guests: Vec<Option<usize>>,
    pub(super) timers: Vec<Option<EventKey>>,
    pub(super) service: Vec<ServiceCpu>,
    /// One a socket.
    pub(super) caches: Vec<LastLevelCache>,
    pub(super) trace: Trace,
}

const WORLD: Label = Label::new("world");
const STEP: Label = Label::new("step");
const INTERRUPT: Label = Label::new("interrupt");

impl World {
    /// Lets everything happen up to `end`.
    pub fn run(&mut self, end: Instant) {
        while let Some((now, event)) = self.queue.pop_before(end) {
            match event {
                Event::Visit(thread) => self.visit(thread, now),
                Event::Port(port) => {
                    self.port_events[port] = None;
                    self.sync(port, now);
                }
                Event::Timer(vm) => {
                    self.timers[vm] = None;
                    self.timer(vm, now);
                }
                Event::ServiceTick(cpu) => {
                    self.queue.schedule(now + dom0::TICK, event);
                    self.service[cpu].ticks += 1;
                    let visit = self.machine.wake(self.service[cpu].vcpu, now);
                    self.expect(visit);
                }
            }
        }
    }

    /// The hash of everything that has happened.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.trace.hash()
    }

    /// How many events that hash is over.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.trace.events()
    }

    pub(super) fn expect(&mut self, visit: Option<Visit>) {
        if let Some(Visit { thread, at }) = visit {
            self.queue.schedule(at, Event::Visit(thread));
        }
    }

    fn visit(&mut self, thread: ThreadId, now: Instant) {
        match self.machine.visit(thread, now) {
            Next::Run(step) => self.execute(step),
            Next::Later(visit) => self.expect(Some(visit)),
            Next::Idle => {}
        }
    }

    /// Runs a step of whoever's turn it is.
    fn execute(&mut self, step: Step) {
        // Guests' virtual CPUs were added in order, after the service domain's.
        match step.vcpu().index().checked_sub(self.service.len()) {
            None => self.execute_service(step.vcpu().index(), step),
            Some(guest) => self.execute_guest(guest, step),
        }
    }

    fn execute_service(&mut self, cpu: usize, mut step: Step) {
        let (served, then) = self.service[cpu].step(&mut step, &self.table);
        let (done, began) = (step.now(), step.began());
        self.trace.note(began, WORLD, STEP, &[step.vcpu().index() as u64, step.charges().total()]);
        let visit = self.machine.finish(step, then);
        self.expect(Some(visit));
        if let Some(vm) = served {
            self.vms[vm].hardware.waits = false;
            self.wake(vm, done);
        }
    }

    fn execute_guest(&mut self, index: usize, mut step: Step) {
        let Vm { kernel, hardware, port } = &mut self.vms[index];
        let (port, began) = (*port, step.began());
        // What has arrived by now is there to be found, if anybody looks.
        let mut next = None;
        let looked = kernel.looks() || hardware.controller.deliverable();
        if looked {
            next = self.ports[port].sync(began, &mut self.chipset);
        }
        let (then, touched) = {
            let (table, eoi, chipset) = (&self.table, self.eoi, &mut self.chipset);
            let socket = step.thread().index() / usize::from(2 * super::build::CORES_PER_SOCKET);
            let (step, port, cache) = (&mut step, &mut self.ports[port], &mut self.caches[socket]);
            let mut env = Env { step, hardware, port, chipset, table, eoi, cache, touched: false };
            (kernel.step(&mut env), env.touched)
        };
        let (done, vcpu) = (step.now(), step.vcpu());
        let timer = core::mem::take(&mut hardware.timer_set);
        let overlooked = then == Then::Block && hardware.controller.deliverable();
        let forwarded = core::mem::take(&mut hardware.forwarded);
        self.trace.note(began, WORLD, STEP, &[vcpu.index() as u64, step.charges().total()]);
        let visit = self.machine.finish(step, then);
        self.expect(Some(visit));
        if timer {
            self.set_timer(index);
        }
        // Its timer may have come while it was about to sleep.
        if overlooked {
            self.wake(index, done);
        }
        if forwarded > 0 {
            self.forward(index, done);
        }
        if touched {
            next = self.ports[port].sync(began, &mut self.chipset);
        }
        if looked || touched {
            self.settle(port, next, began);
        }
    }

    /// A guest's access goes to its device model, which runs on a virtual CPU of the service domain: the next
    /// core's, as good as any for a process that the service domain's scheduler moves about.
    fn forward(&mut self, vm: usize, now: Instant) {
        let cpu = (vm + 1) % self.service.len().max(1);
        let Some(service) = self.service.get_mut(cpu) else { return };
        service.requests.push_back(vm);
        let visit = self.machine.wake(service.vcpu, now);
        self.expect(visit);
    }

    /// Schedules a guest's timer as its kernel has programmed it.
    pub(super) fn set_timer(&mut self, vm: usize) {
        let at = self.vms[vm].hardware.controller.deadline();
        self.timers[vm] = self.queue.replace(self.timers[vm], at, Event::Timer(vm));
    }

    /// A guest's timer is due: the hypervisor's own timer interrupt, and the guest's.
    fn timer(&mut self, vm: usize, now: Instant) {
        let hardware = &mut self.vms[vm].hardware;
        hardware.controller.run_timer(now);
        let (vcpu, domain, kind) = (hardware.vcpu, hardware.domain, hardware.kind);
        if kind != DomainKind::Native {
            let thread = self.machine.home(vcpu);
            self.machine.steal(thread, domain, Category::Timer, self.table[Cost::HypervisorTick], now);
        }
        self.wake(vm, now);
        self.set_timer(vm);
    }

    /// A guest has something to do, and does it unless it stands still for its device model.
    fn wake(&mut self, vm: usize, now: Instant) {
        let hardware = &self.vms[vm].hardware;
        if !hardware.waits {
            let visit = self.machine.wake(hardware.vcpu, now);
            self.expect(visit);
        }
    }

    /// Lets a port catch up.
    pub(super) fn sync(&mut self, port: usize, now: Instant) {
        let next = self.ports[port].sync(now, &mut self.chipset);
        self.settle(port, next, now);
    }

    /// Takes a port's interrupts on, and schedules the next look at it.
    fn settle(&mut self, port: usize, next: Option<Instant>, now: Instant) {
        self.port_events[port] = self.queue.replace(self.port_events[port], next, Event::Port(port));
        let mut sent = core::mem::take(&mut self.ports[port].functions.sent);
        for (rid, message) in sent.drain(..) {
            if let Some(interrupt) = self.chipset.arrive(rid, message) {
                self.interrupt(&interrupt, now);
            }
        }
        self.ports[port].functions.sent = sent;
    }

    /// A device's interrupt: whoever runs on the owner's thread is interrupted for it, and the owner is woken. On
    /// an idle thread the hypervisor is there already, which going idle has paid for.
    fn interrupt(&mut self, interrupt: &Interrupt, now: Instant) {
        let Owner { domain, entry, .. } = interrupt.owner;
        let Some(index) = self.guests.get(domain.index()).copied().flatten() else { return };
        let hardware = &mut self.vms[index].hardware;
        self.trace.note(now, WORLD, INTERRUPT, &[index as u64, entry.into()]);
        let (vcpu, kind) = (hardware.vcpu, hardware.kind);
        let deliverable = hardware.signal(entry, interrupt.guest.vector);
        let thread = self.machine.home(vcpu);
        if kind == DomainKind::Pvm {
            let blocked = if self.machine.is_blocked(vcpu) { self.table[Cost::EventBlocked] } else { 0 };
            let cycles = self.table[Cost::EventSend] + blocked;
            self.machine.steal(thread, domain, Category::EventChannel, cycles, now);
        } else if kind == DomainKind::Hvm
            && self.machine.running(thread, now).is_some()
            && let Some(exit) = self.table.features().on_device_interrupt()
        {
            self.machine.steal(thread, domain, exit.category(), exit.price(&self.table), now);
        }
        if deliverable {
            self.wake(index, now);
        }
    }
}
