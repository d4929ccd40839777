//! The rules of interrupts with a state for each vector, written from the datasheet and not from the card's code. The model
//! is slow: it loops over vectors and has no bit masks. `registers` has its registers. Urgent frames and their credits are
//! tested in `urgent`.

use i82576::bits::{eicr, gpie, icr};
use pcie::Function::{self, Pf, Vf};

/// Number of the port's vectors.
pub(super) const VECTORS: usize = 25;

/// State of an interrupt vector in the model.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ModelVector {
    /// True if the vector's bit in EICR is set (cause).
    pub(super) cause: bool,
    /// True if the vector's bit in EIMS is set (mask).
    pub(super) unmasked: bool,
    /// True if the vector's bit in EIAC is set.
    pub(super) auto_clear: bool,
    /// True if the vector's bit in EIAM is set.
    pub(super) auto_mask: bool,
    /// True if the vector has a pending message, because of an event or of its unmasking.
    pub(super) owes: bool,
    /// Value of EITR without its counter.
    pub(super) throttle: u32,
    /// Time of the vector's next permitted message, in microseconds.
    pub(super) silent_until: u64,
}

/// Kind of interrupt that the PF of the interrupt model uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelInterruptMode {
    Vectors,
    OneVector,
    Msi,
    Pin,
    Silent,
}

/// Messages and pin changes that a poll sends, and the time of the next poll in microseconds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PollInterrupts {
    pub(super) msix: Vec<(Function, u16)>,
    pub(super) msi: usize,
    pub(super) pin: Vec<bool>,
    pub(super) deadline: Option<u64>,
}

/// State of the interrupt model: vectors, registers, and the PF's single interrupt.
#[derive(Debug)]
pub(super) struct InterruptModel {
    pub(super) vfs: u8,
    pub(super) vectors: [ModelVector; VECTORS],
    /// Bits 31:30 of EIMS, which belong to no vector.
    pub(super) high_mask: u32,
    /// Bits 31:30 of EIAM, which belong to no vector.
    pub(super) high_auto_mask: u32,
    pub(super) icr: u32,
    pub(super) ims: u32,
    pub(super) iam: u32,
    pub(super) gpie: u32,
    pub(super) iac: u32,
    pub(super) ivar: [u32; 8],
    pub(super) ivar_misc: u32,
    pub(super) vtivar: [u32; 8],
    pub(super) vtivar_misc: [u32; 8],
    pub(super) msix: bool,
    pub(super) msi: bool,
    pub(super) pin_disabled: bool,
    /// Functions that master the bus: the VFs, then the PF.
    pub(super) masters: [bool; 9],
    /// True if the PF's vectors sent messages of their own (no single interrupt) at the last poll.
    had_vectors: bool,
    /// True if the PF's single interrupt has a pending message; `raised` is the state of the pin.
    one_owes: bool,
    raised: bool,
}

impl InterruptModel {
    /// Creates the model of a card with `vfs` VFs. Every function masters the bus, and the PF uses several MSI-X vectors.
    pub(super) fn new(vfs: u8, gpie: u32, icr: u32) -> Self {
        Self {
            vfs,
            vectors: [ModelVector::default(); VECTORS],
            high_mask: 0,
            high_auto_mask: 0,
            icr,
            ims: 0,
            iam: 0,
            gpie,
            iac: 0,
            ivar: [0; 8],
            ivar_misc: 0,
            vtivar: [0; 8],
            vtivar_misc: [0; 8],
            msix: true,
            msi: false,
            pin_disabled: false,
            masters: [true; 9],
            had_vectors: false,
            one_owes: false,
            raised: false,
        }
    }

    /// Returns a vector's function, and its number there: VF n has the port's vectors 22-3n to 24-3n.
    pub(super) fn owner(&self, vector: usize) -> (Function, u16) {
        for vf in 0..self.vfs {
            let first = 22 - 3 * usize::from(vf);
            if (first..first + 3).contains(&vector) {
                return (Vf(vf), (vector - first) as u16);
            }
        }
        (Pf, vector as u16)
    }

    pub(super) fn is_pfs(&self, vector: usize) -> bool {
        self.owner(vector).0 == Pf
    }

    pub(super) fn masters(&self, function: Function) -> bool {
        self.masters[match function {
            Vf(n) => usize::from(n),
            Pf => 8,
        }]
    }

