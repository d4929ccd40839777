//! The PF's registers, as far as they are more than their row in the table.

use crate::board::clock;
use crate::file::{Place, RegisterFile};
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
            Some((vf, _)) if vf.get() >= self.owners.vfs => return 0,
            Some((vf, PerVf::P2vMailbox)) => return mailbox::pf_reads(&self.file, vf),
            Some((vf, PerVf::Interrupt(at))) => return self.vf_read(vf, at, now),
            Some((_, PerVf::Control)) | None => {}
        }
        let Some(place) = self.file.find(offset) else { return 0 };
        match place.offset {
            r::STATUS => self.status(self.link),
            r::SYSTIML => self.clock.low(now),
            r::SYSTIMH => self.clock.high(),
            r::TXSTMPH | r::RXSTMPH => {
                // Control and stamp lie together in either direction.
                self.file.update(place.offset - 8, tsync::VALID, 0);
                self.file.get(place.offset)
            }
            r::IMC => self.file.get(r::IMS),
            r::ICR => Interrupts::others_read(&mut self.file),
            r::ICS => Interrupts::others(&self.file),
            r::EICR | r::EICS => {
                let others = Interrupts::others_in_eicr(&self.file);
                others | self.read_place(place.access, place.offset, 0, self.own(r::EICR), now)
            }
            r::SWSM => {
                let before = self.file.get(r::SWSM);
                self.file.set(r::SWSM, before | 1);
                before
            }
            r::GORCH | r::GOTCH | r::TORH | r::TOTH | r::HGORCH | r::HGOTCH => {
                let high = self.file.get(place.offset);
                self.file.set(place.offset - 4, 0);
                self.file.set(place.offset, 0);
                high
            }
            _ => self.read_place(place.access, place.offset, 0, u32::MAX, now),
        }
    }

    pub(super) fn pf_write(&mut self, offset: u32, value: u32, now: Time) {
        match per_vf(offset) {
            Some((vf, _)) if vf.get() >= self.owners.vfs => return,
            Some((vf, PerVf::P2vMailbox)) => {
                return mailbox::pf_writes(&mut self.file, &mut self.interrupts, vf, value);
            }
            Some((vf, PerVf::Control)) => return self.vf_control(vf, value),
            Some((vf, PerVf::Interrupt(at))) => return self.vf_write(vf, at, value, now),
            None => {}
        }
        let Some(place) = self.file.find(offset) else { return };
        match place.offset {
            r::CTRL if value & ctrl::RST != 0 => self.reset_port(false),
            r::STATUS => self.file.update(r::STATUS, status::PHYRA & !value, 0),
            r::EERD => self.file.set(r::EERD, self.nvm.read(value)),
            r::EEWR => {
                let answer = self.nvm.write(value);
                self.file.set(r::EEWR, answer);
            }
            r::MDIC => self.reach_phy(value),
            r::ICS => self.interrupts.raise_other(&mut self.file, value & icr::SETTABLE),
            r::IMS => self.interrupts.unmask_others(&mut self.file, value),
            r::ICR => Interrupts::others_written(&mut self.file, value),
            at if self.refuses_vectors(at) => {}
            r::IMC => self.file.update(r::IMS, value, 0),
            at => self.write_place(place.access, at, 0, self.own(at), value, now),
        }
        self.follow_write(place.offset, value, now);
    }

    /// What a write sets off beyond its own register.
    fn follow_write(&mut self, offset: u32, value: u32, now: Time) {
        match offset {
            r::CTRL if value & ctrl::PHY_RST != 0 => {
                self.phy.reset();
                self.renew_link();
                self.file.update(r::STATUS, 0, status::PHYRA);
            }
            r::CTRL_EXT if value & ctrl_ext::PFRSTD != 0 => mailbox::pf_reset_done(&mut self.file),
            r::EECD if value & eecd::REQ != 0 => self.file.update(r::EECD, 0, eecd::GNT),
            r::EECD => self.file.update(r::EECD, eecd::GNT, 0),
            r::TCPTIMER if self.timer.written(value, now) => self.interrupts.raise_timer(&mut self.file),
            r::SYSTIML => self.clock.set_low(value, now),
            r::SYSTIMH => self.clock.set_high(value, now),
            r::TIMINCA => self.clock.set_increment(value, now),
            r::TIMADJH => self.clock.adjust(self.file.get(r::TIMADJL), value, now),
            _ => {}
        }
    }

    /// The bits of a register that the PF itself may change: the vectors of VFs are not its own.
    fn own(&self, offset: u32) -> u32 {
        match offset {
            r::EICR | r::EIAC | r::EIAM => self.owners.pf_vectors() | !ALL_VECTORS,
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
        let answer = self.phy.access(value);
        self.file.set(r::MDIC, answer);
        self.renew_link();
        if value & mdic::INTERRUPT != 0 {
            self.interrupts.raise_other(&mut self.file, icr::MDAC);
        }
    }

    /// STATUS as a function sees it whose link is `up`.
    pub(super) fn status(&self, up: bool) -> u32 {
        let control = self.file.get(r::CTRL);
        let speed =
            if control & ctrl::FRCSPD == 0 { status::SPEED_1000 } else { (control & ctrl::SPEED) >> 2 };
        let duplex = if control & ctrl::FRCDPX == 0 { status::FD } else { control & ctrl::FD };
        let mut value = duplex | speed | status::LAN_INIT_DONE | self.file.get(r::STATUS);
        if up {
            value |= status::LU;
        }
        if self.owners.vfs > 0 {
            value |= status::IOV | u32::from(self.owners.vfs & 0xf) << status::NUM_VFS_SHIFT;
        }
        if self.file.get(r::CTRL) & ctrl::GIO_MASTER_DISABLE == 0 {
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
        let value = self.file.read(access, offset, shift, mask);
        match offset {
            r::FRTIMER => return clock::free_running(now),
            r::EIMC => return self.file.get(r::EIMS) >> shift & mask,
            r::EICS => return self.file.get(r::EICR) >> shift & mask,
            r::EICR => self.interrupts.acknowledge(&mut self.file, value << shift),
            _ => {}
        }
        match throttle_of(offset) {
            Some(vector) => self.throttle.shown(vector, value, self.file.get(r::GPIE), now),
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
        let masked = !self.file.get(r::EIMS);
        match offset {
            r::EICS => self.interrupts.set(&mut self.file, bits),
            r::EIMC => self.file.update(r::EIMS, bits, 0),
            r::EICR => self.interrupts.acknowledge(&mut self.file, bits),
            _ => self.file.write(access, offset, shift, mask, value),
        }
        if offset == r::EIMS {
            self.interrupts.unmasked(&self.file, bits & masked);
        }
        if let Some(vector) = throttle_of(offset) {
            self.throttle.written(vector, value, now);
        }
        self.stale.written(offset);
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
pub(super) fn own_place(file: &RegisterFile, offset: u32) -> Option<Slot> {
    match per_vf(offset) {
        Some((vf, PerVf::Interrupt(at))) => window::resolve(vf, at),
        _ => file.find(offset).map(|Place { offset, access }| Slot {
            offset,
            shift: 0,
            mask: u32::MAX,
            access,
        }),
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
