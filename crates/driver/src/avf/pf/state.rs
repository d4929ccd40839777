//! The driver set aside, and continued by a successor: policies, what each VF has asked for, counters, and what waits in
//! its queues. Left out: the card, which is restored first, and the form in which a state is kept.

use super::filters::MORE_ADDRESSES;
use super::limits::LIMITS;
use super::mail::{Mail, MailState};
use super::{OFFERED, Pf, VfState};
use crate::hal::DmaHal;
use ::avf::ids::{MAX_PAIRS, MAX_VFS};
use alloc::vec::Vec;
use i82576::MacAddress;
use serde::{Deserialize, Serialize};
use units::LAST_VLAN;

/// The state of a PF driver.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "AvfPfState")]
pub struct PfState {
    pub(super) vfs: Vec<VfState>,
    pub(super) mail: MailState,
    pub(super) wire: Option<u32>,
}

/// A state that no driver can be in, and what is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the state of the PF driver is damaged: {0}; start the port anew")]
pub struct RestoreError(pub(super) &'static str);

impl Pf {
    /// All that a successor needs to go on where this driver stands. To be called between two calls; nothing is changed.
    pub fn save<H: DmaHal>(&self, hal: &mut H) -> PfState {
        PfState { vfs: self.vfs.clone(), mail: self.mail.save(hal), wire: self.wire }
    }

    /// A driver that goes on from a state, on a card that has been restored already. It touches no register; its memory
    /// must be the first that `hal` gives, as it was for the one that was saved.
    ///
    /// # Errors
    /// [`RestoreError`] if no driver can be in this state.
    pub fn restore<H: DmaHal>(hal: &mut H, state: PfState) -> Result<Self, RestoreError> {
        let PfState { vfs, mail, wire } = state;
        if vfs.len() > MAX_VFS {
            return Err(RestoreError("it serves more VFs than a port has"));
        }
        if let Some(what) = vfs.iter().find_map(VfState::flaw) {
            return Err(RestoreError(what));
        }
        let mail = Mail::restore(hal, vfs.len() as u16, &mail)?;
        Ok(Self { vfs, held: 0, mail, wire })
    }
}

impl PfState {
    /// VFs that it serves.
    #[must_use]
    pub fn vfs(&self) -> usize {
        self.vfs.len()
    }
}

impl VfState {
    /// What of a state no VF can have.
    fn flaw(&self) -> Option<&'static str> {
        let vlans = usize::from(LAST_VLAN) + 1;
        let asked = || self.vlans.iter().chain(&self.withheld);
        let rules = [
            (self.decided.policy.check(&LIMITS).is_ok(), "a VF's policy makes no sense"),
            (self.decided.has_pairs(), "a VF may ask for no queues, or too many"),
            (self.agreed.common(OFFERED) == self.agreed, "a VF has agreed on what is not offered"),
            ((1..=MAX_PAIRS).contains(&self.pairs.into()), "a VF has no queues, or too many"),
            (
                u32::from(self.rx | self.tx) >> self.pairs.min(16) == 0,
                "a queue runs that the VF does not have",
            ),
            (self.mac.is_none_or(MacAddress::is_valid_unicast), "a VF is known by no station's address"),
            (self.addresses.len() <= MORE_ADDRESSES + 1, "a VF has more addresses than it may"),
            (
                asked().count() <= vlans && asked().all(|vlan| *vlan <= LAST_VLAN),
                "a VF is in a VLAN that there is not",
            ),
            (self.counters.is_sound(), "a VF's counter is about to overflow, or missing"),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map(|(_, what)| what)
    }
}
