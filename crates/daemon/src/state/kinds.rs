//! Kinds of saved states with their versions, and the types that decode the bodies of earlier versions.

use super::addresses::HeldAddresses;
use super::avf::AvfPortState;
use super::card::CardState;
use super::envelope::{SavedState, SavedStateError, decode};
use super::mixed::MixedPortState;
use super::port::{I82576PortState, PortSoftwareState};
use super::vhost::{VhostClientState, VhostClientStateV1};
use super::virtio::VirtioPortState;
use super::{avf_v5, v3};
use crate::totals::PortCounterTotals;
use iovm::VirtualFunctionState;
use plane::guard::SavedStations;

impl SavedState for PortCounterTotals {
    const KIND: [u8; 4] = *b"cnts";
    const VERSION: u32 = 1;
}

impl SavedState for HeldAddresses {
    const KIND: [u8; 4] = *b"adrs";
    const VERSION: u32 = 1;
}

impl SavedState for SavedStations {
    const KIND: [u8; 4] = *b"stns";
    const VERSION: u32 = 1;
}

impl SavedState for CardState {
    const KIND: [u8; 4] = *b"card";
    const VERSION: u32 = 4;

    fn from_earlier(version: u32, body: &[u8]) -> Result<Self, SavedStateError> {
        match version {
            1 => decode::<v3::CardStateV1>(body).map(Self::from),
            2 => decode::<v3::CardStateV2>(body).map(Self::from),
            3 => decode::<v3::CardStateV3>(body).map(Self::from),
            found => Err(SavedStateError::Version { found, newest: Self::VERSION }),
        }
    }
}

impl SavedState for I82576PortState {
    const KIND: [u8; 4] = *b"port";
    const VERSION: u32 = 4;

    fn from_earlier(version: u32, body: &[u8]) -> Result<Self, SavedStateError> {
        match version {
            1 => decode::<v3::PortStateV1>(body).map(Self::from),
            2 => decode::<v3::PortStateV2>(body).map(Self::from),
            3 => decode::<v3::PortStateV3>(body).map(Self::from),
            found => Err(SavedStateError::Version { found, newest: Self::VERSION }),
        }
    }
}

/// Saved configuration of one VF of an 82576 or an AVF port. Its guest has changed the configuration since the driver
/// state was saved.
impl SavedState for VirtualFunctionState {
    const KIND: [u8; 4] = *b"func";
    const VERSION: u32 = 1;
}

impl SavedState for PortSoftwareState {
    const KIND: [u8; 4] = *b"soft";
    const VERSION: u32 = 2;

    fn from_earlier(version: u32, body: &[u8]) -> Result<Self, SavedStateError> {
        match version {
            1 => decode::<v3::OldPortSoftwareState>(body).map(Self::from),
            found => Err(SavedStateError::Version { found, newest: Self::VERSION }),
        }
    }
}

impl SavedState for AvfPortState {
    const KIND: [u8; 4] = *b"avfs";
    const VERSION: u32 = 6;

    fn from_earlier(version: u32, body: &[u8]) -> Result<Self, SavedStateError> {
        match version {
            1 => decode::<avf_v5::AvfPortStateV1>(body).map(Self::from),
            2 => decode::<avf_v5::AvfPortStateV2>(body).map(Self::from),
            3 => decode::<avf_v5::AvfPortStateV3>(body).map(Self::from),
            4 => decode::<avf_v5::AvfPortStateV4>(body).map(Self::from),
            5 => decode::<avf_v5::AvfPortStateV5>(body).map(Self::from),
            found => Err(SavedStateError::Version { found, newest: Self::VERSION }),
        }
    }
}

impl SavedState for VirtioPortState {
    const KIND: [u8; 4] = *b"vios";
    const VERSION: u32 = 1;
}

impl SavedState for MixedPortState {
    const KIND: [u8; 4] = *b"mixd";
    const VERSION: u32 = 1;
}

impl SavedState for VhostClientState {
    const KIND: [u8; 4] = *b"vhst";
    const VERSION: u32 = 2;

    fn from_earlier(version: u32, body: &[u8]) -> Result<Self, SavedStateError> {
        match version {
            1 => decode::<VhostClientStateV1>(body).map(Self::from),
            found => Err(SavedStateError::Version { found, newest: Self::VERSION }),
        }
    }
}
