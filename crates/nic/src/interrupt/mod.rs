//! Interrupt causes and vectors: which event sets which bit of EICR, and when that bit becomes an MSI-X
//! message in the name of the function that owns the vector.
//!
//! A PF whose MSI-X is not in use has one interrupt for everything ([`single`]).
//!
//! Left out: throttling (`moderation`), and the vector table with its mask bits, which is kept where the
//! message arrives.

mod owners;
pub mod single;

pub use owners::{ALL_VECTORS, Owners, master_bit};

use crate::file::RegisterFile;
use crate::moderation::Throttle;
use i82576::bits::{eicr, gpie, icr, ivar};
use i82576::register as r;
use i82576::{Queue, Time, Vector, VfIndex};
use pcie::{Bus, Function};
use serde::{Deserialize, Serialize};
use single::{Form, unmasked_others};

/// The direction of a queue, as IVAR tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Receive.
    Rx,
    /// Transmit.
    Tx,
}

/// Vectors that have something to say and have not said it yet.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Interrupts {
    /// EICR bits that were set, or unmasked, since their last message.
    unsent: u32,
    /// How the PF interrupted the last time.
    form: Form,
    single: single::Single,
}

impl Interrupts {
    /// Whether only vectors that there are have something to say.
    pub(crate) fn is_sound(&self) -> bool {
        self.unsent & !ALL_VECTORS == 0
    }

    /// Sets the cause bits of vectors in EICR.
    pub fn raise(&mut self, file: &mut RegisterFile, bits: u32) {
        let bits = bits & ALL_VECTORS;
        file.update(r::EICR, 0, bits);
        self.unsent |= bits;
    }

    /// EICS was written: causes of vectors and, while there is one interrupt for all, that of the TCP timer.
    pub fn set(&mut self, file: &mut RegisterFile, bits: u32) {
        self.raise(file, bits);
        if bits & eicr::TIMER != 0 && file.get(r::GPIE) & gpie::MULTIPLE_MSIX == 0 {
            self.raise_other(file, icr::TIMER);
        }
    }

    /// The TCP timer has run out: that is a vector's cause, or one of ICR while there is one interrupt for all.
    pub fn raise_timer(&mut self, file: &mut RegisterFile) {
        if file.get(r::GPIE) & gpie::MULTIPLE_MSIX == 0 {
            self.raise_other(file, icr::TIMER);
        } else if let Some(vector) = pf_entry(file.get(r::IVAR_MISC).to_le_bytes()[0]) {
            self.raise(file, vector.bit());
        }
    }

