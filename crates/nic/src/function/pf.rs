//! The PF's BAR0: dispatches each access to the part of the card that owns the register.

use crate::file::RegisterMap;
use crate::{Nic, mailbox};
use i82576::register::{self as r, vf_stats};
use i82576::table::{CardPart, RegisterAccessEffect};
use i82576::window::{self, ResolvedVfRegister};
use i82576::{Time, VfIndex};

/// A PF register that belongs to one VF.
enum PerVfRegister {
    P2vMailbox,
    Control,
    /// Interrupt register of the VF, by its offset in the VF's BAR0.
    Interrupt(u32),
}

impl Nic {
    pub(super) fn pf_read(&mut self, offset: u32, now: Time) -> u32 {
        let Some(place) = self.derived.map.find(offset) else { return 0 };
        match place.effect {
            RegisterAccessEffect::Acts(CardPart::Vf) => self.read_of_vf(offset, now),
            RegisterAccessEffect::Acts(CardPart::Interrupt) => self.interrupt_read(place.slot(), now),
            RegisterAccessEffect::Acts(
                CardPart::Board
                | CardPart::Queue
                | CardPart::Pacing
                | CardPart::Police
                | CardPart::Statistics,
            )
            | RegisterAccessEffect::Stores
            | RegisterAccessEffect::Never => self.read_slot(place.slot(), now),
        }
    }

    pub(super) fn pf_write(&mut self, offset: u32, value: u32, now: Time) {
        let Some(place) = self.derived.map.find(offset) else { return };
        let before = self.state.file.get(place.offset);
        match place.effect {
            RegisterAccessEffect::Acts(CardPart::Vf) => self.write_of_vf(offset, value, now),
            RegisterAccessEffect::Acts(CardPart::Interrupt) => {
                self.interrupt_written(place.slot(), value, now);
            }
            RegisterAccessEffect::Acts(CardPart::Board) => self.board_written(place.slot(), value, now),
            RegisterAccessEffect::Acts(
                CardPart::Queue | CardPart::Pacing | CardPart::Police | CardPart::Statistics,
            )
            | RegisterAccessEffect::Stores
            | RegisterAccessEffect::Never => self.write_slot(place.slot(), value, now),
        }
        // A PF driver sets a VF up after each of its resets, mostly with the values that are there. A guest that resets
        // its VF again and again must not have all tables decoded for each poll.
        if self.state.file.get(place.offset) != before {
            self.derived.stale.add(place.forms);
        }
    }

    fn read_of_vf(&mut self, offset: u32, now: Time) -> u32 {
        match self.of_vf(offset) {
            Some((vf, PerVfRegister::P2vMailbox)) => mailbox::pf_reads(&self.state.file, vf),
            Some((vf, PerVfRegister::Interrupt(at))) => self.vf_read(vf, at, now),
            Some((_, PerVfRegister::Control)) | None => 0,
        }
    }

    fn write_of_vf(&mut self, offset: u32, value: u32, now: Time) {
        match self.of_vf(offset) {
            Some((vf, PerVfRegister::P2vMailbox)) => {
                mailbox::pf_writes(&mut self.state.file, &mut self.state.interrupts, vf, value);
            }
            Some((vf, PerVfRegister::Control)) => self.vf_control(vf, value),
            Some((vf, PerVfRegister::Interrupt(at))) => self.vf_write(vf, at, value, now),
            None => {}
        }
    }

    /// Returns the VF and its register at a PF offset, if the VF exists ([`per_vf`]). The vectors of a missing VF are
    /// the PF's.
    fn of_vf(&self, offset: u32) -> Option<(VfIndex, PerVfRegister)> {
        per_vf(offset).filter(|(vf, _)| vf.get() < self.state.owners.vfs)
    }
}

/// Returns the register bits that an access at a PF offset reaches. A VF's interrupt register resolves to the bits that
/// the VF uses.
pub(super) fn own_place(map: &RegisterMap, offset: u32) -> Option<ResolvedVfRegister> {
    match per_vf(offset) {
        Some((vf, PerVfRegister::Interrupt(at))) => window::resolve(vf, at),
        _ => map.find(offset).map(|place| place.slot()),
    }
}

/// Returns the VF and its register at a PF offset, for registers with side effects: P2VMAILBOX (0x0c00 + 4n) and the
/// window of VF n (0x10000 + 0x100n).
fn per_vf(offset: u32) -> Option<(VfIndex, PerVfRegister)> {
    if let Some(index) = offset.checked_sub(0x0c00).filter(|o| *o < 0x20) {
        return Some((VfIndex::new((index / 4) as u8)?, PerVfRegister::P2vMailbox));
    }
    let index = offset.checked_sub(0x1_0000).filter(|o| *o < 0x800)?;
    let vf = VfIndex::new((index >> 8) as u8)?;
    Some(match index & 0xff {
        vf_stats::VTCTRL => (vf, PerVfRegister::Control),
        at @ vf_stats::VTEICS..=vf_stats::VTEIAM => {
            (vf, PerVfRegister::Interrupt(r::vf::VTEICS + (at & !3) - vf_stats::VTEICS))
        }
        vf_stats::VTEICR => (vf, PerVfRegister::Interrupt(r::vf::VTEICR)),
        _ => return None,
    })
}
