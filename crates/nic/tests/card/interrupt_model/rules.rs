//! The rules of interrupts, a state a vector, written from the datasheet and decision 10 and not from the card: slow,
//! without masks of bits where a loop over vectors will do. What the functions find at an offset is in `registers`.
//! Left out: frames that interrupt at once, and the credits they take (`urgent`).

use i82576::bits::{eicr, gpie, icr};
use pcie::Function::{self, Pf, Vf};

/// The port's vectors.
pub(super) const VECTORS: usize = 25;

/// What is known of one vector.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Vector {
    /// Its bit in EICR, EIMS, EIAC and EIAM.
    pub(super) cause: bool,
    pub(super) unmasked: bool,
    pub(super) auto_clear: bool,
    pub(super) auto_mask: bool,
    /// An event, or the end of its mask, that no message has told yet.
    pub(super) owes: bool,
    /// EITR without its counter, and when it may speak again, in microseconds.
    pub(super) throttle: u32,
    pub(super) silent_until: u64,
}

/// How the PF interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Vectors,
    OneVector,
    Msi,
    Pin,
    Silent,
}

/// What the bus hears in a poll, and when the card wants the next one, in microseconds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) msix: Vec<(Function, u16)>,
    pub(super) msi: usize,
    pub(super) pin: Vec<bool>,
    pub(super) deadline: Option<u64>,
}

/// All that interrupts hang on.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) vfs: u8,
    pub(super) vectors: [Vector; VECTORS],
    /// Bits 31:30 of EIMS and EIAM, which stand for no vector.
    pub(super) high_mask: u32,
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
    /// May the function master the bus: VFs, then the PF.
    pub(super) masters: [bool; 9],
    /// Vectors had messages of their own in the last poll.
    had_vectors: bool,
    /// The one interrupt for all: an event that was not told, and the pin as it is.
    one_owes: bool,
    raised: bool,
}