    /// An event of a queue: a descriptor was written back. If the queue is the PF's, `causes` of ICR say so as
    /// well, for a driver that has one interrupt for all.
    pub fn raise_queue(
        &mut self,
        file: &mut RegisterFile,
        queue: Queue,
        direction: Direction,
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

    /// A mailbox event for a VF.
    pub fn raise_mailbox(&mut self, file: &mut RegisterFile, vf: VfIndex) {
        let entry = file.get(r::vtivar_misc(vf)).to_le_bytes()[0];
        if let Some(vector) = vf_entry(vf, entry) {
            self.raise(file, vector.bit());
        }
    }

    /// Causes of the PF that are not a queue's: bits of ICR. Those that are new and unmasked interrupt.
    pub fn raise_other(&mut self, file: &mut RegisterFile, causes: u32) {
        let before = unmasked_others(file);
        file.update(r::ICR, 0, causes);
        self.notify_others(file, before);
    }

    /// IMS was written: causes that were waiting behind the mask interrupt now.
    pub fn unmask_others(&mut self, file: &mut RegisterFile, bits: u32) {
        let before = unmasked_others(file);
        file.update(r::IMS, 0, bits & icr::SETTABLE);
        self.notify_others(file, before);
    }

    /// Leads causes that were not there `before` to the vectors in IVAR_MISC, and to the single interrupt.
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

    /// ICR as it reads, without what reading does: INTA says that one of its causes interrupts.
    #[must_use]
    pub fn others(file: &RegisterFile) -> u32 {
        file.get(r::ICR) | if unmasked_others(file) != 0 { icr::INTA } else { 0 }
    }

    /// ICR is read: its causes and INTA. They go if this was an interrupt, if GPIE.NSICR says that every read
    /// counts, or if nothing is unmasked and there are no interrupts at all.
    pub fn others_read(file: &mut RegisterFile) -> u32 {
        let value = Self::others(file);
        let counts = value & icr::INTA != 0 || file.get(r::GPIE) & gpie::NSICR != 0;
        if counts || file.get(r::IMS) == 0 {
            file.set(r::ICR, 0);
        }
        others_automask(file, counts);
        value
    }

    /// ICR is written: ones clear causes.
    pub fn others_written(file: &mut RegisterFile, bits: u32) {
        let counts = Self::others(file) & icr::INTA != 0 || file.get(r::GPIE) & gpie::NSICR != 0;
        file.update(r::ICR, bits, 0);
        others_automask(file, counts);
    }

    /// The bits of EICR that stand for ICR while there is one interrupt for all.
    #[must_use]
    pub fn others_in_eicr(file: &RegisterFile) -> u32 {
        match unmasked_others(file) {
            _ if file.get(r::GPIE) & gpie::MULTIPLE_MSIX != 0 => 0,
            0 => 0,
            causes => eicr::OTHER | causes & eicr::TIMER,
        }
    }

    /// Mask bits that were clear are set: causes that were waiting behind them fire now.
    pub fn unmasked(&mut self, file: &RegisterFile, bits: u32) {
        self.unsent |= file.get(r::EICR) & bits & ALL_VECTORS;
    }

    /// EICR was read, or written with ones: the bits go, and EIAM masks their vectors.
    pub fn acknowledge(&mut self, file: &mut RegisterFile, bits: u32) {
        let automask = bits & file.get(r::EICR) & file.get(r::EIAM);
        file.update(r::EICR, bits, 0);
        file.update(r::EIMS, automask, 0);
        self.unsent &= !bits;
    }

    /// Forgets vectors: their function was reset.
    pub fn reset(&mut self, file: &mut RegisterFile, bits: u32) {
        for register in [r::EICR, r::EIMS, r::EIAC, r::EIAM] {
            file.update(register, bits, 0);
        }
        self.unsent &= !bits;
    }

    /// Sends every message that is due and answers when the next throttled one will be. `form` is the PF's.
    pub fn send<B: Bus>(
        &mut self,
        file: &mut RegisterFile,
        throttle: &mut Throttle,
        owners: &Owners,
        form: Form,
        now: Time,
        bus: &mut B,
    ) -> Option<Time> {
        if form == Form::Vectors && self.form != form {
            self.unsent |= file.get(r::EICR) & owners.pf_vectors();
        }
        self.form = form;
        let mut due = self.unsent & file.get(r::EICR) & file.get(r::EIMS);
        if form != Form::Vectors {
            due = self.hand_over(due, owners);
        }
        let mut deadline = self.single.send(file, throttle, owners, form, now, bus);
        while let Some(vector) = Vector::new(due.trailing_zeros() as u8) {
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

    /// The PF's vectors among `due` become the single interrupt; the VFs' remain.
    fn hand_over(&mut self, due: u32, owners: &Owners) -> u32 {
        let pf = due & owners.pf_vectors();
        if pf != 0 {
            self.single.owe();
            self.unsent &= !pf;
        }
        due & !pf
    }

    /// What sending does to the registers: IAC counts, EIAC clears the cause, EIAM masks the vector.
    fn sent(&mut self, file: &mut RegisterFile, vector: Vector, function: Function) {
        file.count(r::IAC, 1);
        let automask = function != Function::Pf || file.get(r::GPIE) & gpie::EIAME != 0;
        file.update(r::EICR, vector.bit() & file.get(r::EIAC), 0);
        if automask {
            file.update(r::EIMS, vector.bit() & file.get(r::EIAM), 0);
        }
        self.unsent &= !vector.bit();
    }
}

/// An access to ICR that counts masks what IAM names.
fn others_automask(file: &mut RegisterFile, counts: bool) {
    if counts {
        file.update(r::IMS, file.get(r::IAM), 0);
    }
}

/// The vector that an IVAR entry of the PF names.
fn pf_entry(entry: u8) -> Option<Vector> {
    (entry & ivar::VALID != 0).then(|| Vector::new(entry & ivar::VECTOR)).flatten()
}

/// The vector that a VTIVAR entry names. Vector 3 does not exist: it would be the neighbour's.
fn vf_entry(vf: VfIndex, entry: u8) -> Option<Vector> {
    let local = entry & ivar::VF_VECTOR;
    if entry & ivar::VALID == 0 || usize::from(local) >= i82576::ids::VF_VECTORS {
        return None;
    }
    Vector::new(vf.first_vector() + local)
}

/// The vector of a queue, if it has one.
pub(crate) fn queue_vector(
    file: &RegisterFile,
    queue: Queue,
    direction: Direction,
    vfs: u8,
) -> Option<Vector> {
    let byte = usize::from(queue.in_pool()) * 2 + usize::from(direction == Direction::Tx);
    match VfIndex::new(queue.pool().get()).filter(|vf| vf.get() < vfs) {
        Some(vf) => vf_entry(vf, file.get(r::vtivar(vf)).to_le_bytes()[byte]),
        None => pf_entry(file.get(r::ivar(queue.pool().get().into())).to_le_bytes()[byte]),
    }
}

#[cfg(test)]
mod tests {
    use super::vf_entry;
    use i82576::{Vector, VfIndex};

    #[test]
    fn vector_3_of_a_vf_does_not_exist() {
        let vf = VfIndex::new(1).unwrap();
        assert_eq!(vf_entry(vf, 0x82), Vector::new(21));
        assert_eq!(vf_entry(vf, 0x83), None);
        assert_eq!(vf_entry(vf, 0x02), None);
    }
}
