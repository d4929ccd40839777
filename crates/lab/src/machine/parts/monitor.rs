//! The PF drivers while the machine runs: a thread of the service domain, on its first virtual CPU, visits each
//! port's in turn. What a guest asks for by mailbox waits for the next visit, which the service domain pays for,
//! register by register. A bare machine has no service domain: there, nobody answers after the start.
//!
//! Left out: interrupts of the PF, which it takes none of, and visits before their time, which [`driver::pf::Visit`]
//! may ask for.

use crate::machine::parts::card::{Port, card_time};
use driver::Hal;
use hypervisor::account::{Category, Charge};
use hypervisor::cost::{Cost, CostTable};
use hypervisor::cpu::{Step, Then};
use i82576::Time;
use nic::Nic;
use pcie::Function;
use std::ops::Range;
use std::time::Duration;

/// A round of visits begins at every tenth tick of that virtual CPU: every 10 ms.
const ROUND: u32 = 10;

/// The thread.
#[derive(Debug, Default)]
pub(crate) struct Monitor {
    ticks: u32,
    /// Ports that are still to be visited in this round.
    due: Range<usize>,
}

impl Monitor {
    /// A tick of its virtual CPU, which wakes it for the next round if the last is over.
    pub(crate) fn tick(&mut self, ports: usize) {
        self.ticks = (self.ticks + 1) % ROUND;
        if self.ticks == 0 && self.due.is_empty() {
            self.due = 0..ports;
        }
    }

    /// One visit, if one is due; answers which port it has written to, if any.
    pub(crate) fn visit(
        &mut self,
        step: &mut Step,
        then: &mut Then,
        ports: &mut [Port],
        table: &CostTable,
    ) -> Option<usize> {
        let index = self.due.next()?;
        if !self.due.is_empty() {
            *then = Then::Continue;
        }
        let port = &mut ports[index];
        let mut hal = Registers { step, nic: &mut port.nic, table, written: false };
        // The link does not change.
        port.pf.visit(&mut hal);
        hal.written.then_some(index)
    }
}

/// The PF's registers during one step, each access charged.
struct Registers<'a> {
    step: &'a mut Step,
    nic: &'a mut Nic,
    table: &'a CostTable,
    written: bool,
}

impl Hal for Registers<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        self.step.charge(Category::Driver, self.table[Cost::MmioRead]);
        self.nic.read(Function::Pf, offset, self.now())
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.written = true;
        self.step.charge(Category::Driver, self.table[Cost::MmioWrite]);
        self.nic.write(Function::Pf, offset, value, self.now());
    }

    fn now(&self) -> Time {
        card_time(self.step.now())
    }

    fn wait(&mut self, _time: Duration) {}
}
