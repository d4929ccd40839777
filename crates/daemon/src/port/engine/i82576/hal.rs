//! Access of the PF driver to an 82576, on the thread that owns the card. The PF does no DMA and takes no
//! interrupts. Time is an argument: a driver's wait advances it, and nothing sleeps.

use crate::port::engine::bus::GuestBus;
use crate::port::engine::uplink::PortUplink;
use driver::Hal;
use i82576::{MacAddress, Time};
use nic::{Nic, PollBudget};
use pcie::Function;
use plane::PortIndex;
use std::time::Duration;
use units::work::FRAME_QUANTUM;

/// Work of the card in a round. Frames from the wire have no account, and get as much of a round as the frames of a VF.
pub(super) const BUDGET: PollBudget = PollBudget { frames: FRAME_QUANTUM.0 as usize };

/// Access of the PF driver to the registers of an 82576.
pub(super) struct I82576PfHal<'a> {
    nic: &'a mut Nic,
    now: Time,
}

impl<'a> I82576PfHal<'a> {
    /// Creates the PF driver's access to the card, with the present time.
    pub(super) fn new(nic: &'a mut Nic, now: Time) -> Self {
        Self { nic, now }
    }
}

impl Hal for I82576PfHal<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        self.nic.read(Function::Pf, offset, self.now)
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.nic.write(Function::Pf, offset, value, self.now);
    }

    fn now(&self) -> Time {
        self.now
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    fn may_have_address(&mut self, vf: u8, address: MacAddress) -> bool {
        self.nic.guards_mut().may_request(PortIndex::of_field(vf.into()), address)
    }

    fn revoke_address(&mut self, vf: u8, address: MacAddress) -> bool {
        self.nic.guards_mut().revoke_address(PortIndex::of_field(vf.into()), address)
    }
}

/// Longest time between two polls of the card while the PF driver waits.
const STEP: Duration = Duration::from_millis(1);

/// Access of the PF driver to a running 82576. While the driver waits, the card is polled, so that it finishes pending
/// frames and sends pending interrupts.
pub(super) struct RunningCardHal<'a> {
    pub(super) nic: &'a mut Nic,
    pub(super) bus: &'a mut GuestBus,
    pub(super) uplink: &'a mut PortUplink,
    pub(super) now: Time,
}

impl Hal for RunningCardHal<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        I82576PfHal::new(self.nic, self.now).read(offset)
    }

    fn write(&mut self, offset: u32, value: u32) {
        I82576PfHal::new(self.nic, self.now).write(offset, value);
    }

    fn now(&self) -> Time {
        self.now
    }

    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.uplink.set_time(self.now);
            self.nic.poll(self.now, BUDGET, self.bus, self.uplink);
            let left = end.since(self.now);
            if left.is_zero() {
                return;
            }
            self.now = self.now + left.min(STEP);
        }
    }

    fn may_have_address(&mut self, vf: u8, address: MacAddress) -> bool {
        I82576PfHal::new(self.nic, self.now).may_have_address(vf, address)
    }

    fn revoke_address(&mut self, vf: u8, address: MacAddress) -> bool {
        I82576PfHal::new(self.nic, self.now).revoke_address(vf, address)
    }
}
