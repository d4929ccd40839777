//! Decodes PF driver state of versions in which VFs could not share addresses, and denied VLANs were not
//! remembered.

use super::decided::SavedAvfVfPolicy;
use super::mail::AdminQueuesState;
use super::{VfDriverStage, VirtchnlCounters};
use crate::conduct::VfConductMonitor;
use ::avf::virtchnl::{VfCapabilities, VirtchnlVersion};
use alloc::vec::Vec;
use i82576::MacAddress;
use serde::Deserialize;
use units::VlanIds;

/// Stands for the setting `share_mac` in saved states of earlier versions, which lack it: false.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename = "NoAddressSharing")]
struct MissingShareMacField;

impl From<MissingShareMacField> for bool {
    fn from(_: MissingShareMacField) -> Self {
        false
    }
}

#[derive(Debug, Clone, Deserialize)]
struct EarlierAvfVfState {
    policy: SavedAvfVfPolicy<MissingShareMacField>,
    stage: VfDriverStage,
    version: VirtchnlVersion,
    agreed: VfCapabilities,
    pairs: u16,
    mac: Option<MacAddress>,
    addresses: Vec<MacAddress>,
    vlans: VlanIds,
    rx: u16,
    tx: u16,
    strip: bool,
    insert: bool,
    counters: VirtchnlCounters,
}

impl From<EarlierAvfVfState> for super::AvfVfState {
    fn from(state: EarlierAvfVfState) -> Self {
        Self {
            decided: state.policy.into(),
            stage: state.stage,
            version: state.version,
            agreed: state.agreed,
            pairs: state.pairs,
            mac: state.mac,
            addresses: state.addresses,
            vlans: state.vlans,
            withheld: VlanIds::new(),
            rx: state.rx,
            tx: state.tx,
            strip: state.strip,
            insert: state.insert,
            counters: state.counters,
            reserved: None,
            monitor: VfConductMonitor::default(),
        }
    }
}

/// State of a PF driver, as earlier versions wrote it.
#[derive(Debug, Clone, Deserialize)]
pub struct EarlierAvfPfState {
    vfs: Vec<EarlierAvfVfState>,
    mail: AdminQueuesState,
    wire: Option<u32>,
}

impl From<EarlierAvfPfState> for super::AvfPfState {
    fn from(state: EarlierAvfPfState) -> Self {
        let EarlierAvfPfState { vfs, mail, wire } = state;
        Self { vfs: vfs.into_iter().map(super::AvfVfState::from).collect(), mail, wire }
    }
}
