//! A queue pair as the network device of a kernel, which is one processor's part of a guest's. All pairs are of one VF and
//! one driver. A doorbell is a store where the VF's pages are mapped; elsewhere it exits, and a process of the service
//! domain writes the register for the guest. Left out: requests of a guest to its PF.

use super::{Port, VF};
use crate::machine::parts::card::card_time;
use crate::machine::parts::platform::Env;
use avf::ids::MAPPED;
use driver::avf::vf::Vf;
use driver::vf::{TxError, TxOffload};
use driver::{DmaHal, DmaRegion, Hal, hal::OutOfDmaMemory};
use guest::{Device, Heard, Platform};
use hypervisor::account::{Category, Charge};
use hypervisor::cost::Cost;
use hypervisor::exit::ExitKind;
use i82576::{MacAddress, Time};
use std::time::Duration;

/// How a guest's doorbells reach the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doorbell {
    /// The VF's pages are mapped: a store, and no exit.
    Memory,
    /// The store exits, and a message of it is sent; the guest goes on.
    Posted,
    /// The same, and the guest waits for the answer.
    Answered,
}

/// How often a guest has rung.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rung {
    /// Stores to mapped pages.
    pub(crate) stores: u64,
    /// Accesses that exited.
    pub(crate) exits: u64,
}

/// The VF as one processor's kernel reaches it in a step.
pub(crate) struct Side<'a> {
    pub(crate) port: &'a mut Port,
    /// Taken while the driver works with this very side.
    pub(crate) driver: Option<&'a mut Vf>,
    pub(crate) doorbell: Doorbell,
    pub(crate) rung: &'a mut Rung,
    /// Registers that are to be written for the guest, and with what.
    pub(crate) messages: Vec<(u32, u32)>,
    /// The card has something new to look at.
    pub(crate) touched: bool,
}

impl<'a> Env<'_, Side<'a>> {
    fn drive<T>(&mut self, act: impl FnOnce(&mut Vf, &mut Self) -> T) -> T {
        let driver = self.device.driver.take().expect("the driver is at nothing else");
        let answer = act(driver, self);
        self.device.driver = Some(driver);
        answer
    }
}

impl Hal for Env<'_, Side<'_>> {
    /// No driver of the family reads a register on a frame's way.
    fn read(&mut self, offset: u32) -> u32 {
        self.step.charge(ExitKind::OtherMmio.category(), ExitKind::OtherMmio.price(self.table));
        self.device.rung.exits += 1;
        self.device.port.card.read(VF, offset)
    }

    fn write(&mut self, offset: u32, value: u32) {
        let Side { port, doorbell, rung, messages, touched, .. } = &mut self.device;
        if *doorbell == Doorbell::Memory && MAPPED.iter().any(|pages| pages.contains(&offset)) {
            self.step.charge(Category::Driver, self.table[Cost::MmioWrite]);
            port.card.write(VF, offset, value);
            (*touched, rung.stores) = (true, rung.stores + 1);
            return;
        }
        messages.push((offset, value));
        rung.exits += 1;
        self.hardware.waits |= *doorbell == Doorbell::Answered;
        self.step.charge(ExitKind::OtherMmio.category(), ExitKind::OtherMmio.price(self.table));
        self.step.charge(Category::Refill, self.table[Cost::ExitPollution]);
        let sending = self.table[Cost::EventSend] + self.table[Cost::EventRemote];
        self.step.charge(Category::EventChannel, sending);
    }

    fn now(&self) -> Time {
        card_time(self.step.now())
    }

    fn wait(&mut self, _time: Duration) {}
}

impl DmaHal for Env<'_, Side<'_>> {
    fn dma_alloc(&mut self, length: usize, _align: usize) -> Result<DmaRegion, OutOfDmaMemory> {
        // A driver sets memory aside before it starts, and never on a frame's way.
        Err(OutOfDmaMemory(length))
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        self.device.port.functions.own().read(self.chipset, iova, into);
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        self.device.port.functions.own().write(self.chipset, iova, from);
    }
}

/// A queue pair, by its number. Its vector is the next.
#[derive(Debug)]
pub(crate) struct Pair {
    number: u8,
    mac: MacAddress,
    /// Descriptors that the card has not given back, as of the last look.
    unsent: usize,
}

impl Pair {
    pub(crate) fn new(number: u8, mac: MacAddress) -> Self {
        Self { number, mac, unsent: 0 }
    }
}

impl Device<Env<'_, Side<'_>>> for Pair {
    fn mac(&self) -> MacAddress {
        self.mac
    }

    /// The vector has switched itself off when it interrupted.
    fn interrupt(&mut self, env: &mut Env<'_, Side<'_>>, _vector: u16) -> Heard {
        let before = self.unsent;
        self.unsent = env.drive(|driver, env| {
            driver.clean(env);
            driver.tx_pending(self.number)
        });
        Heard { received: true, transmitted: self.unsent < before }
    }

    fn receive(&mut self, env: &mut Env<'_, Side<'_>>, into: &mut [u8]) -> Option<usize> {
        let received = env.drive(|driver, env| driver.receive(env, self.number, into))?;
        env.charge(Category::Driver, env.cost(Cost::RxDriver));
        Some(received.length)
    }

    fn receive_done(&mut self, env: &mut Env<'_, Side<'_>>) -> bool {
        // The card interrupts again for what came since the last look.
        env.drive(|driver, env| driver.enable_interrupt(env, self.number + 1));
        false
    }

    fn transmit(
        &mut self,
        env: &mut Env<'_, Side<'_>>,
        frame: &[u8],
        offload: &TxOffload,
    ) -> Result<(), TxError> {
        env.charge(Category::Driver, env.cost(Cost::TxDriver));
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

    fn flush(&mut self, env: &mut Env<'_, Side<'_>>) {
        env.drive(|driver, env| driver.flush(env));
    }
}
