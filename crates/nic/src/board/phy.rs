//! The PHY behind MDIC: an IGP3 at address 1 that negotiates 1000 Mb/s full duplex. Pages other than 0 read zero, and slower
//! speeds are not implemented.
//!
//! A negotiation that a driver starts takes [`NEGOTIATION`], during which no frame of the wire reaches the card. Linux igb
//! relies on that: its loopback test (`ethtool -t`) resets the PHY, starts its rings, and sets the PHY's loopback 50 ms later.
//! A frame of the wire in between makes igb's test spin in the kernel for ever. A carrier that comes and goes changes no
//! negotiation. After power-on, and after a function-level reset, a carrier brings the link at once.

use core::time::Duration;
use i82576::Time;
use i82576::bits::mdic;
use i82576::phy::{self, control, status};
use serde::{Deserialize, Serialize};

/// Time that a negotiation takes. PHYs are silent for 1.2 to 1.5 s (IEEE 802.3, 28.3.2, `break_link_timer`) and then exchange pages;
/// igb's own test of the link waits 5 s.
const NEGOTIATION: Duration = Duration::from_secs(2);

/// Registers and link of the PHY.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Phy {
    values: [u16; phy::REGISTERS],
    /// True if the link was lost since the last read of the status register (BMSR.LINK latches low).
    lost: bool,
    /// True if the PHY's link to the wire is up.
    up: bool,
    /// End of the negotiation, or `None` if the PHY does not negotiate. Saved as `NicState::negotiation`.
    #[serde(skip)]
    negotiates_until: Option<Time>,
}

impl Phy {
    /// Creates the PHY after power-on.
    pub(crate) fn new() -> Self {
        Self { values: phy::RESET, lost: false, up: false, negotiates_until: None }
    }

    /// Returns true if the PHY loops sent frames back.
    pub(crate) fn loops_back(&self) -> bool {
        self.values[phy::CONTROL] & control::LOOPBACK != 0
    }

    /// Updates the PHY's link from the wire's carrier. Returns true if the link is up. A PHY that is powered down or
    /// isolated has no link; any other PHY in loopback always has one. While the PHY negotiates, no carrier brings a link.
    pub(crate) fn renew_link(&mut self, carrier: bool) -> bool {
        let linked = carrier && self.negotiates_until.is_none();
        let up = !self.is_off() && (linked || self.loops_back());
        self.lost |= self.up && !up;
        self.up = up;
        up
    }

    /// Sets the PHY's registers to their values after power-on.
    pub(crate) fn reset(&mut self) {
        self.values = phy::RESET;
        self.negotiates_until = None;
    }

    /// Starts a negotiation with the other end of the wire.
    pub(crate) fn negotiate(&mut self, now: Time) {
        self.negotiates_until = Some(now + NEGOTIATION);
    }

    /// Ends a negotiation whose time is over. Returns true if it has ended one.
    pub(crate) fn pass(&mut self, now: Time) -> bool {
        let Some(end) = self.negotiates_until else { return false };
        // A damaged state may name a later end than any negotiation has.
        let end = end.min(now + NEGOTIATION);
        self.negotiates_until = (end > now).then_some(end);
        end <= now
    }

    /// Returns the end of the negotiation, or `None` if the PHY does not negotiate.
    pub(crate) fn negotiates_until(&self) -> Option<Time> {
        self.negotiates_until
    }

    /// Continues a negotiation that a saved card has begun.
    pub(crate) fn resume_negotiation(&mut self, end: Option<Time>) {
        self.negotiates_until = end;
    }

    /// Returns true if the PHY is powered down or isolated.
    fn is_off(&self) -> bool {
        self.values[phy::CONTROL] & (control::POWER_DOWN | control::ISOLATE) != 0
    }

    /// Carries out a write of `value` to MDIC: reads or writes a PHY register. Returns the new value of MDIC.
    pub(crate) fn access(&mut self, value: u32, now: Time) -> u32 {
        let done = value & !(mdic::READY | mdic::ERROR) | mdic::READY;
        let register = (value >> mdic::REGISTER_SHIFT & 0x1f) as usize;
        // A driver that probes other addresses gets an error, as on a bus without a PHY there.
        if value >> mdic::PHY_SHIFT & 0x1f != phy::ADDRESS {
            return done | mdic::ERROR;
        }
        match value & mdic::OPERATION {
            mdic::READ => done & !mdic::DATA | u32::from(self.read(register)),
            mdic::WRITE => {
                self.write(register, value as u16, now);
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

    fn write(&mut self, register: usize, value: u16, now: Time) {
        if self.is_elsewhere(register) {
            return;
        }
        let was_detached = self.is_off() || self.loops_back();
        if register == phy::CONTROL && value & control::RESET != 0 {
            self.reset();
        } else {
            let mask = phy::WRITABLE[register];
            self.values[register] = self.values[register] & !mask | value & mask;
        }
        let is_detached = self.is_off() || self.loops_back();
        let restarts = value & (control::RESET | control::RESTART) != 0 || was_detached;
        if register == phy::CONTROL && restarts && !is_detached {
            self.negotiate(now);
        }
    }

    /// Returns true if an access to the PHY register goes to a page other than 0, by the selected page.
    fn is_elsewhere(&self, register: usize) -> bool {
        let paged = (phy::PORT_CONFIG..phy::PAGE).contains(&register);
        paged && self.values[phy::PAGE] >> 5 != 0
    }
}