    fn several(&self) -> bool {
        self.gpie & gpie::MULTIPLE_MSIX != 0
    }

    pub(super) fn form(&self) -> ModelInterruptMode {
        match (self.msix, self.msi) {
            (true, _) if self.several() => ModelInterruptMode::Vectors,
            (true, _) => ModelInterruptMode::OneVector,
            (_, true) => ModelInterruptMode::Msi,
            _ if self.pin_disabled => ModelInterruptMode::Silent,
            _ => ModelInterruptMode::Pin,
        }
    }

    /// Raises a vector's cause. A message becomes pending even if the cause is still set from an earlier event.
    pub(super) fn event(&mut self, vector: usize) {
        if let Some(vector) = self.vectors.get_mut(vector) {
            vector.cause = true;
            vector.owes = true;
        }
    }

    /// Raises the vector that an entry of the PF's IVAR names.
    fn event_of_entry(&mut self, entry: u8) {
        if entry & 0x80 != 0 {
            self.event(usize::from(entry & 0x1f));
        }
    }

    /// Raises the vector that an entry of a VF's VTIVAR names. Vector 3 does not exist.
    fn event_of_vf_entry(&mut self, vf: u8, entry: u8) {
        if entry & 0x80 != 0 && entry & 3 != 3 {
            self.event(22 - 3 * usize::from(vf) + usize::from(entry & 3));
        }
    }

    /// Raises the interrupt of a pool's first queue for the write-back of a descriptor. The PF's pool follows those of
    /// the VFs.
    pub(super) fn queue_event(&mut self, pool: u8, sent: bool) {
        let byte = usize::from(sent);
        if pool < self.vfs {
            self.event_of_vf_entry(pool, self.vtivar[usize::from(pool)].to_le_bytes()[byte]);
        } else {
            self.event_of_entry(self.ivar[usize::from(pool)].to_le_bytes()[byte]);
            self.other_events(if sent { icr::TXDW } else { icr::RXDW });
        }
    }

    /// Raises a VF's mailbox vector, if the VF exists.
    pub(super) fn mailbox_event(&mut self, vf: u8) {
        if vf < self.vfs {
            self.event_of_vf_entry(vf, self.vtivar_misc[usize::from(vf)].to_le_bytes()[0]);
        }
    }

    /// Raises interrupt causes of the model's ICR.
    pub(super) fn other_events(&mut self, causes: u32) {
        self.change_others(|model| model.icr |= causes);
    }

    /// Applies a change of ICR or IMS. Causes that become both set and unmasked interrupt.
    pub(super) fn change_others(&mut self, change: impl FnOnce(&mut Self)) {
        let before = self.icr & self.ims;
        change(self);
        let new = self.icr & self.ims & !before;
        self.one_owes |= new != 0;
        let [timer, other, ..] = self.ivar_misc.to_le_bytes();
        if self.several() && new & icr::TIMER != 0 {
            self.event_of_entry(timer);
        }
        if self.several() && new & !icr::TIMER != 0 {
            self.event_of_entry(other);
        }
    }

    /// Returns the model's value of ICR, INTA included.
    pub(super) fn others(&self) -> u32 {
        self.icr | if self.icr & self.ims != 0 { icr::INTA } else { 0 }
    }

    /// Returns the model's bits of EICR that stand for causes in ICR.
    pub(super) fn others_in_eicr(&self) -> u32 {
        match self.icr & self.ims {
            0 => 0,
            _ if self.several() => 0,
            causes if causes & icr::TIMER != 0 => eicr::OTHER | eicr::TIMER,
            _ => eicr::OTHER,
        }
    }

    /// Clears a vector's interrupt cause, after a read of the cause or a write that clears it.
    pub(super) fn acknowledge(&mut self, vector: usize) {
        let vector = &mut self.vectors[vector];
        vector.unmasked &= !(vector.cause && vector.auto_mask);
        (vector.cause, vector.owes) = (false, false);
    }

    /// Unmasks a vector. A cause that is set makes a message pending, even if one was sent for it before.
    pub(super) fn unmask(&mut self, vector: usize) {
        let vector = &mut self.vectors[vector];
        vector.owes |= vector.cause && !vector.unmasked;
        vector.unmasked = true;
    }

