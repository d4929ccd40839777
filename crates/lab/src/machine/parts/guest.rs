//! A guest's hardware: how interrupts reach it, and its virtual MSI-X table, or the bare machine's in their
//! place. Left out: what the kernel does with it.

use crate::machine::controller::{Controller, Way};
use crate::machine::invariant::Broken;
use crate::machine::vectors::{VECTORS, message};
use driver::vf::Vf;
use guest::kernel::Counters;
use guest::{Kernel, Sending};
use hypervisor::cpu::{BufferRing, VcpuId};
use hypervisor::domain::{DomainId, DomainKind};
use hypervisor::evtchn::Channels;
use hypervisor::memory::HostMemory;
use hypervisor::msix::{By, Handler, VirtualTable};
use i82576::MacAddress;
use pcie::msix::{Control, Message};
use sim::Instant;
use split::Front;

/// A guest.
#[derive(Debug)]
pub(crate) struct Vm {
    pub(crate) system: System,
    /// The port that it has a VF of, or whose bridge it is on.
    pub(crate) port: usize,
    pub(crate) hardware: Hardware,
}

/// A guest's kernel, by its network device.
#[derive(Debug)]
pub(crate) enum System {
    /// It has a VF.
    Direct { kernel: Box<Kernel<Vf>>, vf: u8 },
    /// It has a front end.
    Split(Box<Kernel<Front>>),
}

impl Vm {
    /// The address of its network device.
    pub(crate) fn mac(&self) -> MacAddress {
        match &self.system {
            System::Direct { kernel, .. } => kernel.device().mac(),
            System::Split(kernel) => kernel.device().mac(),
        }
    }

    /// Its program begins to send.
    pub(crate) fn start_sending(&mut self, what: Sending) {
        match &mut self.system {
            System::Direct { kernel, .. } => kernel.start_sending(what),
            System::Split(kernel) => kernel.start_sending(what),
        }
    }

    /// What its kernel has counted.
    pub(crate) fn counters(&self) -> &Counters {
        match &self.system {
            System::Direct { kernel, .. } => kernel.counters(),
            System::Split(kernel) => kernel.counters(),
        }
    }
}

/// Buffers of a VF's receive ring: dd_bufs of the paper.
pub(crate) const RING: u16 = 1_024;

/// Bytes of an entry of an MSI-X table, and where its data and its mask are.
const ENTRY: u64 = 16;
const DATA: u64 = 8;
const CONTROL: u64 = 12;

/// What a guest runs on.
#[derive(Debug)]
pub(crate) struct Hardware {
    pub(crate) kind: DomainKind,
    pub(crate) domain: DomainId,
    pub(crate) vcpu: VcpuId,
    pub(crate) controller: Controller,
    /// The virtual MSI-X table of its VF, if it has one.
    table: Option<VirtualTable>,
    /// Vectors, a bit each, as the kernel has masked them.
    masked: u8,
    /// The timer was programmed anew, for the world to schedule.
    pub(crate) timer_set: bool,
    /// The driver's buffers, as the socket's cache sees them.
    pub(crate) buffers: BufferRing,
    /// Accesses that wait for the device model.
    pub(crate) forwarded: u32,
    /// The guest stands still until its device model is done.
    pub(crate) waits: bool,
    /// Its front end has sent an event.
    pub(crate) notifies: bool,
    /// The first rule that was broken.
    pub(crate) broken: Option<Broken>,
}

impl Hardware {
    /// A guest with a VF, whose mask bits are handled by `handler`.
    pub(crate) fn direct(
        kind: DomainKind,
        owner: (DomainId, VcpuId),
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
        Self { table: Some(table), ..Self::bare(kind, owner, controller, RING.into()) }
    }

    /// A guest with a front end.
    pub(crate) fn split(kind: DomainKind, owner: (DomainId, VcpuId), controller: Controller) -> Self {
        Self::bare(kind, owner, controller, split::ring::SLOTS)
    }

    /// A guest with neither: nothing of its network device is trapped by a table.
    pub(crate) fn bare(
        kind: DomainKind,
        (domain, vcpu): (DomainId, VcpuId),
        controller: Controller,
        buffers: u32,
    ) -> Self {
        Self {
            kind,
            domain,
            vcpu,
            controller,
            table: None,
            masked: 0,
            timer_set: false,
            buffers: BufferRing::new(buffers),
            forwarded: 0,
            waits: false,
            notifies: false,
            broken: None,
        }
    }

    /// The device's interrupt for an entry of the table arrives, for the guest's `vector`. Whether the guest has
    /// something to take now; while it masks the entry, the interrupt pends in the table.
    pub(crate) fn signal(&mut self, entry: u16, vector: u8, channels: &mut Channels) -> bool {
        let Some(table) = &mut self.table else { return false };
        let sent = table.signal(entry).is_some();
        let mut pending = [0];
        table.table().read_pending(0, &mut pending);
        let is = |bits: u8| bits & 1 << (entry & 7) != 0;
        if sent == is(self.masked) || sent == is(pending[0]) {
            self.broke(Broken::Mask(entry));
        }
        if sent {
            self.controller.request(vector, channels);
        }
        sent
    }

    /// Writes a vector's mask as its kernel does: who handles it, if there is a table.
    pub(crate) fn write_mask(&mut self, vector: u16, masked: bool, channels: &mut Channels) -> Option<By> {
        let table = self.table.as_mut()?;
        let bit = 1 << (vector & 7);
        self.masked = if masked { self.masked | bit } else { self.masked & !bit };
        let offset = u64::from(vector) * ENTRY + CONTROL;
        let by = table.write(offset, &u32::from(masked).to_le_bytes()).by;
        while let Some((_, message)) = table.release() {
            self.controller.request(message.data as u8, channels);
        }
        Some(by)
    }

    /// The kernel ends the interrupt that it took last.
    pub(crate) fn end_of_interrupt(&mut self, way: Way, memory: &mut HostMemory, now: Instant) {
        if let Err(broken) = self.controller.end(way, memory, now) {
            self.broke(broken);
        }
    }

    /// The kernel programs its timer.
    pub(crate) fn set_timer(&mut self, at: Option<Instant>, way: Way, memory: &mut HostMemory, now: Instant) {
        self.timer_set = true;
        if let Err(broken) = self.controller.set_timer(at, way, memory, now) {
            self.broke(broken);
        }
    }

    fn broke(&mut self, broken: Broken) {
        self.broken.get_or_insert(broken);
    }
}
