//! The PF's registers, as far as they are more than their row in the table.

use crate::board::clock;
use crate::file::{Map, Place};
use crate::interrupt::single::Form;
use crate::interrupt::{ALL_VECTORS, Interrupts};
use crate::{Nic, mailbox};
use i82576::bits::{ctrl, ctrl_ext, eecd, icr, mdic, status, tsync};
use i82576::register::{self as r, vf_stats};
use i82576::table::Access;
use i82576::window::{self, Slot};
use i82576::{Time, Vector, VfIndex, ids};

/// A PF register that belongs to one VF.
enum PerVf {
    P2vMailbox,
    Control,
    /// The VF's own interrupt registers, at this offset of its BAR.
    Interrupt(u32),
}

impl Nic {
    pub(super) fn pf_read(&mut self, offset: u32, now: Time) -> u32 {
        match per_vf(offset) {
            Some((vf, _)) if vf.get() >= self.state.owners.vfs => return 0,
            Some((vf, PerVf::P2vMailbox)) => return mailbox::pf_reads(&self.state.file, vf),
            Some((vf, PerVf::Interrupt(at))) => return self.vf_read(vf, at, now),
            Some((_, PerVf::Control)) | None => {}
        }
        let Some(place) = self.derived.map.find(offset) else { return 0 };
        match place.offset {
            r::STATUS => self.status(self.state.link),
            r::SYSTIML => self.state.clock.low(now),
            r::SYSTIMH => self.state.clock.high(),
            r::TXSTMPH | r::RXSTMPH => {
                // Control and stamp lie together in either direction.
                self.state.file.update(place.offset - 8, tsync::VALID, 0);
                self.state.file.get(place.offset)
            }
            r::IMC => self.state.file.get(r::IMS),
            r::ICR => Interrupts::others_read(&mut self.state.file),
            r::ICS => Interrupts::others(&self.state.file),
            r::EICR | r::EICS => {
                let others = Interrupts::others_in_eicr(&self.state.file);
                others | self.read_place(place.access, place.offset, 0, self.own(r::EICR), now)
            }
            r::SWSM => {
                let before = self.state.file.get(r::SWSM);
                self.state.file.set(r::SWSM, before | 1);
                before
            }
            r::GORCH | r::GOTCH | r::TORH | r::TOTH | r::HGORCH | r::HGOTCH => {
                let high = self.state.file.get(place.offset);
                self.state.file.set(place.offset - 4, 0);
                self.state.file.set(place.offset, 0);
                high
            }
            _ => self.read_place(place.access, place.offset, 0, u32::MAX, now),
        }
    }

    pub(super) fn pf_write(&mut self, offset: u32, value: u32, now: Time) {
        match per_vf(offset) {
            Some((vf, _)) if vf.get() >= self.state.owners.vfs => return,
            Some((vf, PerVf::P2vMailbox)) => {
                return mailbox::pf_writes(&mut self.state.file, &mut self.state.interrupts, vf, value);
            }
            Some((vf, PerVf::Control)) => return self.vf_control(vf, value),
            Some((vf, PerVf::Interrupt(at))) => return self.vf_write(vf, at, value, now),
            None => {}
        }
        let Some(place) = self.derived.map.find(offset) else { return };
        match place.offset {
            r::CTRL if value & ctrl::RST != 0 => self.reset_port(false),
            r::STATUS => self.state.file.update(r::STATUS, status::PHYRA & !value, 0),
            r::EERD => self.state.file.set(r::EERD, self.state.nvm.read(value)),
            r::EEWR => {
                let answer = self.state.nvm.write(value);
                self.state.file.set(r::EEWR, answer);
            }
            r::MDIC => self.reach_phy(value),
            r::ICS => self.state.interrupts.raise_other(&mut self.state.file, value & icr::SETTABLE),
            r::IMS => self.state.interrupts.unmask_others(&mut self.state.file, value),
            r::ICR => Interrupts::others_written(&mut self.state.file, value),
            at if self.refuses_vectors(at) => {}
            r::IMC => self.state.file.update(r::IMS, value, 0),
            at => self.write_place(place.access, at, 0, self.own(at), value, now),
        }
        self.follow_write(place.offset, value, now);
    }

