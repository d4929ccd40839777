//! What the PF counts for each VF: requests by operation, and those that were refused, by reason. Left out: traffic,
//! which the card counts.

use ::avf::virtchnl::{Malformed, Op, Status};
use alloc::vec;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Why a request was refused, or was answered without effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The body is no message.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Anything but version, resources and reset before the VF has asked what it has.
    #[error("the VF has not asked for its resources")]
    NotReady,
    /// It needs a capability that was not agreed on.
    #[error("the capability was not agreed on")]
    NotAgreed,
    /// Another VSI than the VF's.
    #[error("not the VF's VSI")]
    NotItsVsi,
    /// A queue that the VF does not have, or none.
    #[error("not a queue of the VF")]
    NoSuchQueue,
    /// A ring that cannot be.
    #[error("the ring's place, length, buffers or form make no sense")]
    Ring,
    /// A vector that the VF does not have.
    #[error("not a vector of the VF")]
    NoSuchVector,
    /// The administrator has chosen the address.
    #[error("the address was set by the administrator")]
    AddressFixed,
    /// Zero or broadcast.
    #[error("not an address to receive by")]
    AddressInvalid,
    /// Another VF has the address, and may not share it.
    #[error("the address is in use by another VF; allow it with share_mac for both, or with trust")]
    AddressInUse,
    /// More addresses than the VF may have.
    #[error("the VF has as many addresses as it may have")]
    TooManyAddresses,
    /// The administrator has put the VF on one VLAN.
    #[error("the VLAN was set by the administrator")]
    VlanFixed,
    /// Not a VLAN, or a kind of tag that was not offered.
    #[error("not a VLAN that can be had")]
    VlanInvalid,
    /// Not in the administrator's list: answered as if it were granted, and withheld.
    #[error("the administrator does not allow the VLAN")]
    VlanNotAllowed,
    /// More VLANs than the VF may have: answered as if they were granted.
    #[error("the VF has as many VLANs as it may have")]
    TooManyVlans,
    /// The VF may not receive everything: answered as if it could.
    #[error("the administrator does not allow promiscuity")]
    Promiscuity,
    /// The VF is switched off, or quarantined.
    #[error("the VF is switched off, or quarantined")]
    Disabled,
    /// A key, a table or a function of the hash that cannot be.
    #[error("the hash cannot be made like that")]
    Hash,
    /// More queue pairs than the VF may have, or none.
    #[error("the VF may not have so many queue pairs")]
    TooManyQueues,
}

impl Refusal {
    /// Reasons by name, in the order of [`Counters::refused`].
    pub const NAMES: [&'static str; 19] = [
        "malformed",
        "not-ready",
        "not-agreed",
        "not-its-vsi",
        "no-such-queue",
        "ring",
        "no-such-vector",
        "address-fixed",
        "address-invalid",
        "address-in-use",
        "too-many-addresses",
        "vlan-fixed",
        "vlan-invalid",
        "vlan-not-allowed",
        "too-many-vlans",
        "promiscuity",
        "disabled",
        "hash",
        "too-many-queues",
    ];

    fn index(self) -> usize {
        match self {
            Self::Malformed(_) => 0,
            Self::NotReady => 1,
            Self::NotAgreed => 2,
            Self::NotItsVsi => 3,
            Self::NoSuchQueue => 4,
            Self::Ring => 5,
            Self::NoSuchVector => 6,
            Self::AddressFixed => 7,
            Self::AddressInvalid => 8,
            Self::AddressInUse => 9,
            Self::TooManyAddresses => 10,
            Self::VlanFixed => 11,
            Self::VlanInvalid => 12,
            Self::VlanNotAllowed => 13,
            Self::TooManyVlans => 14,
            Self::Promiscuity => 15,
            Self::Disabled => 16,
            Self::Hash => 17,
            Self::TooManyQueues => 18,
        }
    }

    /// A name for tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// The status that the VF reads.
    #[must_use]
    pub fn status(self) -> Status {
        match self {
            Self::Malformed(malformed) => malformed.status(),
            Self::NotAgreed => Status::NotSupported,
            _ => Status::Param,
        }
    }
}

/// Counters below this can go on counting for centuries, and all of a VF's can be added up.
const MOST_COUNTED: u64 = 1 << 56;

/// What was counted for one VF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    requests: Vec<u64>,
    refused: Vec<u64>,
    /// Requests of operations that there are not.
    pub unknown: u64,
    /// Resets, whoever made them.
    pub resets: u64,
    /// Events sent: of the link, and of resets.
    pub events: u64,
    /// Messages that found no room on the way to the VF.
    pub lost: u64,
}

impl Default for Counters {
    fn default() -> Self {
        let (requests, refused) = (vec![0; Op::ALL.len()], vec![0; Refusal::NAMES.len()]);
        Self { requests, refused, unknown: 0, resets: 0, events: 0, lost: 0 }
    }
}

impl Counters {
    /// Requests of an operation.
    #[must_use]
    pub fn requests(&self, op: Op) -> u64 {
        self.requests.get(op.index()).copied().unwrap_or(0)
    }

    /// Refusals for the reason at a place of [`Refusal::NAMES`].
    #[must_use]
    pub fn refused(&self) -> &[u64] {
        &self.refused
    }

    /// Refusals for a reason.
    #[must_use]
    pub fn refused_for(&self, refusal: Refusal) -> u64 {
        self.refused.get(refusal.index()).copied().unwrap_or(0)
    }

    /// Messages of operations that there are, with bodies that are none.
    pub(super) fn malformed(&self) -> u64 {
        self.refused.first().map_or(0, |refused| refused.saturating_sub(self.unknown))
    }

    /// Whether there is a counter of each kind, and none is about to overflow.
    pub(super) fn is_sound(&self) -> bool {
        let Self { requests, refused, unknown, resets, events, lost } = self;
        let each = requests.iter().chain(refused).chain([unknown, resets, events, lost]);
        (requests.len(), refused.len()) == (Op::ALL.len(), Refusal::NAMES.len())
            && each.into_iter().all(|count| *count < MOST_COUNTED)
    }

    pub(super) fn count_request(&mut self, number: u32) {
        match Op::of(number).and_then(|op| self.requests.get_mut(op.index())) {
            Some(count) => *count += 1,
            None => self.unknown += 1,
        }
    }

    pub(super) fn count_refusal(&mut self, refusal: Refusal) {
        if let Some(count) = self.refused.get_mut(refusal.index()) {
            *count += 1;
        }
    }
}
