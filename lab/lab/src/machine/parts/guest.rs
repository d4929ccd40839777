//! Hardware of a modelled guest: its interrupt controller and virtual MSI-X table, or the physical ones of a
//! bare machine.

use crate::machine::controller::{ApicWritePath, InterruptController};
use crate::machine::invariant::InvariantViolation;
use crate::machine::vectors::{VECTORS, msix_message};
use driver::vf::Vf;
use guest::kernel::KernelCounters;
use guest::{KernelModel, SenderConfig};
use hypervisor::cpu::{PacketBufferRing, VcpuId};
use hypervisor::domain::{DomainId, DomainKind};
use hypervisor::evtchn::EventChannels;
use hypervisor::memory::HostMemory;
use hypervisor::msix::{MsixAccessHandler, MsixTablePolicy, VirtualMsixTable};
use i82576::MacAddress;
use pcie::msix::{InterruptMessage, MsiXControl};
use sim::VirtualInstant;
use split::NetworkFrontend;

/// Guest of a server: its kernel, its port and its hardware.
#[derive(Debug)]
pub(crate) struct ServerGuest {
    pub(crate) system: GuestKernel,
    /// Index of the port with the guest's VF or bridge.
    pub(crate) port: usize,
    pub(crate) hardware: GuestHardware,
}

/// Guest's kernel with its network device: a VF or a front end.
#[derive(Debug)]
pub(crate) enum GuestKernel {
    /// Kernel of a guest with a VF.
    Direct { kernel: Box<KernelModel<Vf>>, vf: u8 },
    /// Kernel of a guest with a front end.
    Split(Box<KernelModel<NetworkFrontend>>),
}

impl ServerGuest {
    /// Returns the MAC address of the guest's network device.
    pub(crate) fn mac(&self) -> MacAddress {
        match &self.system {
            GuestKernel::Direct { kernel, .. } => kernel.device().mac(),
            GuestKernel::Split(kernel) => kernel.device().mac(),
        }
    }

    /// Starts the program in the guest that sends messages.
    pub(crate) fn start_sending(&mut self, what: SenderConfig) {
        match &mut self.system {
            GuestKernel::Direct { kernel, .. } => kernel.start_sending(what),
            GuestKernel::Split(kernel) => kernel.start_sending(what),
        }
    }

    /// Returns the counters of the guest's kernel.
    pub(crate) fn counters(&self) -> &KernelCounters {
        match &self.system {
            GuestKernel::Direct { kernel, .. } => kernel.counters(),
            GuestKernel::Split(kernel) => kernel.counters(),
        }
    }
}

/// Bytes of an MSI-X table entry.
const ENTRY: u64 = 16;
/// Offset of the message data in an MSI-X table entry.
const DATA: u64 = 8;
/// Offset of the vector control word in an MSI-X table entry.
const CONTROL: u64 = 12;

/// Interrupt controller, MSI-X table and other hardware of a guest.
#[derive(Debug)]
pub(crate) struct GuestHardware {
    pub(crate) kind: DomainKind,
    pub(crate) domain: DomainId,
    pub(crate) vcpu: VcpuId,
    pub(crate) controller: InterruptController,
    /// Virtual MSI-X table of the guest's VF; `None` for a guest without a VF.
    table: Option<VirtualMsixTable>,
    /// Bit mask of the MSI-X vectors that the kernel has masked.
    masked: u8,
    /// The guest's timer was reprogrammed and its expiry must be scheduled.
    pub(crate) timer_set: bool,
    /// Packet buffers of the guest's driver, which occupy the last-level cache.
    pub(crate) buffers: PacketBufferRing,
    /// Number of device accesses that the guest passes to its device model.
    pub(crate) forwarded: u32,
    /// The guest is blocked until its device model has completed an access.
    pub(crate) waits: bool,
    /// The guest's front end sent an event.
    pub(crate) notifies: bool,
    /// First invariant that the guest's hardware found violated.
    pub(crate) broken: Option<InvariantViolation>,
}

impl GuestHardware {
    /// Creates the hardware of a guest with a VF. `handler` is the policy for the guest's writes of MSI-X
    /// mask bits.
    pub(crate) fn direct(
        kind: DomainKind,
        owner: (DomainId, VcpuId),
        handler: MsixTablePolicy,
        controller: InterruptController,
        receive_ring: u16,
    ) -> Self {
        let mut table = VirtualMsixTable::new(VECTORS, handler);
        table.set_control(MsiXControl { enabled: true, masked: false });
        for vector in 0..VECTORS {
            let (at, InterruptMessage { address, data }) = (u64::from(vector) * ENTRY, msix_message(vector));
            table.write(at, &address.to_le_bytes());
            table.write(at + DATA, &data.to_le_bytes());
            table.write(at + CONTROL, &0u32.to_le_bytes());
        }
        Self { table: Some(table), ..Self::bare(kind, owner, controller, receive_ring.into()) }
    }

    /// Creates the hardware of a guest with a front end.
    pub(crate) fn split(
        kind: DomainKind,
        owner: (DomainId, VcpuId),
        controller: InterruptController,
    ) -> Self {
        Self::bare(kind, owner, controller, split::ring::SLOTS)
    }

    /// Creates the hardware of a guest without an MSI-X table whose accesses could trap.
    pub(crate) fn bare(
        kind: DomainKind,
        (domain, vcpu): (DomainId, VcpuId),
        controller: InterruptController,
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
            buffers: PacketBufferRing::new(buffers),
            forwarded: 0,
            waits: false,
            notifies: false,
            broken: None,
        }
    }

    /// Signals the interrupt of MSI-X table entry `entry`, which the guest takes as `vector`. Returns `true`
    /// if the guest has an interrupt to take. A masked entry's interrupt stays pending in the table.
    pub(crate) fn signal(&mut self, entry: u16, vector: u8, channels: &mut EventChannels) -> bool {
        let Some(table) = &mut self.table else { return false };
        let sent = table.signal(entry).is_some();
        let mut pending = [0];
        table.table().read_pending(0, &mut pending);
        let is = |bits: u8| bits & 1 << (entry & 7) != 0;
        if sent == is(self.masked) || sent == is(pending[0]) {
            self.broke(InvariantViolation::Mask(entry));
        }
        if sent {
            self.controller.request(vector, channels);
        }
        sent
    }

    /// Writes the mask bit of a vector in the guest's MSI-X table. Returns the handler of the access, if
    /// there is a table.
    pub(crate) fn write_mask(
        &mut self,
        vector: u16,
        masked: bool,
        channels: &mut EventChannels,
    ) -> Option<MsixAccessHandler> {
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

    /// Ends the interrupt that the guest's kernel took last.
    pub(crate) fn end_of_interrupt(
        &mut self,
        path: ApicWritePath,
        memory: &mut HostMemory,
        now: VirtualInstant,
    ) {
        if let Err(broken) = self.controller.end(path, memory, now) {
            self.broke(broken);
        }
    }

    /// Programs the guest kernel's timer.
    pub(crate) fn set_timer(
        &mut self,
        at: Option<VirtualInstant>,
        path: ApicWritePath,
        memory: &mut HostMemory,
        now: VirtualInstant,
    ) {
        self.timer_set = true;
        if let Err(broken) = self.controller.set_timer(at, path, memory, now) {
            self.broke(broken);
        }
    }

    fn broke(&mut self, broken: InvariantViolation) {
        self.broken.get_or_insert(broken);
    }
}