    /// What a write sets off beyond its own register.
    fn follow_write(&mut self, offset: u32, value: u32, now: Time) {
        match offset {
            r::CTRL if value & ctrl::PHY_RST != 0 => {
                self.state.phy.reset();
                self.renew_link();
                self.state.file.update(r::STATUS, 0, status::PHYRA);
            }
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

    /// The bits of a register that the PF itself may change: the vectors of VFs are not its own.
    fn own(&self, offset: u32) -> u32 {
        match offset {
            r::EICR | r::EIAC | r::EIAM => self.state.owners.pf_vectors() | !ALL_VECTORS,
            _ => u32::MAX,
        }
    }

    /// Under MSI-X the allocation of vectors takes no writes before GPIE says that there are several.
    fn refuses_vectors(&self, offset: u32) -> bool {
        let allocation = (r::ivar(0)..=r::ivar(7)).contains(&offset) || offset == r::IVAR_MISC;
        allocation && self.form() == Form::OneVector
    }

    /// MDIC was written.
    fn reach_phy(&mut self, value: u32) {
        let answer = self.state.phy.access(value);
        self.state.file.set(r::MDIC, answer);
        self.renew_link();
        if value & mdic::INTERRUPT != 0 {
            self.state.interrupts.raise_other(&mut self.state.file, icr::MDAC);
        }
    }

    /// STATUS as a function sees it whose link is `up`.
    pub(super) fn status(&self, up: bool) -> u32 {
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

    /// What reading bits of the file does, for PF and VF alike.
    pub(super) fn read_place(
        &mut self,
        access: Access,
        offset: u32,
        shift: u32,
        mask: u32,
        now: Time,
    ) -> u32 {
        if (r::SCSTS..=r::SCTC).contains(&offset) {
            self.pass_storm_windows(now);
        }
        let value = self.state.file.read(access, offset, shift, mask);
        match offset {
            r::FRTIMER => return clock::free_running(now),
            r::EIMC => return self.state.file.get(r::EIMS) >> shift & mask,
            r::EICS => return self.state.file.get(r::EICR) >> shift & mask,
            r::EICR => self.state.interrupts.acknowledge(&mut self.state.file, value << shift),
            _ => {}
        }
        match throttle_of(offset) {
            Some(vector) => self.state.throttle.shown(vector, value, self.state.file.get(r::GPIE), now),
            None => value,
        }
    }

    /// What writing bits of the file sets off, for PF and VF alike.
    pub(super) fn write_place(
        &mut self,
        access: Access,
        offset: u32,
        shift: u32,
        mask: u32,
        value: u32,
        now: Time,
    ) {
        let bits = (value & mask) << shift;
        let masked = !self.state.file.get(r::EIMS);
        match offset {
            r::EICS => self.state.interrupts.set(&mut self.state.file, bits),
            r::EIMC => self.state.file.update(r::EIMS, bits, 0),
            r::EICR => self.state.interrupts.acknowledge(&mut self.state.file, bits),
            _ => self.state.file.write(access, offset, shift, mask, value),
        }
        if offset == r::EIMS {
            self.state.interrupts.unmasked(&self.state.file, bits & masked);
        }
        if let Some(vector) = throttle_of(offset) {
            self.state.throttle.written(vector, value, now);
        }
        self.derived.stale.written(offset);
        self.pacing_written(offset);
        self.queue_written(offset);
        self.police_written(offset, value, now);
    }
}

/// The vector whose EITR is at an offset.
pub(super) fn throttle_of(offset: u32) -> Option<Vector> {
    let first = 0x1680;
    let index = offset.checked_sub(first)? / 4;
    Vector::new(u8::try_from(index).ok()?).filter(|_| offset < first + 4 * ids::VECTORS as u32)
}

/// Where what the PF finds at an offset is kept: of a VF's interrupt registers, where the VF keeps it.
pub(super) fn own_place(map: &Map, offset: u32) -> Option<Slot> {
    match per_vf(offset) {
        Some((vf, PerVf::Interrupt(at))) => window::resolve(vf, at),
        _ => {
            map.find(offset).map(|Place { offset, access }| Slot { offset, shift: 0, mask: u32::MAX, access })
        }
    }
}

/// The PF registers that belong to one VF and are more than plain. Those of a VF that does not exist are not there:
/// what they would show is the PF's.
fn per_vf(offset: u32) -> Option<(VfIndex, PerVf)> {
    if let Some(index) = offset.checked_sub(0x0c00).filter(|o| *o < 0x20) {
        return Some((VfIndex::new((index / 4) as u8)?, PerVf::P2vMailbox));
    }
    let index = offset.checked_sub(0x1_0000).filter(|o| *o < 0x800)?;
    let vf = VfIndex::new((index >> 8) as u8)?;
    Some(match index & 0xff {
        vf_stats::VTCTRL => (vf, PerVf::Control),
        at @ vf_stats::VTEICS..=vf_stats::VTEIAM => {
            (vf, PerVf::Interrupt(r::vf::VTEICS + (at & !3) - vf_stats::VTEICS))
        }
        vf_stats::VTEICR => (vf, PerVf::Interrupt(r::vf::VTEICR)),
        _ => return None,
    })
}
