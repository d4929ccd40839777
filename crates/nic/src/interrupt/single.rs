//! The PF's one interrupt for everything, while it does not use several MSI-X vectors: vector 0 of MSI-X, the
//! MSI message, or the pin. It speaks for ICR and for EICR, each under its mask, and EITR 0 throttles it.

use super::owners::Owners;
use crate::file::RegisterFile;
use crate::moderation::Throttle;
use i82576::register as r;
use i82576::{Time, Vector};
use pcie::{Bus, Function};
use serde::{Deserialize, Serialize};

/// How the PF interrupts: what its configuration space and GPIE say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Form {
    /// Each vector its own MSI-X message.
    Vectors,
    /// MSI-X vector 0 for everything: MSI-X is on, GPIE.MULTIPLE_MSIX is not.
    OneVector,
    /// The MSI message.
    Msi,
    /// The pin.
    Pin,
    /// Not at all: MSI is masked, or the pin disabled, or the PF sleeps.
    #[default]
    Silent,
}

/// The state of that interrupt.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Single {
    /// A cause came since the last message.
    owed: bool,
    /// The pin as the bus knows it.
    raised: bool,
}

/// The vector that throttles it.
pub(crate) const VECTOR_0: Vector = match Vector::new(0) {
    Some(vector) => vector,
    None => panic!(),
};

impl Single {
    /// A new cause: one message more.
    pub(super) fn owe(&mut self) {
        self.owed = true;
    }

    /// Tells the bus what changed; answers when a throttled interrupt will be due.
    pub(super) fn send<B: Bus>(
        &mut self,
        file: &mut RegisterFile,
        throttle: &mut Throttle,
        owners: &Owners,
        form: Form,
        now: Time,
        bus: &mut B,
    ) -> Option<Time> {
        let interrupts = is_due(file, owners);
        self.owed &= interrupts && form != Form::Vectors;
        if self.raised && !(interrupts && form == Form::Pin) {
            self.raised = false;
            bus.intx(Function::Pf, false);
        }
        let wants = match form {
            Form::Pin => interrupts && !self.raised,
            Form::OneVector | Form::Msi => self.owed && owners.may_master(Function::Pf),
            Form::Vectors | Form::Silent => false,
        };
        if !wants {
            return None;
        }
        let silent_until = throttle.silent_until(VECTOR_0);
        if silent_until > now {
            return Some(silent_until);
        }
        throttle.fired(VECTOR_0, file.get(r::eitr(VECTOR_0)), now);
        file.count(r::IAC, 1);
        self.owed = false;
        match form {
            Form::OneVector => bus.msix(Function::Pf, 0),
            Form::Msi => bus.msi(Function::Pf),
            _ => {
                self.raised = true;
                bus.intx(Function::Pf, true);
            }
        }
        None
    }
}

/// Whether an unmasked cause of the PF is set.
pub(crate) fn is_due(file: &RegisterFile, owners: &Owners) -> bool {
    let extended = file.get(r::EICR) & file.get(r::EIMS) & owners.pf_vectors();
    unmasked_others(file) != 0 || extended != 0
}

/// Causes of ICR that are unmasked.
pub(super) fn unmasked_others(file: &RegisterFile) -> u32 {
    file.get(r::ICR) & file.get(r::IMS)
}
