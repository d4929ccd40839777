//! A modelled server with guests, as an actor that handles the events of its parts.
//!
//! | module | contents |
//! |---|---|
//! | `setup` | parameters of a server |
//! | `build`, `inside` | creation, and senders inside the server |
//! | `steps` | steps of virtual CPUs |
//! | `interrupts` | timers and device interrupts |
//! | `split` | steps and events of the split driver |
//! | `measure` | results |

mod build;
mod inside;
mod interrupts;
mod measure;
pub(crate) mod setup;
mod split;
mod steps;

pub use measure::ServerResults;

use crate::machine::books::ConservationChecks;
use crate::machine::chipset::Chipset;
use crate::machine::engine::{Actor, Simulation};
use crate::machine::parts::card::NicPort;
use crate::machine::parts::guest::ServerGuest;
use crate::machine::parts::monitor::PfMonitor;
use crate::machine::parts::service::ServiceCpu;
use crate::machine::parts::split::{MovableBackEndPart, ServiceDomainNetwork};
use crate::machine::topology::ServerTopology;
use hypervisor::cpu::{LastLevelCache, VcpuStep};
use hypervisor::domain::DomainId;
use hypervisor::exit::EoiPath;
use sim::{EventKey, VirtualInstant};

/// Server that runs in virtual time.
pub type ServerSimulation = Simulation<ServerMachine>;
type ServerCore = crate::machine::engine::SimulationCore<ServerEvent>;

/// Event of a modelled server.
#[derive(Debug, Clone, Copy)]
pub enum ServerEvent {
    /// Event: the server has to poll the card of this port.
    Port(usize),
    /// Event: the timer of this guest has expired.
    Timer(usize),
    /// Event: the timer of this virtual CPU of the service domain ticks.
    ServiceTick(usize),
    /// Event: another virtual CPU of the service domain interrupts this virtual CPU.
    ServiceWake(usize),
    /// Event: a device access of this guest reaches its device model.
    Forwarded(usize),
    /// Event: a device access of this guest is complete.
    Answered(usize),
    /// Event: the service domain sends an event to this guest's front end.
    GuestCalled(usize),
    /// Event: this guest's front end sends an event to the service domain.
    ServiceCalled(usize),
    /// Event: this virtual CPU of the service domain has to send its delayed events to guests.
    TellGuests(usize),
    /// Event: the move of this worker thread, card or interface of the back end is complete.
    Arrived(MovableBackEndPart),
}

/// Modelled server with guests; handles the events of its ports, guests and service domain.
#[derive(Debug)]
pub struct ServerMachine {
    pub(crate) topology: ServerTopology,
    eoi: EoiPath,
    pub(crate) chipset: Chipset,
    pub(crate) ports: Vec<NicPort>,
    port_events: Vec<Option<EventKey>>,
    pub(crate) vms: Vec<ServerGuest>,
    /// Index in `vms` of the guest of each domain; `None` for other domains.
    guests: Vec<Option<usize>>,
    timers: Vec<Option<EventKey>>,
    pub(crate) service: Vec<ServiceCpu>,
    /// Monitor thread that polls the PF drivers, on the service domain's first virtual CPU.
    monitor: PfMonitor,
    /// Last-level cache of each socket.
    caches: Vec<LastLevelCache>,
    /// Split driver of the guests, if they have front ends.
    split: Option<ServiceDomainNetwork>,
}

impl Actor for ServerMachine {
    type Event = ServerEvent;

    fn handle(&mut self, event: ServerEvent, now: VirtualInstant, core: &mut ServerCore) {
        match event {
            ServerEvent::Port(port) => {
                self.port_events[port] = None;
                match self.ports[port].pass(now) {
                    Some(next) => self.port_events[port] = Some(core.schedule(next, event)),
                    None => self.sync(port, now, core),
                }
            }
            ServerEvent::Timer(vm) => {
                self.timers[vm] = None;
                self.timer(vm, now, core);
            }
            ServerEvent::ServiceTick(cpu) => {
                core.schedule(now + self.topology.service_tick, event);
                self.service[cpu].ticks += 1;
                if cpu == 0 {
                    self.monitor.tick(self.ports.len());
                    self.dispatch(now, core);
                }
                core.wake(self.service[cpu].vcpu, now);
            }
            ServerEvent::ServiceWake(cpu) => core.wake(self.service[cpu].vcpu, now),
            ServerEvent::Forwarded(vm) => self.forward(vm, now, core),
            ServerEvent::Answered(vm) => self.answer(vm, now, core),
            ServerEvent::GuestCalled(vm) => self.call_guest(vm, now, core),
            ServerEvent::ServiceCalled(vm) => self.call_service(vm, now, core),
            ServerEvent::TellGuests(cpu) => self.tell_guests(cpu, now, core),
            ServerEvent::Arrived(what) => self.arrived(what, now, core),
        }
    }

    /// Executes a step of a virtual CPU. Guests' virtual CPUs were added in order, after the service domain's.
    fn execute(&mut self, step: VcpuStep, core: &mut ServerCore) {
        match step.vcpu().index().checked_sub(self.service.len()) {
            None => self.execute_service(step.vcpu().index(), step, core),
            Some(guest) => self.execute_guest(guest, step, core),
        }
    }

    fn check_books(&self, books: &mut ConservationChecks) {
        self.balance(books);
    }

    fn port_of(&self, domain: DomainId) -> Option<usize> {
        self.vms.iter().find(|vm| vm.hardware.domain == domain).map(|vm| vm.port)
    }
}
