//! A VF's registers: its window onto the PF's register file, and the registers with effects of their own.

use crate::{Nic, mailbox};
use i82576::bits::ctrl;
use i82576::register::vf as at;
use i82576::{Time, VfIndex, window};

impl Nic {
    pub(super) fn vf_read(&mut self, vf: VfIndex, offset: u32, now: Time) -> u32 {
        match offset & !3 {
            at::STATUS => self.status(self.vf_link(vf)),
            at::V2PMAILBOX => mailbox::vf_reads(&mut self.state.file, vf),
            offset => match window::resolve(vf, offset) {
                Some(slot) => self.read_slot(slot, now),
                None => 0,
            },
        }
    }

    pub(super) fn vf_write(&mut self, vf: VfIndex, offset: u32, value: u32, now: Time) {
        match offset & !3 {
            at::CTRL => self.vf_control(vf, value),
            at::V2PMAILBOX => mailbox::vf_writes(&mut self.state.file, &mut self.state.interrupts, vf, value),
            offset => {
                if let Some(slot) = window::resolve(vf, offset) {
                    self.write_slot(slot, value, now);
                }
            }
        }
    }

    /// Applies a write of VTCTRL by the PF, or of CTRL by the VF: RST resets the VF.
    pub(super) fn vf_control(&mut self, vf: VfIndex, value: u32) {
        if value & ctrl::RST != 0 && vf.get() < self.state.owners.vfs {
            self.reset_vf(vf);
        }
    }
}
