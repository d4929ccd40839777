//! Emulates register accesses in the interrupt model: the interrupt registers by their offsets.

use super::rules::{InterruptModel, ModelVector, VECTORS};
use i82576::bits::{eicr, eitr, gpie, icr};
use i82576::register::{self as r, vf, vf_stats};
use pcie::Function::{self, Pf, Vf};

/// Bits of EIMS and EIAM that belong to no interrupt vector.
const HIGH: u32 = eicr::OTHER | eicr::TIMER;

/// Returns the element index of an offset in an array of registers, or `None` outside the array.
fn element(offset: u32, first: u32, stride: u32, count: u32) -> Option<usize> {
    let at = offset.checked_sub(first)?;
    (at % stride == 0 && at / stride < count).then_some((at / stride) as usize)
}

/// Returns the offset of a PF register, given that offset or an alias of it: ICR and its masks have aliases.
fn canonical(offset: u32) -> u32 {
    element(offset, 0xc0, 8, 5).map_or(offset, |i| r::ICR + 4 * i as u32)
}

/// Returns the VF, and the offset in that VF's BAR0, of a register at an offset of the PF's window onto VFs.
fn window(offset: u32) -> Option<(u8, u32)> {
    let at = offset.checked_sub(0x1_0000).filter(|at| *at < 0x800)?;
    let own = match at & 0xff {
        vf_stats::VTEICS => vf::VTEICS,
        vf_stats::VTEIMS => vf::VTEIMS,
        vf_stats::VTEIMC => vf::VTEIMC,
        vf_stats::VTEIAC => vf::VTEIAC,
        vf_stats::VTEIAM => vf::VTEIAM,
        vf_stats::VTEICR => vf::VTEICR,
        _ => return None,
    };
    Some(((at >> 8) as u8, own))
}

/// Returns a register value with the bit of each vector for which `of` is true.
fn gather(vectors: &[ModelVector], of: impl Fn(&ModelVector) -> bool) -> u32 {
    vectors.iter().enumerate().map(|(i, vector)| u32::from(of(vector)) << i).sum()
}

impl InterruptModel {
    pub(super) fn read(&mut self, function: Function, offset: u32, now: u64) -> u32 {
        match function {
            Vf(n) => self.vf_read(n, offset, now),
            Pf => self.pf_read(canonical(offset), now),
        }
    }

    pub(super) fn write(&mut self, function: Function, offset: u32, value: u32, now: u64) {
        match function {
            Vf(n) => self.vf_write(n, offset, value, now),
            Pf => self.pf_write(canonical(offset), value, now),
        }
    }

    fn pf_read(&mut self, offset: u32, now: u64) -> u32 {
        if let Some((vf, at)) = window(offset) {
            return if vf < self.vfs { self.vf_read(vf, at, now) } else { 0 };
        }
        if let Some(i) = element(offset, 0x1680, 4, VECTORS as u32) {
            return self.throttle_read(i, now);
        }
        match offset {
            r::ICR => self.others_read(),
            r::ICS => self.others(),
            r::IMS | r::IMC => self.ims,
            r::IAM => self.iam,
            r::GPIE => self.gpie,
            r::IVAR_MISC => self.ivar_misc,
            r::IAC => core::mem::take(&mut self.iac),
            r::EICR => self.eicr_read(),
            r::EICS => self.others_in_eicr() | self.own_causes(),
            r::EIMS | r::EIMC => self.high_mask | gather(&self.vectors, |vector| vector.unmasked),
            r::EIAC => gather(&self.vectors, |vector| vector.auto_clear),
            r::EIAM => self.high_auto_mask | gather(&self.vectors, |vector| vector.auto_mask),
            _ => self.entries(offset).map_or(0, |entries| *entries),
        }
    }

    /// Returns the model's IVAR, IVAR_MISC, VTIVAR or VTIVAR_MISC at an offset of the PF.
    fn entries(&mut self, offset: u32) -> Option<&mut u32> {
        let arrays = [
            (&mut self.ivar, 0x1700, 4),
            (&mut self.vtivar, 0x1_1700, 0x100),
            (&mut self.vtivar_misc, 0x1_1720, 0x100),
        ];
        let found = |(array, first, stride)| Some((array, element(offset, first, stride, 8)?));
        arrays.into_iter().find_map(found).map(|(array, i): (&mut [u32; 8], usize)| &mut array[i])
    }

    /// Returns the PF's own cause bits in EICR.
    fn own_causes(&self) -> u32 {
        (0..VECTORS).filter(|i| self.is_pfs(*i)).map(|i| u32::from(self.vectors[i].cause) << i).sum()
    }

    fn eicr_read(&mut self) -> u32 {
        let value = self.own_causes();
        for i in (0..VECTORS).filter(|i| value & 1 << i != 0) {
            self.acknowledge(i);
        }
        value | self.others_in_eicr()
    }

    /// Reads ICR. With INTA or NSICR the read clears ICR and masks by IAM; with IMS zero it clears ICR too.
    fn others_read(&mut self) -> u32 {
        let (value, counts) = (self.others(), self.others_count());
        if counts || self.ims == 0 {
            self.icr = 0;
        }
        if counts {
            self.ims &= !self.iam;
        }
        value
    }

    fn others_count(&self) -> bool {
        self.others() & icr::INTA != 0 || self.gpie & gpie::NSICR != 0
    }

