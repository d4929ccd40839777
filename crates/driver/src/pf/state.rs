//! Saves and restores the state of the PF driver. The card is restored first.

use super::mailbox::LOCK_PATIENCE;

use super::limits::LIMITS;
use super::{Pf, VfState};
use i82576::ids::{MAX_FRAME, MAX_VFS, VLAN_FILTERS};
use serde::{Deserialize, Serialize};
use units::LAST_VLAN;

/// Saved state of a PF driver: policies, requests of each VF, tables, counters, and pending notices. Its times are
/// those of [`Hal::now`](crate::Hal::now).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PfState(pub(super) Pf);

/// Error for an invalid saved state of the driver, with the fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the saved state of the 82576 PF driver is damaged: {0}; restart the port without the saved state")]
pub struct PfRestoreError(pub(super) &'static str);

/// Maximum of a restored counter: low enough to count for centuries, and to add up all counters of a VF.
const MOST_COUNTED: u64 = 1 << 58;

impl Pf {
    /// Returns the PF driver's state, from which another process can continue. Call it between two runs of the PF
    /// driver.
    #[must_use]
    pub fn save(&self) -> PfState {
        PfState(self.clone())
    }

    /// Restores a PF driver on a card that has been restored already. Touches no register.
    ///
    /// # Errors
    /// [`PfRestoreError`] for an invalid state.
    pub fn restore(state: PfState) -> Result<Self, PfRestoreError> {
        let PfState(pf) = state;
        pf.check()?;
        Ok(pf)
    }

    fn check(&self) -> Result<(), PfRestoreError> {
        let rules = [
            (usize::from(self.enabled) <= MAX_VFS, "the port has more than 8 VFs"),
            (usize::from(self.turn) < MAX_VFS, "the next VF to serve is out of range (0-7)"),
            (self.storms < MOST_COUNTED, "the counter of broadcast storms is 2^58 or more"),
            (self.port_policy.0.check(&LIMITS).is_ok(), "the port's policy is invalid"),
            (self.vlans.is_sound(), "the VLAN filter table has a VLAN or a pool that is out of range"),
        ];
        let of_vfs = self.vfs.iter().flat_map(VfState::rules);
        rules
            .into_iter()
            .chain(of_vfs)
            .find(|(holds, _)| !holds)
            .map_or(Ok(()), |(_, what)| Err(PfRestoreError(what)))
    }
}

impl VfState {
    fn rules(&self) -> [(bool, &'static str); 6] {
        let mut counters = self.counters.all().chain([self.sampler.packets()]);
        [
            (self.groups <= self.hashes.len(), "a VF has more multicast groups than a mailbox message holds"),
            (
                self.locked < LOCK_PATIENCE,
                "the number of visits that found a VF's mailbox locked is out of range",
            ),
            (
                self.asked_length.is_none_or(|length| length <= MAX_FRAME as u32),
                "a VF's requested frame length is out of range",
            ),
            (
                counters.all(|count| count < MOST_COUNTED) && self.monitor.is_sound(),
                "a VF's counter is 2^58 or more",
            ),
            (self.policy.check(&LIMITS).is_ok(), "a VF's policy is invalid"),
            (
                self.withheld.len() <= VLAN_FILTERS && self.withheld.iter().all(|vlan| *vlan <= LAST_VLAN),
                "a VF has too many refused VLANs, or a VLAN that is out of range (0-4095)",
            ),
        ]
    }
}
