//! The PHY behind MDIC: an IGP3 at address 1 that has always finished negotiating, at 1000 Mb/s full duplex.
//! Left out: pages other than 0, which read zero, and slower speeds.

use i82576::bits::mdic;
use i82576::phy::{self, control, status};
use serde::{Deserialize, Serialize};

/// The registers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Phy {
    values: [u16; phy::REGISTERS],
    /// The link was lost since the status was last read.
    lost: bool,
    /// There is a link now.
    up: bool,
}

impl Phy {
    /// After power-on.
    pub(crate) fn new() -> Self {
        Self { values: phy::RESET, lost: false, up: false }
    }

    /// What is sent comes back.
    pub(crate) fn loops_back(&self) -> bool {
        self.values[phy::CONTROL] & control::LOOPBACK != 0
    }

    /// Whether there is a link, given what is on the wire: none while the PHY sleeps or is cut off, and always
    /// one in loopback.
    pub(crate) fn renew_link(&mut self, carrier: bool) -> bool {
        let off = self.values[phy::CONTROL] & (control::POWER_DOWN | control::ISOLATE) != 0;
        let up = !off && (carrier || self.loops_back());
        self.lost |= self.up && !up;
        self.up = up;
        up
    }

    /// Registers go back to what they are after power-on.
    pub(crate) fn reset(&mut self) {
        self.values = phy::RESET;
    }

    /// MDIC after `value` was written to it.
    pub(crate) fn access(&mut self, value: u32) -> u32 {
        let done = value & !(mdic::READY | mdic::ERROR) | mdic::READY;
        let register = (value >> mdic::REGISTER_SHIFT & 0x1f) as usize;
        if value >> mdic::PHY_SHIFT & 0x1f != phy::ADDRESS {
            return done | mdic::ERROR;
        }
        match value & mdic::OPERATION {
            mdic::READ => done & !mdic::DATA | u32::from(self.read(register)),
            mdic::WRITE => {
                self.write(register, value as u16);
                done
            }
            _ => done | mdic::ERROR,
        }
    }

    fn read(&mut self, register: usize) -> u16 {
        if self.is_elsewhere(register) {
            return 0;
        }
        let linked = if self.up { phy::LINKED[register] } else { 0 };
        let value = self.values[register] | linked;
        if register == phy::STATUS && core::mem::take(&mut self.lost) {
            return value & !status::LINK;
        }
        value
    }

    fn write(&mut self, register: usize, value: u16) {
        if self.is_elsewhere(register) {
            return;
        }
        if register == phy::CONTROL && value & control::RESET != 0 {
            return self.reset();
        }
        let mask = phy::WRITABLE[register];
        self.values[register] = self.values[register] & !mask | value & mask;
    }

    /// Another page is selected, and the register is one that a page moves.
    fn is_elsewhere(&self, register: usize) -> bool {
        let paged = (phy::PORT_CONFIG..phy::PAGE).contains(&register);
        paged && self.values[phy::PAGE] >> 5 != 0
    }
}
