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

use super::engine::SimulationCore;
use hypervisor::account::{CycleCategory, CycleSink};
use hypervisor::cost::{CostConstant, CostTable};
use hypervisor::cpu::{HardwareThreadId, HostMachine, ProcessorConfig, VcpuId, VcpuStep};
use hypervisor::domain::{DomainId, DomainKind};
use hypervisor::exit::{EoiPath, VmExitReason};
use sim::VirtualInstant;

/// Path from the guest to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceAccessMode {
    /// The guest uses a split driver through the service domain.
    Pv,
    /// Split driver with a queue of the card for the guest (VMDq): the card sorts frames by address and
    /// writes them into the guest's pages.
    Vmdq,
    /// The device is assigned to the guest.
    Direct,
}

impl DeviceAccessMode {
    /// Returns the guest's kind: an assigned device needs hardware virtualization.
    fn kind(self) -> DomainKind {
        if self == DeviceAccessMode::Direct { DomainKind::Hvm } else { DomainKind::Pvm }
    }
}

/// Virtual CPUs and ids of the machine's two domains, service domain and guest, with the guest's path to the
/// device.
#[derive(Debug, Clone, Copy)]
struct ServiceAndGuestDomains {
    path: DeviceAccessMode,
    service: VcpuId,
    guest: VcpuId,
    /// Domain id of the service domain.
    service_id: DomainId,
    /// Domain id of the guest.
    guest_id: DomainId,
}

impl ServiceAndGuestDomains {
    /// Creates a machine with two idle domains: service domain and guest.
    fn build<E: Copy>(table: &CostTable, path: DeviceAccessMode) -> (SimulationCore<E>, Self) {
        let mut core =
            SimulationCore::new(table.clone(), HostMachine::new(ProcessorConfig::from_table(table, 2, 1)));
        let service_id = core.processors.add_domain(DomainKind::Dom0, "dom0".into());
        let service = core.processors.add_vcpu(service_id, HardwareThreadId::new(0));
        let guest_id = core.processors.add_domain(path.kind(), "guest".into());
        let guest = core.processors.add_vcpu(guest_id, HardwareThreadId::new(1));
        (core, Self { path, service, guest, service_id, guest_id })
    }

    /// Interrupts and wakes the virtual CPU of the domain that drives the device.
    fn interrupt<E: Copy>(&self, core: &mut SimulationCore<E>, now: VirtualInstant) {
        let vcpu = if self.path == DeviceAccessMode::Direct { self.guest } else { self.service };
        let sending = core.table[CostConstant::EventSend];
        if self.path != DeviceAccessMode::Direct {
            let (thread, taking) = (core.processors.home(vcpu), core.table[CostConstant::InterruptEntry]);
            core.processors.steal(thread, self.service_id, CycleCategory::ExternalInterrupt, taking, now);
        }
        let kind = if self.path == DeviceAccessMode::Direct { DomainKind::Hvm } else { DomainKind::Dom0 };
        core.tell(vcpu, kind, sending, now);
        core.wake(vcpu, now);
    }

    /// Charges a domain for sending an event to a virtual CPU on the other processor.
    fn send<E: Copy>(core: &SimulationCore<E>, to: VcpuId, step: &mut VcpuStep) {
        let waking = if core.processors.is_blocked(to) { core.table[CostConstant::EventBlocked] } else { 0 };
        let cycles = core.table[CostConstant::EventSend] + core.table[CostConstant::EventRemote] + waking;
        step.charge(CycleCategory::EventChannel, cycles);
    }

    /// Charges the guest for accepting an interrupt of its own device, or an event of the back end.
    fn guest_takes(&self, step: &mut VcpuStep, table: &CostTable) {
        if self.path == DeviceAccessMode::Direct {
            step.charge(CycleCategory::Injection, table[CostConstant::Injection]);
            handle(step, table);
            if let Some(exit) = table.on_eoi() {
                let price = if exit == VmExitReason::ApicEoi {
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

    /// Charges the guest for the VM exit or hypercall by which the guest goes idle.
    fn guest_sleeps(&self, step: &mut VcpuStep, table: &CostTable) {
        let exit =
            if self.path == DeviceAccessMode::Direct { VmExitReason::Hlt } else { VmExitReason::Hypercall };
        let price =
            if exit == VmExitReason::Hlt { exit.price(table) } else { table[CostConstant::HypercallPv] };
        step.charge(exit.category(), price);
    }
}

/// Charges a domain for an event-channel upcall and its handler.
fn upcall(step: &mut VcpuStep, table: &CostTable) {
    step.charge(CycleCategory::EventChannel, table[CostConstant::EventUpcall]);
    handle(step, table);
}

fn handle(step: &mut VcpuStep, table: &CostTable) {
    step.charge(CycleCategory::Kernel, table[CostConstant::InterruptEntry]);
    step.charge(CycleCategory::Driver, table[CostConstant::InterruptHandler]);
}
