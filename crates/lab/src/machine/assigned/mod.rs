//! The machine of Dong et al., *Towards High-Quality I/O Virtualization*, SYSTOR 2009: a service domain and a
//! guest with one processor each, and a device that the guest shares or owns.
//!
//! | module | contents |
//! |---|---|
//! | `net` | stream from a 10 Gb/s wire to the guest |
//! | `storage` | guest program that reads a disk block by block |
//!
//! There is one guest, and the kernels have no timers.

pub mod net;
pub mod storage;
#[cfg(test)]
mod tests;

use super::engine::Core;
use hypervisor::account::{Category, Charge};
use hypervisor::cost::{Cost, CostTable};
use hypervisor::cpu::{Config, Machine, Step, ThreadId, VcpuId};
use hypervisor::domain::{DomainId, DomainKind};
use hypervisor::exit::{EoiPath, ExitKind};
use sim::Instant;

/// Path from the guest to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// The guest uses a split driver through the service domain.
    Pv,
    /// Split driver with a queue of the card for the guest (VMDq): the card sorts frames by address and
    /// writes them into the guest's pages.
    Vmdq,
    /// The device is assigned to the guest.
    Direct,
}

impl Path {
    /// Returns the guest's kind: an assigned device needs hardware virtualization.
    fn kind(self) -> DomainKind {
        if self == Path::Direct { DomainKind::Hvm } else { DomainKind::Pvm }
    }
}

/// Service domain and guest of the machine.
#[derive(Debug, Clone, Copy)]
struct Domains {
    path: Path,
    service: VcpuId,
    guest: VcpuId,
    /// Domain ids of service domain and guest.
    service_id: DomainId,
    guest_id: DomainId,
}

impl Domains {
    /// Creates a machine with both domains idle.
    fn build<E: Copy>(table: &CostTable, path: Path) -> (Core<E>, Self) {
        let mut core = Core::new(table.clone(), Machine::new(Config::from_table(table, 2, 1)));
        let service_id = core.processors.add_domain(DomainKind::Dom0, "dom0".into());
        let service = core.processors.add_vcpu(service_id, ThreadId::new(0));
        let guest_id = core.processors.add_domain(path.kind(), "guest".into());
        let guest = core.processors.add_vcpu(guest_id, ThreadId::new(1));
        (core, Self { path, service, guest, service_id, guest_id })
    }

    /// Interrupts the virtual CPU that drives the device.
    fn interrupt<E: Copy>(&self, core: &mut Core<E>, now: Instant) {
        let vcpu = if self.path == Path::Direct { self.guest } else { self.service };
        let sending = core.table[Cost::EventSend];
        if self.path != Path::Direct {
            let (thread, taking) = (core.processors.home(vcpu), core.table[Cost::InterruptEntry]);
            core.processors.steal(thread, self.service_id, Category::ExternalInterrupt, taking, now);
        }
        let kind = if self.path == Path::Direct { DomainKind::Hvm } else { DomainKind::Dom0 };
        core.tell(vcpu, kind, sending, now);
        core.wake(vcpu, now);
    }

    /// Charges a step for sending an event to a virtual CPU on the other processor.
    fn send<E: Copy>(core: &Core<E>, to: VcpuId, step: &mut Step) {
        let waking = if core.processors.is_blocked(to) { core.table[Cost::EventBlocked] } else { 0 };
        let cycles = core.table[Cost::EventSend] + core.table[Cost::EventRemote] + waking;
        step.charge(Category::EventChannel, cycles);
    }

    /// Charges the guest for taking an interrupt of its device, or an event.
    fn guest_takes(&self, step: &mut Step, table: &CostTable) {
        if self.path == Path::Direct {
            step.charge(Category::Injection, table[Cost::Injection]);
            handle(step, table);
            if let Some(exit) = table.features().on_eoi() {
                let price = if exit == ExitKind::ApicEoi {
                    EoiPath::Emulated.price(table)
                } else {
                    exit.price(table)
                };
                step.charge(exit.category(), price);
            }
        } else {
            upcall(step, table);
        }
    }

    /// Charges the guest for going idle.
    fn guest_sleeps(&self, step: &mut Step, table: &CostTable) {
        let exit = if self.path == Path::Direct { ExitKind::Hlt } else { ExitKind::Hypercall };
        let price = if exit == ExitKind::Hlt { exit.price(table) } else { table[Cost::HypercallPv] };
        step.charge(exit.category(), price);
    }
}

/// Charges a domain for an event-channel upcall and its handler.
fn upcall(step: &mut Step, table: &CostTable) {
    step.charge(Category::EventChannel, table[Cost::EventUpcall]);
    handle(step, table);
}

fn handle(step: &mut Step, table: &CostTable) {
    step.charge(Category::Kernel, table[Cost::InterruptEntry]);
    step.charge(Category::Driver, table[Cost::InterruptHandler]);
}
