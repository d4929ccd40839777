//! The platform of a guest's kernel: charges the kernel's operations, and the VM exits that they cause, to
//! the current step of the guest. The machine runs device models; [`super::split`] has the front end's
//! machine interface.

use crate::machine::chipset::Chipset;
use crate::machine::controller::ApicWritePath;
use crate::machine::parts::card::{NicPort, card_time};
use crate::machine::parts::guest::GuestHardware;
use crate::machine::parts::registers::VfRegisters;
use driver::{DmaAllocation, DmaHal, Hal, hal::OutOfDmaMemory};
use guest::{DeviceAccessOutcome, InterruptSource, KernelPlatform};
use hypervisor::account::{CycleCategory, CycleSink};
use hypervisor::cost::{CostConstant, CostTable};
use hypervisor::cpu::{LastLevelCache, PacketBufferRing, PagingMode, Tlb, VcpuStep};
use hypervisor::decode::apic_access::EoiPolicy;
use hypervisor::domain::DomainKind;
use hypervisor::exit::{EoiPath, VmExitReason};
use hypervisor::msix::MsixAccessHandler;
use i82576::Time;
use sim::VirtualInstant;
use std::time::Duration;

/// Bytes of the last-level cache that a packet touches: the driver's buffer of 2 KB.
const BUFFER: u64 = 2_048;

/// Platform of a guest during one step, with a network device `D`.
pub(crate) struct GuestPlatform<'a, D> {
    pub(crate) step: &'a mut VcpuStep,
    pub(crate) hardware: &'a mut GuestHardware,
    pub(crate) chipset: &'a mut Chipset,
    pub(crate) device: D,
    pub(crate) table: &'a CostTable,
    pub(crate) eoi: EoiPath,
    /// Socket that the guest runs on, with its last-level cache.
    pub(crate) cache: (usize, &'a mut LastLevelCache),
}

/// Network device of a guest, whose received frames are in buffers that the last-level cache may hold.
pub(crate) trait ReceiveBuffers {
    /// Reads the next received frame on a socket with this cache. Returns `true` if the cache held the frame's buffer.
    /// `own` are the buffers of a card's ring.
    fn read_frame(&mut self, own: &mut PacketBufferRing, cache: (usize, &mut LastLevelCache)) -> bool {
        own.touch(cache.1, BUFFER)
    }

    /// Skips frames that no program will read: the guest has become idle.
    fn skip_frames(&mut self) {}
}

impl<D> GuestPlatform<'_, D> {
    pub(crate) fn virtualised(&self) -> bool {
        self.hardware.kind == DomainKind::Hvm
    }

    /// Returns the path of an APIC write that causes a VM exit for the reason `exit`, or does not exit.
    fn apic_write_path(&self, exit: Option<VmExitReason>) -> ApicWritePath {
        match (exit, self.eoi) {
            (None, _) => ApicWritePath::Direct,
            (Some(VmExitReason::Msr), _) => ApicWritePath::Msr,
            (Some(_), EoiPath::Emulated) => ApicWritePath::Exit(EoiPolicy::Emulate),
            (Some(_), EoiPath::Fast) => ApicWritePath::Exit(EoiPolicy::Fast),
            (Some(_), EoiPath::FastChecked) => ApicWritePath::Exit(EoiPolicy::FastChecked),
        }
    }

    fn hypercall(&mut self) {
        self.step.charge(CycleCategory::Hypercall, self.table[CostConstant::HypercallPv]);
    }

    fn exit(&mut self, kind: VmExitReason) {
        self.step.charge(kind.category(), kind.price(self.table));
        self.pollute();
    }

    /// Charges the refill of the guest's caches after a VM exit.
    fn pollute(&mut self) {
        self.step.charge(CycleCategory::Refill, self.table[CostConstant::ExitPollution]);
    }

    fn paging(&self) -> PagingMode {
        PagingMode::of(self.hardware.kind)
    }
}

