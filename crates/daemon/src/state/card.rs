//! The state of a port's card together with the software of its PF. Left out: the port around it: clients, their
//! memory, sockets, the uplink.

use crate::pf_config::{ConfigSpace, PF_RID};
use driver::Pf;
use driver::pf::PfState;
use iovm::{Manager, ManagerState};
use nic::Nic;
use serde::{Deserialize, Serialize};

/// A card, and the PF driver and the SR-IOV manager where they are this program's, set aside between two rounds of the
/// port. Moments in it are those of CLOCK_MONOTONIC, which is the same for every process until the machine starts anew.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CardState {
    /// The card.
    pub nic: nic::State,
    /// The PF driver; there is none where a guest has the PF.
    pub pf: Option<PfState>,
    /// The SR-IOV manager; there is none where a guest has the PF.
    pub manager: Option<ManagerState>,
}

/// A state that fits its type, and in which no card can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The card.
    #[error(transparent)]
    Card(#[from] nic::RestoreError),
    /// The PF driver.
    #[error(transparent)]
    Pf(#[from] driver::pf::RestoreError),
    /// The SR-IOV manager.
    #[error(transparent)]
    Manager(#[from] iovm::RestoreError),
}

/// What goes on where the state was taken.
#[derive(Debug)]
pub struct Restored {
    /// The card.
    pub nic: Nic,
    /// The PF driver.
    pub pf: Option<Pf>,
    /// The SR-IOV manager.
    pub manager: Option<Manager>,
}

impl CardState {
    /// The state of a card between two rounds of its port.
    #[must_use]
    pub fn of(nic: &Nic, pf: Option<&Pf>, manager: Option<&Manager>) -> Self {
        Self { nic: nic.save(), pf: pf.map(Pf::save), manager: manager.map(Manager::save) }
    }

    /// The card and its software in this state. They take up where the others stopped: nothing is reset, and nobody is
    /// told.
    ///
    /// # Errors
    /// [`RestoreError`]; whatever the state says, nothing else happens.
    pub fn restore(self) -> Result<Restored, RestoreError> {
        let mut nic = Nic::restore(self.nic)?;
        let pf = self.pf.map(Pf::restore).transpose()?;
        let manager = self
            .manager
            .map(|state| Manager::restore(&mut ConfigSpace(&mut nic), PF_RID, &state))
            .transpose()?;
        Ok(Restored { nic, pf, manager })
    }
}
