//! Interrupt causes and vectors. Events set bits of EICR, and the card sends an MSI-X message for a bit in the name of
//! the function that owns the vector.
//!
//! A PF that does not use several MSI-X vectors has a single interrupt ([`single`]). `moderation` throttles vectors. The
//! receiver of a message has the MSI-X table and its mask bits.

mod owners;
pub(crate) mod single;

pub(crate) use owners::{ALL_VECTORS, VectorAndQueueOwners, master_bit};

use crate::file::RegisterFile;
use crate::moderation::InterruptThrottle;
use i82576::bits::{eicr, gpie, icr, ivar};
use i82576::register as r;
use i82576::{QueueIndex, Time, VectorIndex, VfIndex};
use pcie::{Bus, Function};
use serde::{Deserialize, Serialize};
use single::{InterruptMode, unmasked_others};

/// Direction of a queue, which selects its byte in IVAR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueDirection {
    /// Interrupt cause: a receive queue.
    Rx,
    /// Interrupt cause: a transmit queue.
    Tx,
}

/// State of the card's interrupts: vectors with a pending message, and the PF's single interrupt.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Interrupts {
    /// Interrupt vectors whose EICR bits were set, or unmasked, since the vector's last message, a bit each.
    unsent: u32,
    /// Kind of interrupt that the PF used at the last call of [`Interrupts::send`].
    form: InterruptMode,
    single: single::SingleInterrupt,
}

impl Interrupts {
    /// Returns true if the interrupt state is valid: messages are pending only for vectors that exist.
    pub(crate) fn is_sound(&self) -> bool {
        self.unsent & !ALL_VECTORS == 0
    }

    /// Raises interrupt vectors: sets their cause bits in EICR, and marks their messages as pending.
    pub(crate) fn raise(&mut self, file: &mut RegisterFile, bits: u32) {
        let bits = bits & ALL_VECTORS;
        file.update(r::EICR, 0, bits);
        self.unsent |= bits;
    }

    /// Applies a write of EICS: sets causes of vectors, and that of the TCP timer while the PF has a single interrupt.
    pub(crate) fn set(&mut self, file: &mut RegisterFile, bits: u32) {
        self.raise(file, bits);
        if bits & eicr::TIMER != 0 && file.get(r::GPIE) & gpie::MULTIPLE_MSIX == 0 {
            self.raise_other(file, icr::TIMER);
        }
    }

    /// Raises the end of the TCP timer: at the vector in IVAR_MISC, or in ICR while the PF has a single interrupt.
    pub(crate) fn raise_timer(&mut self, file: &mut RegisterFile) {
        if file.get(r::GPIE) & gpie::MULTIPLE_MSIX == 0 {
            self.raise_other(file, icr::TIMER);
        } else if let Some(vector) = pf_entry(file.get(r::IVAR_MISC).to_le_bytes()[0]) {
            self.raise(file, vector.bit());
        }
    }

    /// Raises the interrupt of a queue whose descriptors were written back. For a queue of the PF it also sets `causes` in
    /// ICR, which drivers with a single interrupt read.
    pub(crate) fn raise_queue(
        &mut self,
        file: &mut RegisterFile,
        queue: QueueIndex,
        direction: QueueDirection,
        causes: u32,
        vfs: u8,
    ) {
        if let Some(vector) = queue_vector(file, queue, direction, vfs) {
            self.raise(file, vector.bit());
        }
        if queue.pool().get() >= vfs {
            self.raise_other(file, causes);
        }
    }

    /// Raises the mailbox interrupt of a VF, at the vector in VTIVAR_MISC.
    pub(crate) fn raise_mailbox(&mut self, file: &mut RegisterFile, vf: VfIndex) {
        let entry = file.get(r::vtivar_misc(vf)).to_le_bytes()[0];
        if let Some(vector) = vf_entry(vf, entry) {
            self.raise(file, vector.bit());
        }
    }

    /// Raises causes of the PF in ICR. Causes that are new and unmasked interrupt.
    pub(crate) fn raise_other(&mut self, file: &mut RegisterFile, causes: u32) {
        let before = unmasked_others(file);
        file.update(r::ICR, 0, causes);
        self.notify_others(file, before);
    }

