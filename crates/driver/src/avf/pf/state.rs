//! Saves and restores the PF driver: policies, requests of each VF, counters, and pending messages. The card is
//! restored first.

use super::limits::{LIMITS, MORE_ADDRESSES};
use super::mail::{AdminQueuesState, PfAdminQueues};
use super::{AvfPf, AvfVfState, OFFERED};
use crate::hal::DmaHal;
use ::avf::ids::{MAX_PAIRS, MAX_VFS};
use alloc::vec::Vec;
use i82576::MacAddress;
use serde::{Deserialize, Serialize};

/// Saved state of an AVF's PF driver.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "AvfPfState")]
pub struct AvfPfState {
    pub(super) vfs: Vec<AvfVfState>,
    pub(super) mail: AdminQueuesState,
    pub(super) wire: Option<u32>,
}

/// Error for an invalid saved state of the driver, with the fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the saved state of the AVF PF driver is damaged: {0}; restart the port without the saved state")]
pub struct AvfPfRestoreError(pub(super) &'static str);

impl AvfPf {
    /// Returns the PF driver's state, from which another process can continue. Call it between two runs of the PF
    /// driver; it changes nothing.
    pub fn save<H: DmaHal>(&self, hal: &mut H) -> AvfPfState {
        AvfPfState { vfs: self.vfs.clone(), mail: self.mail.save(hal), wire: self.wire }
    }

    /// Restores a PF driver on a card that has been restored already. Touches no register; `hal` must allocate the same
    /// memory first as for the saved driver.
    ///
    /// # Errors
    /// [`AvfPfRestoreError`] for an invalid state.
    pub fn restore<H: DmaHal>(hal: &mut H, state: AvfPfState) -> Result<Self, AvfPfRestoreError> {
        let AvfPfState { vfs, mail, wire } = state;
        if vfs.len() > MAX_VFS {
            return Err(AvfPfRestoreError("the port has more than 64 VFs"));
        }
        if let Some(what) = vfs.iter().find_map(AvfVfState::flaw) {
            return Err(AvfPfRestoreError(what));
        }
        let mail = PfAdminQueues::restore(hal, vfs.len() as u16, &mail)?;
        Ok(Self { vfs, held: 0, unpaid: 0, mail, wire })
    }
}

impl AvfPfState {
    /// Returns the number of VFs in the saved state.
    #[must_use]
    pub fn vfs(&self) -> usize {
        self.vfs.len()
    }
}

impl AvfVfState {
    /// Returns the fault of an invalid VF state, or `None`.
    fn flaw(&self) -> Option<&'static str> {
        let rules = [
            (self.decided.policy.check(&LIMITS).is_ok(), "a VF's policy is invalid"),
            (self.decided.has_pairs(), "a VF's maximum of queue pairs is out of range"),
            (
                self.agreed.common(OFFERED) == self.agreed,
                "a VF has negotiated a capability that is not offered",
            ),
            ((1..=MAX_PAIRS).contains(&self.pairs.into()), "a VF's number of queue pairs is out of range"),
            (
                u32::from(self.rx | self.tx) >> self.pairs.min(16) == 0,
                "a running queue is not among the VF's queue pairs",
            ),
            (
                self.mac.is_none_or(MacAddress::is_valid_unicast),
                "a VF's MAC address is not a valid unicast address",
            ),
            (
                self.addresses.len() <= usize::from(MORE_ADDRESSES) + 1,
                "a VF has more MAC addresses than its quota",
            ),
            (
                self.withheld.iter().all(|vlan| !self.vlans.contains(vlan)),
                "a VF is a member of a VLAN that is withheld from it",
            ),
            (self.counters.is_sound(), "a VF's counter is missing, or is 2^56 or more"),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map(|(_, what)| what)
    }
}
