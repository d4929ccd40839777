//! A guest's hardware: its memory, its virtual APIC and its virtual MSI-X table, or the bare machine's in their
//! place. Left out: what the kernel does with it.

use hypervisor::cpu::VcpuId;
use hypervisor::domain::{DomainId, DomainKind};
use hypervisor::lapic::Lapic;
use hypervisor::msix::{Handler, VirtualTable};
use pcie::msix::Control;
use sim::Span;

/// The guest's interrupt vectors: the timer's, and the first of its VF's.
pub(super) const TIMER_VECTOR: u8 = 0xef;
pub(super) const DEVICE_VECTOR: u8 = 0x41;
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
    pub(super) lapic: Lapic,
    pub(super) table: VirtualTable,
    /// The timer as the kernel has programmed it anew, for the world to schedule.
    pub(super) timer_request: Option<Option<sim::Instant>>,
    /// Accesses that wait for the device model.
    pub(super) forwarded: u32,
}

impl Hardware {
    pub(super) fn new(kind: DomainKind, domain: DomainId, vcpu: VcpuId, vf: u8, handler: Handler) -> Self {
        let mut lapic = Lapic::new(0, Span::from_nanos(10));
        lapic.write(sim::Instant::ZERO, SPURIOUS, ENABLE);
        let mut table = VirtualTable::new(i82576::ids::VF_VECTORS as u16, handler);
        table.set_control(Control { enabled: true, masked: false });
        for vector in 0..i82576::ids::VF_VECTORS as u64 {
            table.write(vector * ENTRY, &0xfee0_0000u32.to_le_bytes());
            let data = u32::from(DEVICE_VECTOR) + vector as u32;
            table.write(vector * ENTRY + DATA, &data.to_le_bytes());
            table.write(vector * ENTRY + CONTROL, &0u32.to_le_bytes());
        }
        Self { kind, domain, vcpu, vf, lapic, table, timer_request: None, forwarded: 0 }
    }

    /// The device's message for `vector` arrives. Whether the guest has something to take now.
    pub(super) fn signal(&mut self, vector: u16) -> bool {
        match self.table.signal(vector) {
            Some(message) => {
                self.lapic.accept(message.data as u8);
                true
            }
            None => false,
        }
    }

    /// Writes a vector's mask as its kernel does.
    pub(super) fn write_mask(&mut self, vector: u16, masked: bool) -> hypervisor::msix::By {
        let offset = u64::from(vector) * ENTRY + CONTROL;
        let by = self.table.write(offset, &u32::from(masked).to_le_bytes()).by;
        while let Some((_, message)) = self.table.release() {
            self.lapic.accept(message.data as u8);
        }
        by
    }
}
