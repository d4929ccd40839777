//! A queue pair as the network device of a kernel, which is one processor's part of a guest. All pairs share
//! a VF and a driver. A doorbell is a store if the VF's pages are mapped; otherwise it exits, and a process
//! of the service domain writes the register. The guest sends no PF requests.

use super::{AvfPort, VF};
use crate::machine::parts::card::card_time;
use crate::machine::parts::platform::{GuestPlatform, ReceiveBuffers};
use avf::ids::MAPPED;
use driver::avf::vf::AvfDriver;
use driver::vf::{TxError, TxOffload};
use driver::{DmaAllocation, DmaHal, Hal, hal::OutOfDmaMemory};
use guest::{DeviceEvents, KernelPlatform, NetworkDevice};
use hypervisor::account::{CycleCategory, CycleSink};
use hypervisor::cost::CostConstant;
use hypervisor::exit::VmExitReason;
use i82576::{MacAddress, Time};
use std::time::Duration;

/// Path of a guest's doorbells to the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoorbellPath {
    /// The VF's pages are mapped: a doorbell is a store without a VM exit.
    Memory,
    /// A doorbell's store causes a VM exit and is sent as a message; the guest continues.
    Posted,
    /// A doorbell's store causes a VM exit and is sent as a message; the guest waits for the answer.
    Answered,
}

/// Doorbell counters of a guest.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DoorbellCounters {
    /// Number of doorbell stores to mapped pages.
    pub(crate) stores: u64,
    /// Number of doorbell accesses that caused VM exits.
    pub(crate) exits: u64,
}

/// VF with its driver and doorbells, for the kernel of one guest processor during a step.
pub(crate) struct VfQueuePairView<'a> {
    pub(crate) port: &'a mut AvfPort,
    /// Driver of the VF. The field is `None` while the driver runs, because the driver accesses the VF
    /// through this same struct.
    pub(crate) driver: Option<&'a mut AvfDriver>,
    pub(crate) doorbell: DoorbellPath,
    pub(crate) doorbells: &'a mut DoorbellCounters,
    /// Register writes that the service domain has to make for the guest: offsets and values.
    pub(crate) messages: Vec<(u32, u32)>,
    /// The guest accessed a VF register, so the card has new work.
    pub(crate) touched: bool,
}

impl ReceiveBuffers for VfQueuePairView<'_> {}

impl<'a> GuestPlatform<'_, VfQueuePairView<'a>> {
    fn drive<T>(&mut self, act: impl FnOnce(&mut AvfDriver, &mut Self) -> T) -> T {
        let driver = self.device.driver.take().expect("the driver is not in use");
        let answer = act(driver, self);
        self.device.driver = Some(driver);
        answer
    }
}

impl Hal for GuestPlatform<'_, VfQueuePairView<'_>> {
    /// Reads a VF register, and charges a VM exit. The driver reads no VF register to send or receive a
    /// frame.
    fn read(&mut self, offset: u32) -> u32 {
        self.step.charge(VmExitReason::OtherMmio.category(), VmExitReason::OtherMmio.price(self.table));
        self.device.doorbells.exits += 1;
        self.device.port.card.read(VF, offset)
    }

    fn write(&mut self, offset: u32, value: u32) {
        let VfQueuePairView { port, doorbell, doorbells, messages, touched, .. } = &mut self.device;
        if *doorbell == DoorbellPath::Memory && MAPPED.iter().any(|pages| pages.contains(&offset)) {
            self.step.charge(CycleCategory::Driver, self.table[CostConstant::MmioWrite]);
            port.card.write(VF, offset, value);
            (*touched, doorbells.stores) = (true, doorbells.stores + 1);
            return;
        }
        messages.push((offset, value));
        doorbells.exits += 1;
        self.hardware.waits |= *doorbell == DoorbellPath::Answered;
        self.step.charge(VmExitReason::OtherMmio.category(), VmExitReason::OtherMmio.price(self.table));
        self.step.charge(CycleCategory::Refill, self.table[CostConstant::ExitPollution]);
        let sending = self.table[CostConstant::EventSend] + self.table[CostConstant::EventRemote];
        self.step.charge(CycleCategory::EventChannel, sending);
    }

    fn now(&self) -> Time {
        card_time(self.step.now())
    }

    fn wait(&mut self, _time: Duration) {}
}

impl DmaHal for GuestPlatform<'_, VfQueuePairView<'_>> {
    fn dma_alloc(&mut self, length: usize, _align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        // A driver allocates before it starts, never on the path of a frame.
        Err(OutOfDmaMemory(length))
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        self.device.port.functions.own().read(self.chipset, iova, into);
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        self.device.port.functions.own().write(self.chipset, iova, from);
    }
}

/// Queue pair of the VF, as one processor's network device. Its interrupt vector is the pair's number plus 1.
#[derive(Debug)]
pub(crate) struct VfQueuePair {
    number: u8,
    mac: MacAddress,
    /// Number of transmit descriptors that the card had not returned at the last check.
    unsent: usize,
}

impl VfQueuePair {
    pub(crate) fn new(number: u8, mac: MacAddress) -> Self {
        Self { number, mac, unsent: 0 }
    }
}

impl NetworkDevice<GuestPlatform<'_, VfQueuePairView<'_>>> for VfQueuePair {
    fn mac(&self) -> MacAddress {
        self.mac
    }

    /// Handles an interrupt of the queue pair's vector, which the card has disabled.
    fn interrupt(&mut self, env: &mut GuestPlatform<'_, VfQueuePairView<'_>>, _vector: u16) -> DeviceEvents {
        let before = self.unsent;
        self.unsent = env.drive(|driver, env| {
            driver.clean(env);
            driver.tx_pending(self.number)
        });
        DeviceEvents { received: true, transmitted: self.unsent < before }
    }

    fn receive(
        &mut self,
        env: &mut GuestPlatform<'_, VfQueuePairView<'_>>,
        into: &mut [u8],
    ) -> Option<usize> {
        let received = env.drive(|driver, env| driver.receive(env, self.number, into))?;
        env.charge(CycleCategory::Driver, env.cost(CostConstant::RxDriver));
        Some(received.length)
    }

    fn receive_done(&mut self, env: &mut GuestPlatform<'_, VfQueuePairView<'_>>) -> bool {
        // No frame can be missed: the card interrupts again for frames that arrived since the last poll.
        env.drive(|driver, env| driver.enable_interrupt(env, self.number + 1));
        false
    }

    fn transmit(
        &mut self,
        env: &mut GuestPlatform<'_, VfQueuePairView<'_>>,
        frame: &[u8],
        offload: &TxOffload,
    ) -> Result<(), TxError> {
        env.charge(CycleCategory::Driver, env.cost(CostConstant::TxDriver));
        let (taken, unsent) = env.drive(|driver, env| {
            let taken = driver.transmit_with(env, self.number, frame, offload);
            (taken, driver.tx_pending(self.number))
        });
        self.unsent = unsent;
        if taken { Ok(()) } else { Err(TxError::Full) }
    }

    fn unsent(&self) -> usize {
        self.unsent
    }

    fn flush(&mut self, env: &mut GuestPlatform<'_, VfQueuePairView<'_>>) {
        env.drive(|driver, env| driver.flush(env));
    }
}