impl Model {
    /// A card with so many VFs whose every function masters the bus, and a PF that uses several vectors of MSI-X.
    pub(super) fn new(vfs: u8, gpie: u32, icr: u32) -> Self {
        Self {
            vfs,
            vectors: [Vector::default(); VECTORS],
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

    /// Which function a vector speaks for, and as which of its own: VF n has the port's 22-3n to 24-3n.
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

    pub(super) fn form(&self) -> Form {
        match (self.msix, self.msi) {
            (true, _) if self.several() => Form::Vectors,
            (true, _) => Form::OneVector,
            (_, true) => Form::Msi,
            _ if self.pin_disabled => Form::Silent,
            _ => Form::Pin,
        }
    }

    /// An event of a vector. It is told even if the cause is still set from the one before.
    pub(super) fn event(&mut self, vector: usize) {
        if let Some(vector) = self.vectors.get_mut(vector) {
            vector.cause = true;
            vector.owes = true;
        }
    }

    /// An event that an entry of the PF's IVAR leads to its vector.
    fn event_of_entry(&mut self, entry: u8) {
        if entry & 0x80 != 0 {
            self.event(usize::from(entry & 0x1f));
        }
    }

    /// An event that an entry of a VF's VTIVAR leads to its vector. There is no vector 3.
    fn event_of_vf_entry(&mut self, vf: u8, entry: u8) {
        if entry & 0x80 != 0 && entry & 3 != 3 {
            self.event(22 - 3 * usize::from(vf) + usize::from(entry & 3));
        }
    }

    /// A descriptor of a pool's first queue was written back. The PF's pool is the one behind the VFs'.
    pub(super) fn queue_event(&mut self, pool: u8, sent: bool) {
        let byte = usize::from(sent);
        if pool < self.vfs {
            self.event_of_vf_entry(pool, self.vtivar[usize::from(pool)].to_le_bytes()[byte]);
        } else {
            self.event_of_entry(self.ivar[usize::from(pool)].to_le_bytes()[byte]);
            self.other_events(if sent { icr::TXDW } else { icr::RXDW });
        }
    }

    /// The PF rings a VF. One that does not exist has no vector to be rung on.
    pub(super) fn mailbox_event(&mut self, vf: u8) {
        if vf < self.vfs {
            self.event_of_vf_entry(vf, self.vtivar_misc[usize::from(vf)].to_le_bytes()[0]);
        }
    }

    /// Causes of ICR come.
    pub(super) fn other_events(&mut self, causes: u32) {
        self.change_others(|model| model.icr |= causes);
    }

    /// What becomes set and unmasked, and was not both before, interrupts.
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

    /// ICR as it is seen.
    pub(super) fn others(&self) -> u32 {
        self.icr | if self.icr & self.ims != 0 { icr::INTA } else { 0 }
    }

    /// ICR in EICR.
    pub(super) fn others_in_eicr(&self) -> u32 {
        match self.icr & self.ims {
            0 => 0,
            _ if self.several() => 0,
            causes if causes & icr::TIMER != 0 => eicr::OTHER | eicr::TIMER,
            _ => eicr::OTHER,
        }
    }

    /// A cause is read or cleared.
    pub(super) fn acknowledge(&mut self, vector: usize) {
        let vector = &mut self.vectors[vector];
        vector.unmasked &= !(vector.cause && vector.auto_mask);
        (vector.cause, vector.owes) = (false, false);
    }

    /// A mask is lifted: a cause that is set is told, even if it was before.
    pub(super) fn unmask(&mut self, vector: usize) {
        let vector = &mut self.vectors[vector];
        vector.owes |= vector.cause && !vector.unmasked;
        vector.unmasked = true;
    }

    /// The VF itself, or the PF, writes CTRL.RST; the PF hears of it.
    pub(super) fn reset_vf(&mut self, vf: u8) {
        let first = 22 - 3 * usize::from(vf);
        self.vectors[first..first + 3].fill(Vector::default());
        self.vtivar[usize::from(vf)] = 0;
        self.vtivar_misc[usize::from(vf)] = 0;
        self.other_events(icr::VMMB);
    }

    /// A poll: what is owed and may be told is told.
    pub(super) fn poll(&mut self, now: u64) -> Heard {
        let (mut heard, form) = (Heard::default(), self.form());
        self.follow_form(form);
        self.tell_one(form, now, &mut heard);
        for vector in 0..VECTORS {
            self.tell(vector, now, &mut heard);
        }
        heard
    }

    /// The PF's vectors begin to speak for themselves, or the one interrupt speaks for them.
    fn follow_form(&mut self, form: Form) {
        for vector in (0..VECTORS).filter(|vector| self.owner(*vector).0 == Pf).collect::<Vec<_>>() {
            let vector = &mut self.vectors[vector];
            if form == Form::Vectors {
                vector.owes |= vector.cause && !self.had_vectors;
            } else if vector.cause && vector.unmasked && vector.owes {
                vector.owes = false;
                self.one_owes = true;
            }
        }
        self.had_vectors = form == Form::Vectors;
    }

    /// The one interrupt for all: a message for an event, or a level on the pin, throttled by EITR 0.
    fn tell_one(&mut self, form: Form, now: u64, heard: &mut Heard) {
        let extended = (0..VECTORS)
            .any(|vector| self.is_pfs(vector) && self.vectors[vector].cause && self.vectors[vector].unmasked);
        let due = extended || self.icr & self.ims != 0;
        self.one_owes &= due && form != Form::Vectors;
        if self.raised && !(due && form == Form::Pin) {
            self.raised = false;
            heard.pin.push(false);
        }
        let wants = match form {
            Form::Vectors | Form::Silent => false,
            Form::Pin => due && !self.raised,
            Form::OneVector | Form::Msi => self.one_owes && self.masters(Pf),
        };
        if !wants || !self.may_speak(0, now, heard) {
            return;
        }
        self.one_owes = false;
        match form {
            Form::OneVector => heard.msix.push((Pf, 0)),
            Form::Msi => heard.msi += 1,
            _ => {
                self.raised = true;
                heard.pin.push(true);
            }
        }
    }

    /// A vector's own message, and what it does to the registers.
    fn tell(&mut self, index: usize, now: u64, heard: &mut Heard) {
        let (function, local) = self.owner(index);
        let Vector { cause, unmasked, owes, .. } = self.vectors[index];
        let own = function != Pf || self.form() == Form::Vectors;
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

    /// Whether a throttle is open. If so it closes for its interval, which is bits 14:2; if not, the card wants to be
    /// polled when it opens.
    fn may_speak(&mut self, vector: usize, now: u64, heard: &mut Heard) -> bool {
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