    /// Applies a write of IMS: pending causes that become unmasked interrupt.
    pub(crate) fn unmask_others(&mut self, file: &mut RegisterFile, bits: u32) {
        let before = unmasked_others(file);
        file.update(r::IMS, 0, bits & icr::SETTABLE);
        self.notify_others(file, before);
    }

    /// Raises the unmasked causes of ICR that were not yet set in `before`: at the vectors in IVAR_MISC, and at the
    /// single interrupt.
    fn notify_others(&mut self, file: &mut RegisterFile, before: u32) {
        let new = unmasked_others(file) & !before;
        if new == 0 {
            return;
        }
        self.single.owe();
        if file.get(r::GPIE) & gpie::MULTIPLE_MSIX == 0 {
            return;
        }
        let entries = file.get(r::IVAR_MISC).to_le_bytes();
        for (causes, entry) in [(icr::TIMER, entries[0]), (!icr::TIMER, entries[1])] {
            if let (true, Some(vector)) = (new & causes != 0, pf_entry(entry)) {
                self.raise(file, vector.bit());
            }
        }
    }

    /// Returns the PF's causes in ICR without the effects of a read. INTA is set if an unmasked cause is.
    #[must_use]
    pub(crate) fn others(file: &RegisterFile) -> u32 {
        file.get(r::ICR) | if unmasked_others(file) != 0 { icr::INTA } else { 0 }
    }

    /// Reads the PF's causes in ICR. The read clears them if INTA is set, if GPIE.NSICR is set, or if IMS is zero, as
    /// for drivers that poll ICR.
    pub(crate) fn others_read(file: &mut RegisterFile) -> u32 {
        let value = Self::others(file);
        let counts = value & icr::INTA != 0 || file.get(r::GPIE) & gpie::NSICR != 0;
        if counts || file.get(r::IMS) == 0 {
            file.set(r::ICR, 0);
        }
        others_automask(file, counts);
        value
    }

    /// Applies a write of the PF's causes in ICR: ones clear causes.
    pub(crate) fn others_written(file: &mut RegisterFile, bits: u32) {
        let counts = Self::others(file) & icr::INTA != 0 || file.get(r::GPIE) & gpie::NSICR != 0;
        file.update(r::ICR, bits, 0);
        others_automask(file, counts);
    }

    /// Returns the bits OTHER and TIMER of EICR, which represent the causes in ICR while the PF has a single interrupt.
    #[must_use]
    pub(crate) fn others_in_eicr(file: &RegisterFile) -> u32 {
        match unmasked_others(file) {
            _ if file.get(r::GPIE) & gpie::MULTIPLE_MSIX != 0 => 0,
            0 => 0,
            causes => eicr::OTHER | causes & eicr::TIMER,
        }
    }

    /// Marks the messages of vectors that were just unmasked (`bits` of EIMS) as pending if the vectors' causes are
    /// set.
    pub(crate) fn unmasked(&mut self, file: &RegisterFile, bits: u32) {
        self.unsent |= file.get(r::EICR) & bits & ALL_VECTORS;
    }

    /// Applies a read of EICR, or a write of ones: clears the causes, and masks the vectors that EIAM names.
    pub(crate) fn acknowledge(&mut self, file: &mut RegisterFile, bits: u32) {
        let automask = bits & file.get(r::EICR) & file.get(r::EIAM);
        file.update(r::EICR, bits, 0);
        file.update(r::EIMS, automask, 0);
        self.unsent &= !bits;
    }

    /// Clears causes and masks of vectors whose function was reset.
    pub(crate) fn reset(&mut self, file: &mut RegisterFile, bits: u32) {
        for register in [r::EICR, r::EIMS, r::EIAC, r::EIAM] {
            file.update(register, bits, 0);
        }
        self.unsent &= !bits;
    }

