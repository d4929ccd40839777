//! A guest's hardware: how interrupts reach it, and its virtual MSI-X table, or the bare machine's in their
//! place. Left out: what the kernel does with it.

use super::controller::{Controller, DEVICE_VECTOR, Way};
use super::invariant::Broken;
use hypervisor::cpu::{BufferRing, VcpuId};
use hypervisor::domain::{DomainId, DomainKind};
use hypervisor::memory::HostMemory;
use hypervisor::msix::{By, Handler, VirtualTable};
use pcie::msix::{Control, Message};
use sim::Instant;

/// Vectors of a VF.
pub(super) const VECTORS: u16 = i82576::ids::VF_VECTORS as u16;

/// Bytes of an entry of an MSI-X table, and where its data and its mask are.
const ENTRY: u64 = 16;
const DATA: u64 = 8;
const CONTROL: u64 = 12;

/// What the guest programs into a vector of its VF: its only processor, and a vector of its own choice.
pub(super) fn message(vector: u16) -> Message {
    Message { address: 0xfee0_0000, data: u32::from(DEVICE_VECTOR) + u32::from(vector) }
}

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
    /// Vectors, a bit each, as the kernel has masked them.
    masked: u8,
    /// The timer was programmed anew, for the world to schedule.
    pub(super) timer_set: bool,
    /// The driver's buffers, as the socket's cache sees them.
    pub(super) buffers: BufferRing,
    /// Accesses that wait for the device model.
    pub(super) forwarded: u32,
    /// The guest stands still until its device model is done.
    pub(super) waits: bool,
    /// The first rule that was broken.
    pub(super) broken: Option<Broken>,
}

impl Hardware {
    pub(super) fn new(
        kind: DomainKind,
        (domain, vcpu): (DomainId, VcpuId),
        vf: u8,
        handler: Handler,
        controller: Controller,
    ) -> Self {
        let mut table = VirtualTable::new(VECTORS, handler);
        table.set_control(Control { enabled: true, masked: false });
        for vector in 0..VECTORS {
            let (at, Message { address, data }) = (u64::from(vector) * ENTRY, message(vector));
            table.write(at, &address.to_le_bytes());
            table.write(at + DATA, &data.to_le_bytes());
            table.write(at + CONTROL, &0u32.to_le_bytes());
        }
        Self {
            kind,
            domain,
            vcpu,
            vf,
            controller,
            table,
            masked: 0,
            timer_set: false,
            buffers: BufferRing::new(super::build::RING.into()),
            forwarded: 0,
            waits: false,
            broken: None,
        }
    }

    /// The device's interrupt for an entry of the table arrives, for the guest's `vector`. Whether the guest has
    /// something to take now; while it masks the entry, the interrupt pends in the table.
    pub(super) fn signal(&mut self, entry: u16, vector: u8) -> bool {
        let sent = self.table.signal(entry).is_some();
        let mut pending = [0];
        self.table.table().read_pending(0, &mut pending);
        let is = |bits: u8| bits & 1 << (entry & 7) != 0;
        if sent == is(self.masked) || sent == is(pending[0]) {
            self.broke(Broken::Mask(entry));
        }
        if sent {
            self.controller.request(vector);
        }
        sent
    }

    /// Writes a vector's mask as its kernel does.
    pub(super) fn write_mask(&mut self, vector: u16, masked: bool) -> By {
        let bit = 1 << (vector & 7);
        self.masked = if masked { self.masked | bit } else { self.masked & !bit };
        let offset = u64::from(vector) * ENTRY + CONTROL;
        let by = self.table.write(offset, &u32::from(masked).to_le_bytes()).by;
        while let Some((_, message)) = self.table.release() {
            self.controller.request(message.data as u8);
        }
        by
    }

    /// The kernel ends the interrupt that it took last.
    pub(super) fn end_of_interrupt(&mut self, way: Way, memory: &mut HostMemory, now: Instant) {
        if let Err(broken) = self.controller.end(way, memory, now) {
            self.broke(broken);
        }
    }

    /// The kernel programs its timer.
    pub(super) fn set_timer(&mut self, at: Option<Instant>, way: Way, memory: &mut HostMemory, now: Instant) {
        self.timer_set = true;
        if let Err(broken) = self.controller.set_timer(at, way, memory, now) {
            self.broke(broken);
        }
    }

    fn broke(&mut self, broken: Broken) {
        self.broken.get_or_insert(broken);
    }
}
