//! Effects of accesses to the interrupt registers. Frames and events raise causes in `interrupt`.

use crate::Nic;
use crate::interrupt::single::InterruptMode;
use crate::interrupt::{ALL_VECTORS, Interrupts};
use i82576::bits::icr;
use i82576::register as r;
use i82576::window::ResolvedVfRegister;
use i82576::{Time, VectorIndex, ids};

impl Nic {
    /// Reads an interrupt register of the PF.
    pub(crate) fn interrupt_read(&mut self, slot: ResolvedVfRegister, now: Time) -> u32 {
        match slot.offset {
            r::IMC => self.state.file.get(r::IMS),
            r::ICR => Interrupts::others_read(&mut self.state.file),
            r::ICS => Interrupts::others(&self.state.file),
            r::EICR | r::EICS => {
                let others = Interrupts::others_in_eicr(&self.state.file);
                others | self.vectors_read(ResolvedVfRegister { mask: self.own(r::EICR), ..slot }, now)
            }
            _ => self.vectors_read(slot, now),
        }
    }

    /// Applies the PF's write to an interrupt register.
    pub(crate) fn interrupt_written(&mut self, slot: ResolvedVfRegister, value: u32, now: Time) {
        match slot.offset {
            r::ICS => self.state.interrupts.raise_other(&mut self.state.file, value & icr::SETTABLE),
            r::IMS => self.state.interrupts.unmask_others(&mut self.state.file, value),
            r::ICR => Interrupts::others_written(&mut self.state.file, value),
            r::IMC => self.state.file.update(r::IMS, value, 0),
            at if self.refuses_vectors(at) => {}
            at => self.vectors_written(ResolvedVfRegister { mask: self.own(at), ..slot }, value, now),
        }
    }

    /// Reads the bits of a vector register that belong to a function's vectors.
    pub(crate) fn vectors_read(&mut self, slot: ResolvedVfRegister, now: Time) -> u32 {
        let ResolvedVfRegister { offset, shift, mask, .. } = slot;
        let value = self.state.file.read(slot);
        match offset {
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

    /// Applies a function's write to its bits of a vector register (EICR and its masks).
    pub(crate) fn vectors_written(&mut self, slot: ResolvedVfRegister, value: u32, now: Time) {
        let bits = (value & slot.mask) << slot.shift;
        match slot.offset {
            r::EICS => self.state.interrupts.set(&mut self.state.file, bits),
            r::EIMC => self.state.file.update(r::EIMS, bits, 0),
            r::EICR => self.state.interrupts.acknowledge(&mut self.state.file, bits),
            r::EIMS => {
                // Only bits that were masked before send a message: a repeated write must not repeat it.
                let masked = !self.state.file.get(r::EIMS);
                self.state.file.write(slot, value);
                self.state.interrupts.unmasked(&self.state.file, bits & masked);
            }
            _ => self.state.file.write(slot, value),
        }
        if let Some(vector) = throttle_of(slot.offset) {
            self.state.throttle.written(vector, value, now);
        }
    }

    /// Returns the bits of a vector register that the PF may change: in EICR, EIAC and EIAM all but those of
    /// the VFs' vectors.
    fn own(&self, offset: u32) -> u32 {
        match offset {
            r::EICR | r::EIAC | r::EIAM => self.state.owners.pf_vectors() | !ALL_VECTORS,
            _ => u32::MAX,
        }
    }

    /// Returns true if a write to IVAR or IVAR_MISC is ignored: under MSI-X these registers accept writes
    /// only after GPIE.MULTIPLE_MSIX was set, which Linux igb does first.
    fn refuses_vectors(&self, offset: u32) -> bool {
        let allocation = (r::ivar(0)..=r::ivar(7)).contains(&offset) || offset == r::IVAR_MISC;
        allocation && self.state.form() == InterruptMode::OneVector
    }
}

/// Returns the vector whose throttle register EITR is at an offset.
pub(crate) fn throttle_of(offset: u32) -> Option<VectorIndex> {
    let first = 0x1680;
    let index = offset.checked_sub(first)? / 4;
    VectorIndex::new(u8::try_from(index).ok()?).filter(|_| offset < first + 4 * ids::VECTORS as u32)
}