    /// Sends every interrupt message that is due, and returns the time of the next throttled message. `form` is the
    /// PF's kind of interrupt.
    pub(crate) fn send<B: Bus>(
        &mut self,
        file: &mut RegisterFile,
        throttle: &mut InterruptThrottle,
        owners: &VectorAndQueueOwners,
        form: InterruptMode,
        now: Time,
        bus: &mut B,
    ) -> Option<Time> {
        // Causes that were set before the PF enabled MSI-X, by firmware or another driver, send their message now.
        if form == InterruptMode::Vectors && self.form != form {
            self.unsent |= file.get(r::EICR) & owners.pf_vectors();
        }
        self.form = form;
        let mut due = self.unsent & file.get(r::EICR) & file.get(r::EIMS);
        if form != InterruptMode::Vectors {
            due = self.hand_over(due, owners);
        }
        let mut deadline = self.single.send(file, throttle, owners, form, now, bus);
        while let Some(vector) = VectorIndex::new(due.trailing_zeros() as u8) {
            due &= !vector.bit();
            let (function, local) = owners.of(vector);
            if !owners.may_master(function) {
                continue;
            }
            let silent_until = throttle.silent_until(vector);
            if silent_until > now {
                deadline = Some(deadline.map_or(silent_until, |d| d.min(silent_until)));
                continue;
            }
            throttle.fired(vector, file.get(r::eitr(vector)), now);
            self.sent(file, vector, function);
            bus.msix(function, local);
        }
        deadline
    }

    /// Raises the PF's single interrupt if `due` has vectors of the PF. Returns the vectors in `due` that belong to
    /// VFs.
    fn hand_over(&mut self, due: u32, owners: &VectorAndQueueOwners) -> u32 {
        let pf = due & owners.pf_vectors();
        if pf != 0 {
            self.single.owe();
            self.unsent &= !pf;
        }
        due & !pf
    }

    /// Updates the registers after a vector's message: counts the message in IAC, clears the cause by EIAC, and masks
    /// the vector by EIAM. For the PF's vectors EIAM needs GPIE.EIAME.
    fn sent(&mut self, file: &mut RegisterFile, vector: VectorIndex, function: Function) {
        file.count(r::IAC, 1);
        let automask = function != Function::Pf || file.get(r::GPIE) & gpie::EIAME != 0;
        file.update(r::EICR, vector.bit() & file.get(r::EIAC), 0);
        if automask {
            file.update(r::EIMS, vector.bit() & file.get(r::EIAM), 0);
        }
        self.unsent &= !vector.bit();
    }
}

/// Masks the causes that IAM names, after an access to ICR, if `counts` says that the access handles an interrupt.
fn others_automask(file: &mut RegisterFile, counts: bool) {
    if counts {
        file.update(r::IMS, file.get(r::IAM), 0);
    }
}

/// Returns the vector that an IVAR entry of the PF names, or `None` if the entry is not valid.
fn pf_entry(entry: u8) -> Option<VectorIndex> {
    (entry & ivar::VALID != 0).then(|| VectorIndex::new(entry & ivar::VECTOR)).flatten()
}

/// Returns the vector that a VTIVAR entry names, or `None` if the entry is not valid. Vector 3 does not exist: it would be
/// a vector of the neighbouring VF.
fn vf_entry(vf: VfIndex, entry: u8) -> Option<VectorIndex> {
    let local = entry & ivar::VF_VECTOR;
    if entry & ivar::VALID == 0 || usize::from(local) >= i82576::ids::VF_VECTORS {
        return None;
    }
    VectorIndex::new(vf.first_vector() + local)
}

/// Returns the vector of a queue, or `None` if IVAR or VTIVAR names none.
pub(crate) fn queue_vector(
    file: &RegisterFile,
    queue: QueueIndex,
    direction: QueueDirection,
    vfs: u8,
) -> Option<VectorIndex> {
    let byte = usize::from(queue.in_pool()) * 2 + usize::from(direction == QueueDirection::Tx);
    match VfIndex::new(queue.pool().get()).filter(|vf| vf.get() < vfs) {
        Some(vf) => vf_entry(vf, file.get(r::vtivar(vf)).to_le_bytes()[byte]),
        None => pf_entry(file.get(r::ivar(queue.pool().get().into())).to_le_bytes()[byte]),
    }
}

#[cfg(test)]
mod tests {
    use super::vf_entry;
    use i82576::{VectorIndex, VfIndex};

    #[test]
    fn vf_has_no_interrupt_vector_3() {
        let vf = VfIndex::new(1).unwrap();
        assert_eq!(vf_entry(vf, 0x82), VectorIndex::new(21));
        assert_eq!(vf_entry(vf, 0x83), None);
        assert_eq!(vf_entry(vf, 0x02), None);
    }
}
