//! The PHY behind MDIC: an IGP3 at address 1 that has finished negotiation, at 1000 Mb/s full duplex. Pages other than 0
//! read zero, and slower speeds are not implemented.

use i82576::bits::mdic;
use i82576::phy::{self, control, status};
use serde::{Deserialize, Serialize};

/// Registers and link of the PHY.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Phy {
    values: [u16; phy::REGISTERS],
    /// True if the link was lost since the last read of the status register (BMSR.LINK latches low).
    lost: bool,
    /// True if the PHY's link to the wire is up.
    up: bool,
}

impl Phy {
    /// Creates the PHY after power-on.
    pub(crate) fn new() -> Self {
        Self { values: phy::RESET, lost: false, up: false }
    }

    /// Returns true if the PHY loops sent frames back.
    pub(crate) fn loops_back(&self) -> bool {
        self.values[phy::CONTROL] & control::LOOPBACK != 0
    }

    /// Updates the PHY's link from the wire's carrier. Returns true if the link is up. A PHY that is powered down or
    /// isolated has no link; any other PHY in loopback always has one.
    pub(crate) fn renew_link(&mut self, carrier: bool) -> bool {
        let off = self.values[phy::CONTROL] & (control::POWER_DOWN | control::ISOLATE) != 0;
        let up = !off && (carrier || self.loops_back());
        self.lost |= self.up && !up;
        self.up = up;
        up
    }

    /// Sets the PHY's registers to their values after power-on.
    pub(crate) fn reset(&mut self) {
        self.values = phy::RESET;
    }

    /// Carries out a write of `value` to MDIC: reads or writes a PHY register. Returns the new value of MDIC.
    pub(crate) fn access(&mut self, value: u32) -> u32 {
        let done = value & !(mdic::READY | mdic::ERROR) | mdic::READY;
        let register = (value >> mdic::REGISTER_SHIFT & 0x1f) as usize;
        // A driver that probes other addresses gets an error, as on a bus without a PHY there.
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

    /// Returns true if an access to the PHY register goes to a page other than 0, by the selected page.
    fn is_elsewhere(&self, register: usize) -> bool {
        let paged = (phy::PORT_CONFIG..phy::PAGE).contains(&register);
        paged && self.values[phy::PAGE] >> 5 != 0
    }
}
