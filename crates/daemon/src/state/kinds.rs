//! Kinds of states with their versions, and the types that decode the bodies of earlier versions.

use super::avf::AvfState;
use super::card::CardState;
use super::envelope::{Saved, StateError, decode};
use super::port::{PortState, SoftwareState};
use super::{avf_v5, v2};
use crate::totals::Totals;
use iovm::FunctionState;

impl Saved for Totals {
    const KIND: [u8; 4] = *b"cnts";
    const VERSION: u32 = 1;
}

impl Saved for CardState {
    const KIND: [u8; 4] = *b"card";
    const VERSION: u32 = 3;

    fn from_earlier(version: u32, body: &[u8]) -> Result<Self, StateError> {
        match version {
            1 => decode::<v2::Card<nic::Basis>>(body).map(Self::from),
            2 => decode::<v2::Card<nic::State>>(body).map(Self::from),
            found => Err(StateError::Version { found, newest: Self::VERSION }),
        }
    }
}

impl Saved for PortState {
    const KIND: [u8; 4] = *b"port";
    const VERSION: u32 = 3;

    fn from_earlier(version: u32, body: &[u8]) -> Result<Self, StateError> {
        match version {
            1 => decode::<v2::Port<nic::Basis>>(body).map(Self::from),
            2 => decode::<v2::Port<nic::State>>(body).map(Self::from),
            found => Err(StateError::Version { found, newest: Self::VERSION }),
        }
    }
}

/// Configuration of one VF, of either family, that its guest has changed since the software was saved.
impl Saved for FunctionState {
    const KIND: [u8; 4] = *b"func";
    const VERSION: u32 = 1;
}

impl Saved for SoftwareState {
    const KIND: [u8; 4] = *b"soft";
    const VERSION: u32 = 2;

    fn from_earlier(version: u32, body: &[u8]) -> Result<Self, StateError> {
        match version {
            1 => decode::<v2::Software>(body).map(Self::from),
            found => Err(StateError::Version { found, newest: Self::VERSION }),
        }
    }
}

impl Saved for AvfState {
    const KIND: [u8; 4] = *b"avfs";
    const VERSION: u32 = 6;

    fn from_earlier(version: u32, body: &[u8]) -> Result<Self, StateError> {
        match version {
            1 => decode::<avf_v5::V1>(body).map(Self::from),
            2 => decode::<avf_v5::V2>(body).map(Self::from),
            3 => decode::<avf_v5::V3>(body).map(Self::from),
            4 => decode::<avf_v5::V4>(body).map(Self::from),
            5 => decode::<avf_v5::V5>(body).map(Self::from),
            found => Err(StateError::Version { found, newest: Self::VERSION }),
        }
    }
}
