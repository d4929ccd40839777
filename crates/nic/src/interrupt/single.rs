//! The PF's single interrupt, while it does not use several MSI-X vectors: MSI-X vector 0, the MSI message, or the pin.
//! It signals unmasked causes of ICR and of EICR, and EITR 0 throttles it.

use super::owners::VectorAndQueueOwners;
use crate::file::RegisterFile;
use crate::moderation::InterruptThrottle;
use i82576::register as r;
use i82576::{Time, VectorIndex};
use pcie::{Bus, Function};
use serde::{Deserialize, Serialize};

/// Kind of interrupt that the PF uses, by its configuration space and GPIE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "Form")]
pub(crate) enum InterruptMode {
    /// The PF sends an MSI-X message for each vector.
    Vectors,
    /// The PF sends MSI-X vector 0 for all causes: MSI-X is enabled, and GPIE.MULTIPLE_MSIX is clear.
    OneVector,
    /// The PF sends the MSI message for all causes.
    Msi,
    /// The PF asserts the INTx pin for all causes.
    Pin,
    /// The PF has no interrupt: MSI is masked, the pin is disabled, or the PF is in D3hot.
    #[default]
    Silent,
}

/// State of the PF's single interrupt, which it uses without several MSI-X vectors.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename = "Single")]
pub(super) struct SingleInterrupt {
    /// True if the single interrupt's message is pending: a cause was raised since the last message.
    owed: bool,
    /// True if the PF's INTx pin is asserted on the bus.
    raised: bool,
}

/// MSI-X vector 0, which carries the PF's single interrupt. EITR 0 throttles it.
pub(crate) const VECTOR_0: VectorIndex = match VectorIndex::new(0) {
    Some(vector) => vector,
    None => panic!(),
};

impl SingleInterrupt {
    /// Marks the single interrupt's message as pending for a new cause.
    pub(super) fn owe(&mut self) {
        self.owed = true;
    }

    /// Sends the single interrupt's pending message, or changes the INTx pin. Returns the time at which a throttled
    /// interrupt is due.
    pub(super) fn send<B: Bus>(
        &mut self,
        file: &mut RegisterFile,
        throttle: &mut InterruptThrottle,
        owners: &VectorAndQueueOwners,
        form: InterruptMode,
        now: Time,
        bus: &mut B,
    ) -> Option<Time> {
        let interrupts = is_due(file, owners);
        // A pending message whose cause was cleared or masked meanwhile is not sent.
        self.owed &= interrupts && form != InterruptMode::Vectors;
        if self.raised && !(interrupts && form == InterruptMode::Pin) {
            self.raised = false;
            bus.intx(Function::Pf, false);
        }
        let wants = match form {
            InterruptMode::Pin => interrupts && !self.raised,
            InterruptMode::OneVector | InterruptMode::Msi => self.owed && owners.may_master(Function::Pf),
            InterruptMode::Vectors | InterruptMode::Silent => false,
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
            InterruptMode::OneVector => bus.msix(Function::Pf, 0),
            InterruptMode::Msi => bus.msi(Function::Pf),
            _ => {
                self.raised = true;
                bus.intx(Function::Pf, true);
            }
        }
        None
    }
}

/// Returns true if an unmasked cause of the PF is set, in ICR or in EICR.
pub(crate) fn is_due(file: &RegisterFile, owners: &VectorAndQueueOwners) -> bool {
    let extended = file.get(r::EICR) & file.get(r::EIMS) & owners.pf_vectors();
    unmasked_others(file) != 0 || extended != 0
}

/// Returns the causes of ICR that are set and unmasked.
pub(super) fn unmasked_others(file: &RegisterFile) -> u32 {
    file.get(r::ICR) & file.get(r::IMS)
}
