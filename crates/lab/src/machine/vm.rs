//! A guest's hardware: how interrupts reach it, and its virtual MSI-X table, or the bare machine's in their
//! place. Left out: what the kernel does with it.

use guest::Interrupt;
use hypervisor::cpu::VcpuId;
use hypervisor::domain::{DomainId, DomainKind};
use hypervisor::evtchn::{Binding, Channels};
use hypervisor::lapic::Lapic;
use hypervisor::msix::{Handler, VirtualTable};
use pcie::msix::Control;
use sim::Span;

/// The guest's interrupt vectors: the timer's, and the first of its VF's.
const TIMER_VECTOR: u8 = 0xef;
const DEVICE_VECTOR: u8 = 0x41;
/// The timer's number among the hypervisor's virtual interrupts.
const VIRQ_TIMER: u8 = 0;

/// How interrupts reach a guest.
#[derive(Debug)]
pub(super) enum Controller {
    /// A local APIC, virtual or not.
    Apic(Lapic),
    /// Event channels: a port for each interrupt of the device, and the timer's.
    Events {
        channels: Channels,
        domain: DomainId,
        /// Of the timer, then of the device's vectors.
        ports: Vec<u16>,
    },
}

impl Controller {
    fn new(kind: DomainKind, domain: DomainId) -> Self {
        if kind == DomainKind::Pvm {
            return Self::events(domain);
        }
        let mut lapic = Lapic::new(0, Span::from_nanos(10));
        lapic.write(sim::Instant::ZERO, SPURIOUS, ENABLE);
        Self::Apic(lapic)
    }

    fn events(domain: DomainId) -> Self {
        let mut channels = Channels::new();
        channels.add_domain(domain, 1);
        let wanted = [Binding::Virq(VIRQ_TIMER)].into_iter();
        let wanted = wanted.chain((0..i82576::ids::VF_VECTORS as u16).map(Binding::Pirq));
        let ports = wanted.filter_map(|binding| channels.bind(domain, binding, 0).ok()).collect();
        Self::Events { channels, domain, ports }
    }

    /// An interrupt of that vector is requested.
    fn request(&mut self, vector: u8) {
        match self {
            Self::Apic(lapic) => {
                lapic.accept(vector);
            }
            Self::Events { channels, domain, ports } => {
                let index = if vector == TIMER_VECTOR { 0 } else { 1 + usize::from(vector - DEVICE_VECTOR) };
                if let Some(port) = ports.get(index) {
                    // The port was bound when the guest was made.
                    let _ = channels.raise(*domain, *port);
                }
            }
        }
    }

    /// The next interrupt for the guest's kernel, and whether taking it began an upcall.
    pub(super) fn take(&mut self) -> Option<(Interrupt, bool)> {
        match self {
            Self::Apic(lapic) => lapic.inject().map(|vector| (interrupt(vector), false)),
            Self::Events { channels, domain, ports } => {
                let own = channels.domain(*domain).ok()?;
                let entered = own.enter_upcall(0);
                let Some(port) = own.next(0) else {
                    own.leave_upcall(0);
                    return None;
                };
                let index = ports.iter().position(|known| *known == port)?;
                let device = |index: usize| Interrupt::Device(index as u16 - 1);
                Some((if index == 0 { Interrupt::Timer } else { device(index) }, entered))
            }
        }
    }

    /// The kernel ends the interrupt it took last.
    pub(super) fn end(&mut self) {
        if let Self::Apic(lapic) = self {
            lapic.eoi();
        }
    }
}

fn interrupt(vector: u8) -> Interrupt {
    match vector {
        TIMER_VECTOR => Interrupt::Timer,
        vector => Interrupt::Device(u16::from(vector.wrapping_sub(DEVICE_VECTOR))),
    }
}

/// The APIC's register that enables it, and the enabling value.
const SPURIOUS: u16 = 0xf0;
const ENABLE: u32 = 0x1ff;
/// Bytes of an entry of an MSI-X table, and where its data and its mask are.
const ENTRY: u64 = 16;
const DATA: u64 = 8;
const CONTROL: u64 = 12;

/// What a guest runs on.
#[derive(Debug)]
pub(super) struct Hardware {
    pub(super) kind: DomainKind,
    pub(super) domain: DomainId,
    pub(super) vcpu: VcpuId,
    /// Which VF of its port it has.
    pub(super) vf: u8,
    pub(super) controller: Controller,
    pub(super) table: VirtualTable,
    /// The timer as the kernel has programmed it anew, for the world to schedule.
    pub(super) timer_request: Option<Option<sim::Instant>>,
    /// Accesses that wait for the device model.
    pub(super) forwarded: u32,
}

impl Hardware {
    pub(super) fn new(kind: DomainKind, domain: DomainId, vcpu: VcpuId, vf: u8, handler: Handler) -> Self {
        let mut table = VirtualTable::new(i82576::ids::VF_VECTORS as u16, handler);
        table.set_control(Control { enabled: true, masked: false });
        for vector in 0..i82576::ids::VF_VECTORS as u64 {
            table.write(vector * ENTRY, &0xfee0_0000u32.to_le_bytes());
            let data = u32::from(DEVICE_VECTOR) + vector as u32;
            table.write(vector * ENTRY + DATA, &data.to_le_bytes());
            table.write(vector * ENTRY + CONTROL, &0u32.to_le_bytes());
        }
        Self {
            kind,
            domain,
            vcpu,
            vf,
            controller: Controller::new(kind, domain),
            table,
            timer_request: None,
            forwarded: 0,
        }
    }

    /// The device's message for `vector` arrives. Whether the guest has something to take now.
    pub(super) fn signal(&mut self, vector: u16) -> bool {
        match self.table.signal(vector) {
            Some(message) => {
                self.controller.request(message.data as u8);
                true
            }
            None => false,
        }
    }

    /// The guest's timer is due.
    pub(super) fn timer_due(&mut self) {
        self.controller.request(TIMER_VECTOR);
    }

    /// Writes a vector's mask as its kernel does.
    pub(super) fn write_mask(&mut self, vector: u16, masked: bool) -> hypervisor::msix::By {
        let offset = u64::from(vector) * ENTRY + CONTROL;
        let by = self.table.write(offset, &u32::from(masked).to_le_bytes()).by;
        while let Some((_, message)) = self.table.release() {
            self.controller.request(message.data as u8);
        }
        by
    }
}
