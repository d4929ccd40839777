//! The machine as it runs: events, and who does what at each. Left out: what steps do, which is the kernels' and
//! the service domain's.

use super::chipset::Chipset;
use super::dom0::{self, ServiceCpu};
use super::env::{Direct, Env};
use super::monitor::Monitor;
use super::port::Port;
use super::split::Split;
use super::vm::{System, Vm};
use hypervisor::account::Category;
use hypervisor::cost::{Cost, CostTable};
use hypervisor::cpu::{LastLevelCache, Machine, Next, Step, Then, ThreadId, VcpuId, Visit};
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
    /// A virtual CPU of the service domain has an interrupt from another.
    ServiceWake(usize),
    /// The service domain sends a guest an event.
    GuestCalled(usize),
    /// A guest sends the service domain an event.
    ServiceCalled(usize),
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
    /// On the first of them.
    pub(super) monitor: Monitor,
    /// One a socket.
    pub(super) caches: Vec<LastLevelCache>,
    /// The split driver, if guests have front ends.
    pub(super) split: Option<Split>,
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
                    if cpu == 0 {
                        self.monitor.tick(self.ports.len());
                    }
                    let visit = self.machine.wake(self.service[cpu].vcpu, now);
                    self.expect(visit);
                }
                Event::ServiceWake(cpu) => {
                    let visit = self.machine.wake(self.service[cpu].vcpu, now);
                    self.expect(visit);
                }
                Event::GuestCalled(vm) => self.call_guest(vm, now),
                Event::ServiceCalled(vm) => self.call_service(vm, now),
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
        let (served, mut then) = self.service[cpu].step(&mut step, &self.table);
        let asked = if cpu == 0 { self.visit_pf(&mut step, &mut then) } else { None };
        let touched = self.network(cpu, &mut step, &mut then);
        let (done, began) = (step.now(), step.began());
        self.trace.note(began, WORLD, STEP, &[step.vcpu().index() as u64, step.charges().total()]);
        let visit = self.machine.finish(step, then);
        self.expect(Some(visit));
        if let Some(vm) = served {
            self.vms[vm].hardware.waits = false;
            self.wake(vm, done);
        }
        while let Some(vm) = self.split.as_mut().and_then(Split::next_notified) {
            self.queue.schedule(done, Event::GuestCalled(vm));
        }
        let touched = |port: &usize| touched >> port & 1 == 1 || asked == Some(*port);
        (0..self.ports.len()).filter(touched).for_each(|port| self.sync(port, began));
    }

    fn execute_guest(&mut self, index: usize, mut step: Step) {
        let Vm { system, port, hardware } = &mut self.vms[index];
        let began = step.began();
        let (table, eoi, chipset) = (&self.table, self.eoi, &mut self.chipset);
        let socket = step.thread().index() / usize::from(2 * super::build::CORES_PER_SOCKET);
        let cache = &mut self.caches[socket];
        // Its port, what it is to be looked at for next, and whether the kernel has touched it.
        let mut looked_at = None;
        let then = match (system, &mut self.split) {
            (System::Direct { kernel, vf }, _) => {
                // What has arrived by now is there to be found, if anybody looks.
                let looks = kernel.looks() || hardware.controller.deliverable(&mut chipset.channels);
                let next = if looks { self.ports[*port].sync(began, chipset) } else { None };
                let device = Direct { port: &mut self.ports[*port], vf: *vf, touched: false };
                let mut env = Env { step: &mut step, hardware, chipset, device, table, eoi, cache };
                let then = kernel.step(&mut env);
                let touched = env.device.touched;
                looked_at = (looks || touched).then_some((*port, next, touched));
                then
            }
            (System::Split(kernel), Some(split)) => {
                let device = split.side(index);
                kernel.step(&mut Env { step: &mut step, hardware, chipset, device, table, eoi, cache })
            }
            (System::Split(_), None) => Then::Block,
        };
        let (done, vcpu) = (step.now(), step.vcpu());
        let timer = core::mem::take(&mut hardware.timer_set);
        let overlooked = then == Then::Block && hardware.controller.deliverable(&mut self.chipset.channels);
        let forwarded = core::mem::take(&mut hardware.forwarded);
        if core::mem::take(&mut hardware.notifies) {
            self.queue.schedule(done, Event::ServiceCalled(index));
        }
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
        if let Some((port, mut next, touched)) = looked_at {
            if touched {
                next = self.ports[port].sync(began, &mut self.chipset);
            }
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
        hardware.controller.run_timer(now, &mut self.chipset.channels);
        let (vcpu, domain, kind) = (hardware.vcpu, hardware.domain, hardware.kind);
        if kind != DomainKind::Native {
            let thread = self.machine.home(vcpu);
            self.machine.steal(thread, domain, Category::Timer, self.table[Cost::HypervisorTick], now);
        }
        self.wake(vm, now);
        self.set_timer(vm);
    }

    /// A guest has something to do, and does it unless it stands still for its device model.
    pub(super) fn wake(&mut self, vm: usize, now: Instant) {
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
        let Some(index) = self.guests.get(domain.index()).copied().flatten() else {
            return self.interrupt_service(interrupt, now);
        };
        let hardware = &mut self.vms[index].hardware;
        self.trace.note(now, WORLD, INTERRUPT, &[index as u64, entry.into()]);
        let (vcpu, kind) = (hardware.vcpu, hardware.kind);
        let deliverable = hardware.signal(entry, interrupt.guest.vector, &mut self.chipset.channels);
        self.tell(vcpu, kind, self.table[Cost::EventSend], now);
        if deliverable {
            self.wake(index, now);
        }
    }

    /// What the hypervisor does on a thread to tell a virtual CPU of an event, where `sending` is still to be paid for:
    /// one on hardware virtualization is made to exit if it runs, another is woken if it sleeps.
    pub(super) fn tell(&mut self, vcpu: VcpuId, kind: DomainKind, sending: u64, now: Instant) {
        let (thread, domain) = (self.machine.home(vcpu), self.machine.domain_of(vcpu));
        match kind {
            DomainKind::Hvm => {
                if self.machine.running(thread, now).is_some()
                    && let Some(exit) = self.table.features().on_device_interrupt()
                {
                    self.machine.steal(thread, domain, exit.category(), exit.price(&self.table), now);
                }
            }
            DomainKind::Pvm | DomainKind::Dom0 => {
                let blocked = if self.machine.is_blocked(vcpu) { self.table[Cost::EventBlocked] } else { 0 };
                self.machine.steal(thread, domain, Category::EventChannel, sending + blocked, now);
            }
            DomainKind::Hypervisor | DomainKind::Native => {}
        }
    }
}
