//! The PF drivers in a running server: a thread on the service domain's first virtual CPU polls the PF driver
//! of each port in turn. A guest's mailbox request waits for the next poll, whose register accesses are
//! charged to the service domain. A bare machine has no service domain, so requests are not answered after
//! the start.
//!
//! The PF takes no interrupts, and early visits that [`driver::pf::PfServiceResults`] may request are not made.

use crate::machine::parts::card::{NicPort, card_time};
use driver::Hal;
use hypervisor::account::{CycleCategory, CycleSink};
use hypervisor::cost::{CostConstant, CostTable};
use hypervisor::cpu::{VcpuStep, VcpuStepOutcome};
use i82576::Time;
use nic::Nic;
use pcie::Function;
use std::ops::Range;
use std::time::Duration;

/// Ticks between the starts of two rounds in which the monitor thread polls every port's PF driver: 10 ms.
const ROUND: u32 = 10;

/// Thread of the service domain that polls the PF drivers of all ports in turn.
#[derive(Debug, Default)]
pub(crate) struct PfMonitor {
    ticks: u32,
    /// Ports whose PF drivers have not been polled yet in this round.
    due: Range<usize>,
}

impl PfMonitor {
    /// Counts a tick of the service domain's first virtual CPU. Every `ROUND` ticks starts to poll all PF
    /// drivers again, if the last round is complete.
    pub(crate) fn tick(&mut self, ports: usize) {
        self.ticks = (self.ticks + 1) % ROUND;
        if self.ticks == 0 && self.due.is_empty() {
            self.due = 0..ports;
        }
    }

    /// Polls the PF driver of the next port in the round. Returns the index of that port if the driver wrote
    /// a register.
    pub(crate) fn visit(
        &mut self,
        step: &mut VcpuStep,
        then: &mut VcpuStepOutcome,
        ports: &mut [NicPort],
        table: &CostTable,
    ) -> Option<usize> {
        let index = self.due.next()?;
        if !self.due.is_empty() {
            *then = VcpuStepOutcome::Continue;
        }
        let port = &mut ports[index];
        let mut hal = PfRegisters { step, nic: &mut port.nic, table, written: false };
        // The result is ignored: the link does not change.
        port.pf.visit(&mut hal);
        hal.written.then_some(index)
    }
}

/// Registers of the PF, whose accesses are charged to one step of the service domain.
struct PfRegisters<'a> {
    step: &'a mut VcpuStep,
    nic: &'a mut Nic,
    table: &'a CostTable,
    written: bool,
}

impl Hal for PfRegisters<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        self.step.charge(CycleCategory::Driver, self.table[CostConstant::MmioRead]);
        self.nic.read(Function::Pf, offset, self.now())
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.written = true;
        self.step.charge(CycleCategory::Driver, self.table[CostConstant::MmioWrite]);
        self.nic.write(Function::Pf, offset, value, self.now());
    }

    fn now(&self) -> Time {
        card_time(self.step.now())
    }

    fn wait(&mut self, _time: Duration) {}
}
