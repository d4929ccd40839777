//! Effects of accesses to the registers of NVM, PHY, clock and timer. The parts of the board behind them are in
//! `board`.

use crate::board::clock;
use crate::{Nic, mailbox};
use i82576::Time;
use i82576::bits::{ctrl, ctrl_ext, eecd, icr, mdic, status, tsync};
use i82576::register as r;
use i82576::window::ResolvedVfRegister;

impl Nic {
    /// Reads a register of the PF that belongs to the board (NVM, PHY, clock, timer).
    pub(crate) fn board_read(&mut self, slot: ResolvedVfRegister, now: Time) -> u32 {
        match slot.offset {
            r::STATUS => self.status(self.state.link),
            r::FRTIMER => clock::free_running(now),
            r::SYSTIML => self.state.clock.low(now),
            r::SYSTIMH => self.state.clock.high(),
            r::TXSTMPH | r::RXSTMPH => {
                // A read of the high half frees the stamp. VALID is in the control register 8 bytes before it, in both directions.
                self.state.file.update(slot.offset - 8, tsync::VALID, 0);
                self.state.file.get(slot.offset)
            }
            r::SWSM => {
                // A read takes the semaphore: it returns SMBI as it was, and sets it.
                let before = self.state.file.get(r::SWSM);
                self.state.file.set(r::SWSM, before | 1);
                before
            }
            _ => self.state.file.read(slot),
        }
    }

    /// Applies the PF's write to a register of the board (NVM, PHY, clock, timer).
    pub(crate) fn board_written(&mut self, slot: ResolvedVfRegister, value: u32, now: Time) {
        match slot.offset {
            r::CTRL => return self.control_written(slot, value, now),
            r::STATUS => return self.state.file.update(r::STATUS, status::PHYRA & !value, 0),
            r::EERD => return self.state.file.set(r::EERD, self.state.nvm.read(value)),
            r::EEWR => {
                let answer = self.state.nvm.write(value);
                return self.state.file.set(r::EEWR, answer);
            }
            r::MDIC => return self.reach_phy(value, now),
            _ => self.state.file.write(slot, value),
        }
        match slot.offset {
            r::CTRL_EXT if value & ctrl_ext::PFRSTD != 0 => mailbox::pf_reset_done(&mut self.state.file),
            r::EECD if value & eecd::REQ != 0 => self.state.file.update(r::EECD, 0, eecd::GNT),
            r::EECD => self.state.file.update(r::EECD, eecd::GNT, 0),
            r::TCPTIMER if self.state.timer.written(value, now) => {
                self.state.interrupts.raise_timer(&mut self.state.file);
            }
            r::SYSTIML => self.state.clock.set_low(value, now),
            r::SYSTIMH => self.state.clock.set_high(value, now),
            r::TIMINCA => self.state.clock.set_increment(value, now),
            r::TIMADJH => self.state.clock.adjust(self.state.file.get(r::TIMADJL), value, now),
            _ => {}
        }
    }

    fn control_written(&mut self, slot: ResolvedVfRegister, value: u32, now: Time) {
        if value & ctrl::RST != 0 {
            self.reset_port(false);
        } else {
            self.state.file.write(slot, value);
        }
        if value & ctrl::PHY_RST != 0 {
            self.state.phy.reset();
            self.state.phy.negotiate(now);
            self.renew_link();
            self.state.file.update(r::STATUS, 0, status::PHYRA);
        }
    }

    /// Carries out a PHY access by the register MDIC.
    fn reach_phy(&mut self, value: u32, now: Time) {
        let answer = self.state.phy.access(value, now);
        self.state.file.set(r::MDIC, answer);
        self.renew_link();
        if value & mdic::INTERRUPT != 0 {
            self.state.interrupts.raise_other(&mut self.state.file, icr::MDAC);
        }
    }

    /// Returns the register STATUS for a function that sees the link as `up`.
    pub(crate) fn status(&self, up: bool) -> u32 {
        let control = self.state.file.get(r::CTRL);
        let speed =
            if control & ctrl::FRCSPD == 0 { status::SPEED_1000 } else { (control & ctrl::SPEED) >> 2 };
        let duplex = if control & ctrl::FRCDPX == 0 { status::FD } else { control & ctrl::FD };
        let mut value = duplex | speed | status::LAN_INIT_DONE | self.state.file.get(r::STATUS);
        if up {
            value |= status::LU;
        }
        if self.state.owners.vfs > 0 {
            value |= status::IOV | u32::from(self.state.owners.vfs & 0xf) << status::NUM_VFS_SHIFT;
        }
        if self.state.file.get(r::CTRL) & ctrl::GIO_MASTER_DISABLE == 0 {
            value |= status::GIO_MASTER;
        }
        value
    }
}
