//! The PF's counters for each VF: requests by operation, and refusals by reason. The card counts traffic.

use ::avf::virtchnl::{MalformedRequest, VirtchnlOpcode, VirtchnlStatus};
use alloc::vec;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Reason why a VF's request was refused, or granted without effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VirtchnlRefusal {
    /// The request's body is malformed.
    #[error(transparent)]
    Malformed(#[from] MalformedRequest),
    /// The VF must request its resources first; only version, resources and reset are served before.
    #[error("the VF has not requested its resources (GET_VF_RESOURCES)")]
    NotReady,
    /// The request needs a capability that was not negotiated.
    #[error("the request needs a capability that the VF did not negotiate")]
    NotAgreed,
    /// The request names another VF's VSI.
    #[error("the request names the switch port (VSI) of another VF")]
    NotItsVsi,
    /// The request names no queue, or one that the VF does not have.
    #[error("the request names a queue that the VF does not have")]
    NoSuchQueue,
    /// The requested ring's base, length, buffer size or descriptor format is invalid.
    #[error("the request gives a ring an invalid base, length, buffer size or descriptor format")]
    Ring,
    /// The VF does not have the interrupt vector that the request names.
    #[error("the request names an interrupt vector that the VF does not have")]
    NoSuchVector,
    /// The administrator has set the VF's address, so the VF may not use another.
    #[error("the administrator set the VF's MAC address, so the guest cannot change it")]
    AddressFixed,
    /// The VF requests an address that is zero or broadcast.
    #[error("invalid receive address: zero or broadcast")]
    AddressInvalid,
    /// Another VF has the requested address, and the two VFs may not share it. Or the switch withholds it: a VF that resets, a
    /// station beyond the uplink or the host has it.
    #[error(
        "the requested MAC address is in use by another VF, by a station at the uplink or by the host; allow it with share_mac \
         (for both, if another VF has it), or with trust"
    )]
    AddressInUse,
    /// The VF's quota of addresses is used up.
    #[error(
        "the VF has reached its address quota; raise max_mac_filters of the VF, then reset the guest's \
         interface"
    )]
    TooManyAddresses,
    /// The administrator has put the VF on one VLAN, so it may not join others.
    #[error("the administrator set the VF's port VLAN, so the guest cannot join another VLAN")]
    VlanFixed,
    /// The VLAN id is out of range, or the tag type was not offered.
    #[error("the requested VLAN is out of range (0-4095), or its tag type is unsupported")]
    VlanInvalid,
    /// The VLAN is not in the administrator's list: the reply grants the request, but the VF does not become a member.
    #[error("the requested VLAN is not among the VF's allowed VLANs")]
    VlanNotAllowed,
    /// The VF's quota of VLANs is used up: granted in the reply, and ignored.
    #[error(
        "the VF has reached its VLAN quota; raise max_vlan_filters of the VF, then reset the guest's \
         interface"
    )]
    TooManyVlans,
    /// The VF may not be promiscuous: granted in the reply, and ignored.
    #[error("the VF's policy does not allow promiscuous mode")]
    Promiscuity,
    /// The VF is disabled or quarantined.
    #[error("the VF is disabled or quarantined")]
    Disabled,
    /// The RSS key, lookup table or hash function is unsupported.
    #[error("the requested RSS key, lookup table or hash function is unsupported")]
    Hash,
    /// The VF requests no queue pair, or more than it may have.
    #[error("the requested number of queue pairs exceeds the VF's limit")]
    TooManyQueues,
}

impl VirtchnlRefusal {
    /// Names of the refusal reasons, in the order of [`VirtchnlCounters::refused`].
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

    /// Returns the name that tables give to the reason of a refusal.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// Returns the status of the reply to a refused request.
    #[must_use]
    pub fn status(self) -> VirtchnlStatus {
        match self {
            Self::Malformed(malformed) => malformed.status(),
            Self::NotAgreed => VirtchnlStatus::NotSupported,
            _ => VirtchnlStatus::Param,
        }
    }
}

/// Maximum of a restored counter, low enough to count for centuries and to add up all counters of a VF.
const MOST_COUNTED: u64 = 1 << 56;

/// The PF driver's counters of one VF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "Counters")]
pub struct VirtchnlCounters {
    requests: Vec<u64>,
    refused: Vec<u64>,
    /// Number of requests with unknown operations.
    pub unknown: u64,
    /// Number of the VF's resets, of any origin.
    pub resets: u64,
    /// Number of events sent to the VF: link changes and resets.
    pub events: u64,
    /// Number of messages dropped because the VF's queue was full.
    pub lost: u64,
}

impl Default for VirtchnlCounters {
    fn default() -> Self {
        let (requests, refused) = (vec![0; VirtchnlOpcode::ALL.len()], vec![0; VirtchnlRefusal::NAMES.len()]);
        Self { requests, refused, unknown: 0, resets: 0, events: 0, lost: 0 }
    }
}

impl VirtchnlCounters {
    /// Returns the number of requests of one virtchnl operation from the VF.
    #[must_use]
    pub fn requests(&self, op: VirtchnlOpcode) -> u64 {
        self.requests.get(op.index()).copied().unwrap_or(0)
    }

    /// Returns the number of refusals by reason, in the order of [`VirtchnlRefusal::NAMES`].
    #[must_use]
    pub fn refused(&self) -> &[u64] {
        &self.refused
    }

    /// Returns the number of the VF's requests that were refused for one reason.
    #[must_use]
    pub fn refused_for(&self, refusal: VirtchnlRefusal) -> u64 {
        self.refused.get(refusal.index()).copied().unwrap_or(0)
    }

    /// Returns the number of messages of known operations with malformed bodies.
    pub(super) fn malformed(&self) -> u64 {
        self.refused.first().map_or(0, |refused| refused.saturating_sub(self.unknown))
    }

    /// Returns true if the saved state has a counter of each kind, and no counter is about to overflow.
    pub(super) fn is_sound(&self) -> bool {
        let Self { requests, refused, unknown, resets, events, lost } = self;
        let each = requests.iter().chain(refused).chain([unknown, resets, events, lost]);
        (requests.len(), refused.len()) == (VirtchnlOpcode::ALL.len(), VirtchnlRefusal::NAMES.len())
            && each.into_iter().all(|count| *count < MOST_COUNTED)
    }

    pub(super) fn count_request(&mut self, number: u32) {
        match VirtchnlOpcode::of(number).and_then(|op| self.requests.get_mut(op.index())) {
            Some(count) => *count += 1,
            None => self.unknown += 1,
        }
    }

    pub(super) fn count_refusal(&mut self, refusal: VirtchnlRefusal) {
        if let Some(count) = self.refused.get_mut(refusal.index()) {
            *count += 1;
        }
    }
}