    fn pf_write(&mut self, offset: u32, value: u32, now: u64) {
        if let Some((vf, at)) = window(offset) {
            if vf < self.vfs {
                self.vf_write(vf, at, value, now);
            }
            return;
        }
        if let Some(i) = element(offset, 0x1680, 4, VECTORS as u32) {
            return self.throttle_write(i, value, now);
        }
        match offset {
            r::ICR => {
                let counts = self.others_count();
                self.icr &= !value;
                self.ims &= if counts { !self.iam } else { u32::MAX };
            }
            r::ICS => self.other_events(value & icr::SETTABLE),
            r::IMS => self.change_others(|model| model.ims |= value & icr::SETTABLE),
            r::IMC => self.ims &= !value,
            r::IAM => self.iam = value,
            r::GPIE => self.gpie = value & gpie::KEPT,
            r::EICR | r::EICS | r::EIMS | r::EIMC | r::EIAC | r::EIAM => self.extended_write(offset, value),
            _ => self.entries_write(offset, value),
        }
    }

    /// Writes IVAR entries. Under MSI-X with a single vector the PF's entries ignore writes.
    fn entries_write(&mut self, offset: u32, value: u32) {
        let (frozen, vfs_own) = (self.msix && self.gpie & gpie::MULTIPLE_MSIX == 0, offset > 0x1_0000);
        match self.entries(offset) {
            Some(entries) if vfs_own => {
                *entries = value & if offset & 0x20 == 0 { 0x8383_8383 } else { 0x83 }
            }
            Some(entries) if !frozen => *entries = value & 0x9f9f_9f9f,
            None if offset == r::IVAR_MISC && !frozen => self.ivar_misc = value & 0x9f9f,
            _ => {}
        }
    }

    /// Writes a vector register of the PF: EICS, EIMS and EIMC reach every vector, all other registers only
    /// the PF's own vectors.
    fn extended_write(&mut self, offset: u32, value: u32) {
        let own = matches!(offset, r::EICR | r::EIAC | r::EIAM);
        for i in (0..VECTORS).filter(|i| !own || self.is_pfs(*i)).collect::<Vec<_>>() {
            self.vector_write(offset, i, value & 1 << i != 0);
        }
        match offset {
            r::EIMS => self.high_mask |= value & HIGH,
            r::EIMC => self.high_mask &= !value,
            r::EIAM => self.high_auto_mask = value & HIGH,
            r::EICS if value & eicr::TIMER != 0 && self.gpie & gpie::MULTIPLE_MSIX == 0 => {
                self.other_events(icr::TIMER);
            }
            _ => {}
        }
    }

    /// Applies one vector's bit of a write to a vector register, which is named by its offset in the PF's
    /// BAR0.
    fn vector_write(&mut self, register: u32, vector: usize, bit: bool) {
        match register {
            r::EIAC => self.vectors[vector].auto_clear = bit,
            r::EIAM => self.vectors[vector].auto_mask = bit,
            r::EICR if bit => self.acknowledge(vector),
            r::EICS if bit => self.event(vector),
            r::EIMS if bit => self.unmask(vector),
            r::EIMC if bit => self.vectors[vector].unmasked = false,
            _ => {}
        }
    }

    fn throttle_read(&self, vector: usize, now: u64) -> u32 {
        let vector = &self.vectors[vector];
        let steps = vector.silent_until.saturating_sub(now) / 4;
        vector.throttle | (steps.min(0x3ff) as u32) << 21
    }

    /// Writes EITR: interval and LLI_EN always, counter and credits unless CNT_IGNR is set.
    fn throttle_write(&mut self, vector: usize, value: u32, now: u64) {
        let (vector, credits) = (&mut self.vectors[vector], eitr::MOST_CREDITS << eitr::CREDITS_SHIFT);
        if value & eitr::CNT_IGNR == 0 {
            vector.silent_until = now + 4 * u64::from(value >> 21 & 0x3ff);
            vector.throttle = value & credits;
        }
        vector.throttle = vector.throttle & credits | value & (eitr::INTERVAL_MASK | eitr::LLI_EN);
    }

    fn vf_read(&mut self, vf: u8, offset: u32, now: u64) -> u32 {
        let first = 22 - 3 * usize::from(vf);
        if let Some(i) = element(offset, vf::VTEITR, 4, 3) {
            return self.throttle_read(first + i, now);
        }
        let own = &self.vectors[first..first + 3];
        match offset {
            vf::VTEICS => gather(own, |vector| vector.cause),
            vf::VTEIMS | vf::VTEIMC => gather(own, |vector| vector.unmasked),
            vf::VTEIAC => gather(own, |vector| vector.auto_clear),
            vf::VTEIAM => gather(own, |vector| vector.auto_mask),
            vf::VTEICR => {
                let value = gather(own, |vector| vector.cause);
                for i in (0..3).filter(|i| value & 1 << i != 0) {
                    self.acknowledge(first + i);
                }
                value
            }
            vf::VTIVAR => self.vtivar[usize::from(vf)],
            vf::VTIVAR_MISC => self.vtivar_misc[usize::from(vf)],
            _ => 0,
        }
    }

    fn vf_write(&mut self, vf: u8, offset: u32, value: u32, now: u64) {
        let first = 22 - 3 * usize::from(vf);
        if let Some(i) = element(offset, vf::VTEITR, 4, 3) {
            return self.throttle_write(first + i, value, now);
        }
        match offset {
            vf::VTIVAR => self.vtivar[usize::from(vf)] = value & 0x8383_8383,
            vf::VTIVAR_MISC => self.vtivar_misc[usize::from(vf)] = value & 0x83,
            // The other registers have the same offsets in both views.
            _ => (0..3).for_each(|i| self.vector_write(offset, first + i, value & 1 << i != 0)),
        }
    }
}
