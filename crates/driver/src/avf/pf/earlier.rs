//! Saved PF driver state of versions before VFs could share addresses; these had no withheld VLANs
//! either.

use super::decided::SavedPolicy;
use super::mail::MailState;
use super::{Counters, Stage};
use crate::conduct::Monitor;
use ::avf::virtchnl::{Capabilities, Version};
use alloc::vec::Vec;
use i82576::MacAddress;
use serde::Deserialize;

/// Value in states of earlier versions, where VFs could not share addresses.
#[derive(Debug, Clone, Copy, Deserialize)]
struct NotShared;

impl From<NotShared> for bool {
    fn from(_: NotShared) -> Self {
        false
    }
}

#[derive(Debug, Clone, Deserialize)]
struct VfState {
    policy: SavedPolicy<NotShared>,
    stage: Stage,
    version: Version,
    agreed: Capabilities,
    pairs: u16,
    mac: Option<MacAddress>,
    addresses: Vec<MacAddress>,
    vlans: Vec<u16>,
    rx: u16,
    tx: u16,
    strip: bool,
    insert: bool,
    counters: Counters,
}

impl From<VfState> for super::VfState {
    fn from(state: VfState) -> Self {
        Self {
            decided: state.policy.into(),
            stage: state.stage,
            version: state.version,
            agreed: state.agreed,
            pairs: state.pairs,
            mac: state.mac,
            addresses: state.addresses,
            vlans: state.vlans,
            withheld: Vec::new(),
            rx: state.rx,
            tx: state.tx,
            strip: state.strip,
            insert: state.insert,
            counters: state.counters,
            monitor: Monitor::default(),
        }
    }
}

/// State of a PF driver, as earlier versions wrote it.
#[derive(Debug, Clone, Deserialize)]
pub struct PfState {
    vfs: Vec<VfState>,
    mail: MailState,
    wire: Option<u32>,
}

impl From<PfState> for super::PfState {
    fn from(state: PfState) -> Self {
        let PfState { vfs, mail, wire } = state;
        Self { vfs: vfs.into_iter().map(super::VfState::from).collect(), mail, wire }
    }
}
