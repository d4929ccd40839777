//! The driver set aside, and continued by a successor: all of it is state. Left out: the card, which is restored first,
//! and the form in which a state is kept.

use super::mailbox::LOCK_PATIENCE;

use super::limits::LIMITS;
use super::{Pf, VfState};
use i82576::ids::{MAX_FRAME, MAX_VFS, VLAN_FILTERS};
use serde::{Deserialize, Serialize};
use units::LAST_VLAN;

/// The state of a PF driver: every policy, what each VF has asked for, tables, counters, and what is owed to whom.
/// Moments in it are those of [`Hal::now`](crate::Hal::now).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PfState(pub(super) Pf);

/// A state that no driver can be in, and what is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the state of the PF driver is damaged: {0}; start the port anew")]
pub struct RestoreError(pub(super) &'static str);

/// Counters below this can go on counting for centuries, and all of a VF's can be added up.
const MOST_COUNTED: u64 = 1 << 58;

impl Pf {
    /// All that a successor needs to go on where this driver stands. To be called between two calls.
    #[must_use]
    pub fn save(&self) -> PfState {
        PfState(self.clone())
    }

    /// A driver that goes on from a state, on a card that has been restored already. It touches no register.
    ///
    /// # Errors
    /// [`RestoreError`] if no driver can be in this state.
    pub fn restore(state: PfState) -> Result<Self, RestoreError> {
        let PfState(pf) = state;
        pf.check()?;
        Ok(pf)
    }

    fn check(&self) -> Result<(), RestoreError> {
        let rules = [
            (usize::from(self.enabled) <= MAX_VFS, "it serves more VFs than a port has"),
            (usize::from(self.turn) < MAX_VFS, "its round of VFs starts beyond the last"),
            (self.storms < MOST_COUNTED, "the counter of storms is about to overflow"),
            (self.port_policy.0.check(&LIMITS).is_ok(), "the port's policy makes no sense"),
            (self.vlans.is_sound(), "the VLAN table has an id or a pool that there is not"),
        ];
        let of_vfs = self.vfs.iter().flat_map(VfState::rules);
        rules
            .into_iter()
            .chain(of_vfs)
            .find(|(holds, _)| !holds)
            .map_or(Ok(()), |(_, what)| Err(RestoreError(what)))
    }
}

impl VfState {
    fn rules(&self) -> [(bool, &'static str); 6] {
        let mut counters = self.counters.all().chain([self.sampler.packets()]);
        [
            (self.groups <= self.hashes.len(), "a VF has more multicast groups than a message holds"),
            (self.locked < LOCK_PATIENCE, "a VF has held the mailbox for too long"),
            (
                self.asked_length.is_none_or(|length| length <= MAX_FRAME as u32),
                "a VF has asked for too long frames",
            ),
            (
                counters.all(|count| count < MOST_COUNTED) && self.monitor.is_sound(),
                "a VF's counter is about to overflow",
            ),
            (self.policy.check(&LIMITS).is_ok(), "a VF's policy makes no sense"),
            (
                self.withheld.len() <= VLAN_FILTERS && self.withheld.iter().all(|vlan| *vlan <= LAST_VLAN),
                "a VF has asked for more VLANs than there are",
            ),
        ]
    }
}
