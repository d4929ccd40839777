//! Saved state of an 82576 card with the software of its PF. `port` adds the state of the functions' clients.

use crate::pf_config::{CardConfigSpace, PF_RID};
use driver::Pf;
use driver::pf::PfState;
use iovm::{SrIovManager, SrIovManagerState};
use nic::Nic;
use serde::{Deserialize, Serialize};

/// State of an 82576 card between two rounds of its port's loop, with PF driver and SR-IOV manager if the host has the
/// PF. Times are of CLOCK_MONOTONIC, which all processes share until the machine reboots.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CardState {
    /// State of the 82576 card itself, without PF driver and SR-IOV manager.
    pub nic: nic::NicState,
    /// State of the PF driver; `None` if a guest has the PF.
    pub pf: Option<PfState>,
    /// State of the SR-IOV manager; `None` if a guest has the PF.
    pub manager: Option<SrIovManagerState>,
}

/// Reason why a saved state is invalid: it has the right type, but values that no card can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CardStateError {
    /// The saved state of the card is invalid.
    #[error(transparent)]
    Card(#[from] nic::RestoreError),
    /// The saved state of the PF driver is invalid.
    #[error(transparent)]
    Pf(#[from] driver::pf::PfRestoreError),
    /// The saved state of the SR-IOV manager is invalid.
    #[error(transparent)]
    Manager(#[from] iovm::ManagerRestoreError),
}

/// Card, PF driver and SR-IOV manager that continue from a saved state.
#[derive(Debug)]
pub struct RestoredCard {
    /// Card that was restored from the saved state.
    pub nic: Nic,
    /// Restored PF driver, if the host has the PF.
    pub pf: Option<Pf>,
    /// Restored SR-IOV manager, if the host has the PF.
    pub manager: Option<SrIovManager>,
}

impl CardState {
    /// Saves the state of a card between two rounds of its port's loop.
    #[must_use]
    pub fn of(nic: &Nic, pf: Option<&Pf>, manager: Option<&SrIovManager>) -> Self {
        Self { nic: nic.save(), pf: pf.map(Pf::save), manager: manager.map(SrIovManager::save) }
    }

    /// Restores the card with its PF driver and SR-IOV manager. They continue without a reset and without a notice to
    /// guests.
    ///
    /// # Errors
    /// [`CardStateError`], the only effect of an invalid state.
    pub fn restore(self) -> Result<RestoredCard, CardStateError> {
        let mut nic = Nic::restore(self.nic)?;
        let pf = self.pf.map(Pf::restore).transpose()?;
        let manager = self
            .manager
            .map(|state| SrIovManager::restore(&mut CardConfigSpace(&mut nic), PF_RID, &state))
            .transpose()?;
        Ok(RestoredCard { nic, pf, manager })
    }
}