impl<D: ReceiveBuffers> KernelPlatform for GuestPlatform<'_, D> {
    fn charge(&mut self, category: CycleCategory, cycles: u64) {
        self.step.charge(category, cycles);
    }

    fn cost(&self, cost: CostConstant) -> u64 {
        self.table[cost]
    }

    fn instant(&self) -> VirtualInstant {
        self.step.now()
    }

    fn take_interrupt(&mut self) -> Option<InterruptSource> {
        let (interrupt, upcall) = self.hardware.controller.take(&mut self.chipset.channels)?;
        if self.virtualised() {
            self.step.charge(CycleCategory::Injection, self.table[CostConstant::Injection]);
        } else if upcall {
            self.step.charge(CycleCategory::EventChannel, self.table[CostConstant::EventUpcall]);
        }
        Some(interrupt)
    }

    fn end_of_interrupt(&mut self) {
        let exit = if self.virtualised() { self.table.on_eoi() } else { None };
        match exit {
            Some(VmExitReason::ApicEoi) => {
                self.step.charge(CycleCategory::ApicEoi, self.eoi.price(self.table));
                self.pollute();
            }
            Some(exit) => self.exit(exit),
            None => {}
        }
        let (path, now) = (self.apic_write_path(exit), self.step.now());
        self.hardware.end_of_interrupt(path, &mut self.chipset.memory, now);
    }

    fn mask(&mut self, vector: u16, masked: bool) -> DeviceAccessOutcome {
        let by = self.hardware.write_mask(vector, masked, &mut self.chipset.channels);
        let Some(by) = by else { return DeviceAccessOutcome::Done };
        if !self.virtualised() {
            // A paravirtualized kernel masks its event channel instead, in shared memory.
            if self.hardware.kind == DomainKind::Native {
                self.step.charge(CycleCategory::Driver, self.table[CostConstant::MmioWrite]);
            }
            return DeviceAccessOutcome::Done;
        }
        match by {
            MsixAccessHandler::Hypervisor => {
                self.exit(VmExitReason::MsixMmio);
                DeviceAccessOutcome::Done
            }
            MsixAccessHandler::DeviceModel(_) => {
                self.step.charge(CycleCategory::MsixMmio, self.table[CostConstant::ExitOtherMmio]);
                // The request is an event to a virtual CPU of the service domain.
                let sending = self.table[CostConstant::EventSend] + self.table[CostConstant::EventRemote];
                self.step.charge(CycleCategory::EventChannel, sending);
                self.pollute();
                self.hardware.forwarded += 1;
                self.hardware.waits = true;
                DeviceAccessOutcome::Blocked
            }
        }
    }

    fn set_timer(&mut self, at: Option<VirtualInstant>) {
        let exit = self.virtualised().then(|| self.table.on_apic_write());
        match exit {
            Some(exit) => self.exit(exit),
            None if self.hardware.kind == DomainKind::Pvm => self.hypercall(),
            None => {}
        }
        let (path, now) = (self.apic_write_path(exit), self.step.now());
        self.hardware.set_timer(at, path, &mut self.chipset.memory, now);
    }

    fn halt(&mut self) {
        self.device.skip_frames();
        match self.hardware.kind {
            DomainKind::Hvm => self.exit(VmExitReason::Hlt),
            DomainKind::Pvm => self.hypercall(),
            _ => {}
        }
    }

    fn copy_to_program(&mut self, bytes: u64) {
        let (socket, cache) = &mut self.cache;
        let warm = self.device.read_frame(&mut self.hardware.buffers, (*socket, cache));
        let rate = if warm { CostConstant::RxCopy } else { CostConstant::CopyCold };
        self.step.charge(CycleCategory::User, self.table.bytes(rate, bytes));
    }

    fn system_call(&mut self) {
        if self.hardware.kind == DomainKind::Pvm {
            self.step.charge(CycleCategory::Hypercall, self.table[CostConstant::PvSyscall]);
        }
        let misses = Tlb::new(self.table).system_call(self.paging());
        self.step.charge(CycleCategory::Refill, misses);
    }

    fn packet(&mut self, bytes: u64) {
        let misses = Tlb::new(self.table).packet(self.paging(), bytes);
        self.step.charge(CycleCategory::Refill, misses);
    }
}

/// VF that is assigned to a guest.
pub(crate) struct AssignedVf<'a> {
    pub(crate) port: &'a mut NicPort,
    pub(crate) vf: u8,
    /// The guest accessed a VF register in this step, so the card may have new work.
    pub(crate) touched: bool,
}

impl ReceiveBuffers for AssignedVf<'_> {}

impl GuestPlatform<'_, AssignedVf<'_>> {
    fn registers(&mut self) -> VfRegisters<'_> {
        let AssignedVf { port, vf, .. } = &mut self.device;
        VfRegisters { step: self.step, port, vf: *vf, chipset: self.chipset, table: self.table }
    }
}

impl Hal for GuestPlatform<'_, AssignedVf<'_>> {
    fn read(&mut self, offset: u32) -> u32 {
        self.device.touched = true;
        self.registers().read(offset)
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.device.touched = true;
        self.registers().write(offset, value);
    }

    fn now(&self) -> Time {
        card_time(self.step.now())
    }

    fn wait(&mut self, _time: Duration) {}
}

impl DmaHal for GuestPlatform<'_, AssignedVf<'_>> {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        self.registers().dma_alloc(length, align)
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        self.device.port.functions.paths[usize::from(self.device.vf)].read(self.chipset, iova, into);
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        self.registers().dma_write(iova, from);
    }
}