    /// Resets a VF by CTRL.RST or VTCTRL.RST, and notifies the PF.
    pub(super) fn reset_vf(&mut self, vf: u8) {
        let first = 22 - 3 * usize::from(vf);
        self.vectors[first..first + 3].fill(ModelVector::default());
        self.vtivar[usize::from(vf)] = 0;
        self.vtivar_misc[usize::from(vf)] = 0;
        self.other_events(icr::VMMB);
    }

    /// Polls the interrupt model: returns the pending messages that masks and throttles permit.
    pub(super) fn poll(&mut self, now: u64) -> PollInterrupts {
        let (mut heard, form) = (PollInterrupts::default(), self.form());
        self.follow_form(form);
        self.tell_one(form, now, &mut heard);
        for vector in 0..VECTORS {
            self.tell(vector, now, &mut heard);
        }
        heard
    }

    /// Moves pending messages between the PF's vectors and its single interrupt, if the PF's kind of interrupt has
    /// changed.
    fn follow_form(&mut self, form: ModelInterruptMode) {
        for vector in (0..VECTORS).filter(|vector| self.owner(*vector).0 == Pf).collect::<Vec<_>>() {
            let vector = &mut self.vectors[vector];
            if form == ModelInterruptMode::Vectors {
                vector.owes |= vector.cause && !self.had_vectors;
            } else if vector.cause && vector.unmasked && vector.owes {
                vector.owes = false;
                self.one_owes = true;
            }
        }
        self.had_vectors = form == ModelInterruptMode::Vectors;
    }

    /// Sends the PF's single interrupt, throttled by EITR 0: a message for each event, or a level on the pin.
    fn tell_one(&mut self, form: ModelInterruptMode, now: u64, heard: &mut PollInterrupts) {
        let extended = (0..VECTORS)
            .any(|vector| self.is_pfs(vector) && self.vectors[vector].cause && self.vectors[vector].unmasked);
        let due = extended || self.icr & self.ims != 0;
        self.one_owes &= due && form != ModelInterruptMode::Vectors;
        if self.raised && !(due && form == ModelInterruptMode::Pin) {
            self.raised = false;
            heard.pin.push(false);
        }
        let wants = match form {
            ModelInterruptMode::Vectors | ModelInterruptMode::Silent => false,
            ModelInterruptMode::Pin => due && !self.raised,
            ModelInterruptMode::OneVector | ModelInterruptMode::Msi => self.one_owes && self.masters(Pf),
        };
        if !wants || !self.may_speak(0, now, heard) {
            return;
        }
        self.one_owes = false;
        match form {
            ModelInterruptMode::OneVector => heard.msix.push((Pf, 0)),
            ModelInterruptMode::Msi => heard.msi += 1,
            _ => {
                self.raised = true;
                heard.pin.push(true);
            }
        }
    }

    /// Sends a vector's pending message if it is permitted, and applies EIAC and EIAM.
    fn tell(&mut self, index: usize, now: u64, heard: &mut PollInterrupts) {
        let (function, local) = self.owner(index);
        let ModelVector { cause, unmasked, owes, .. } = self.vectors[index];
        let own = function != Pf || self.form() == ModelInterruptMode::Vectors;
        let wants = own && cause && unmasked && owes && self.masters(function);
        if !wants || !self.may_speak(index, now, heard) {
            return;
        }
        heard.msix.push((function, local));
        let auto_mask = function != Pf || self.gpie & gpie::EIAME != 0;
        let vector = &mut self.vectors[index];
        vector.owes = false;
        vector.cause &= !vector.auto_clear;
        vector.unmasked &= !(auto_mask && vector.auto_mask);
    }

    /// Returns true if a vector's throttling interval is over, and starts the next one (EITR bits 14:2). Otherwise the
    /// interval's end becomes a deadline.
    fn may_speak(&mut self, vector: usize, now: u64, heard: &mut PollInterrupts) -> bool {
        let vector = &mut self.vectors[vector];
        if vector.silent_until > now {
            let first = heard.deadline.map_or(vector.silent_until, |at| at.min(vector.silent_until));
            heard.deadline = Some(first);
            return false;
        }
        vector.silent_until = now + u64::from(vector.throttle >> 2 & 0x1fff);
        self.iac += 1;
        true
    }
}
