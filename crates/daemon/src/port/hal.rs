//! The PF side's ways to the card: register calls for the PF driver, configuration requests for the SR-IOV
//! manager, both in the thread that owns the card. The PF does no DMA and takes no interrupts.

use super::bus::LiveBus;
use super::uplink::Uplink;
use driver::Hal;
use host::poll::Clock;
use i82576::Time;
use nic::{Budget, Nic};
use pcie::{ConfigAccess, Function};
use std::time::Duration;

/// The moment now on the host's monotonic clock.
pub(crate) fn now() -> Time {
    Time::from_nanos(Clock.now_ns())
}

/// The card as the PF driver sees it.
pub(super) struct PfHal<'a>(pub(super) &'a mut Nic);

impl Hal for PfHal<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        self.0.read(Function::Pf, offset, now())
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.0.write(Function::Pf, offset, value, now());
    }

    fn now(&self) -> Time {
        now()
    }

    fn wait(&mut self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// How long a waiting PF driver leaves the card alone.
const STEP: Duration = Duration::from_millis(1);

/// The card as the PF driver sees it when the port runs: while the driver waits, the card goes on. What is under way
/// ends, and guests get the interrupts that they are owed.
pub(super) struct RunningHal<'a> {
    pub(super) nic: &'a mut Nic,
    pub(super) bus: &'a mut LiveBus,
    pub(super) uplink: &'a mut Uplink,
}

impl Hal for RunningHal<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        PfHal(self.nic).read(offset)
    }

    fn write(&mut self, offset: u32, value: u32) {
        PfHal(self.nic).write(offset, value);
    }

    fn now(&self) -> Time {
        now()
    }

    fn wait(&mut self, time: Duration) {
        let end = now() + time;
        loop {
            let left = end.since(now());
            self.nic.poll(now(), Budget::default(), self.bus, self.uplink);
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(STEP));
        }
    }
}

/// The card as the SR-IOV manager sees it.
pub(crate) struct Card<'a>(pub(crate) &'a mut Nic);

impl ConfigAccess for Card<'_> {
    fn config_read(&mut self, function: Function, offset: u16, size: u8) -> u32 {
        self.0.config_read(function, offset, size)
    }

    fn config_write(&mut self, function: Function, offset: u16, size: u8, value: u32) {
        self.0.config_write(function, offset, size, value);
    }
}

impl iovm::Device for Card<'_> {}
