//! The machine of Dong et al., *Towards High-Quality I/O Virtualization*, SYSTOR 2009: a service domain and a guest, a
//! processor each, and a device that the guest reaches through the service domain or has for itself.
//!
//! | module | what it is |
//! |---|---|
//! | `net` | a stream from a 10 Gb/s wire to the guest |
//! | `storage` | a program of the guest that reads a disk, block after block |
//!
//! Left out: other guests, and timers of kernels.

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

/// How the guest reaches a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// Through a split driver.
    Pv,
    /// Through a split driver whose guest has a queue of the card: the card sorts frames by address, and writes them into
    /// the guest's pages.
    Vmdq,
    /// It has the device for itself.
    Direct,
}

impl Path {
    /// What the guest is: a device of its own takes hardware virtualization.
    fn kind(self) -> DomainKind {
        if self == Path::Direct { DomainKind::Hvm } else { DomainKind::Pvm }
    }
}

/// Who runs on the machine.
#[derive(Debug, Clone, Copy)]
struct Domains {
    path: Path,
    service: VcpuId,
    guest: VcpuId,
    /// Their numbers.
    service_id: DomainId,
    guest_id: DomainId,
}

impl Domains {
    /// A machine with both, and nothing for either to do.
    fn build<E: Copy>(table: &CostTable, path: Path) -> (Core<E>, Self) {
        let mut core = Core::new(table.clone(), Machine::new(Config::from_table(table, 2, 1)));
        let service_id = core.processors.add_domain(DomainKind::Dom0, "dom0".into());
        let service = core.processors.add_vcpu(service_id, ThreadId::new(0));
        let guest_id = core.processors.add_domain(path.kind(), "guest".into());
        let guest = core.processors.add_vcpu(guest_id, ThreadId::new(1));
        (core, Self { path, service, guest, service_id, guest_id })
    }

    /// The device interrupts whoever drives it.
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

    /// A step sends an event to a virtual CPU on the other processor.
    fn send<E: Copy>(core: &Core<E>, to: VcpuId, step: &mut Step) {
        let waking = if core.processors.is_blocked(to) { core.table[Cost::EventBlocked] } else { 0 };
        let cycles = core.table[Cost::EventSend] + core.table[Cost::EventRemote] + waking;
        step.charge(Category::EventChannel, cycles);
    }

    /// The guest takes an interrupt: of its own device, or an event.
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

    /// The guest goes idle.
    fn guest_sleeps(&self, step: &mut Step, table: &CostTable) {
        let exit = if self.path == Path::Direct { ExitKind::Hlt } else { ExitKind::Hypercall };
        let price = if exit == ExitKind::Hlt { exit.price(table) } else { table[Cost::HypercallPv] };
        step.charge(exit.category(), price);
    }
}

/// A domain that knows events takes one, and its handler runs.
fn upcall(step: &mut Step, table: &CostTable) {
    step.charge(Category::EventChannel, table[Cost::EventUpcall]);
    handle(step, table);
}

fn handle(step: &mut Step, table: &CostTable) {
    step.charge(Category::Kernel, table[Cost::InterruptEntry]);
    step.charge(Category::Driver, table[Cost::InterruptHandler]);
}
