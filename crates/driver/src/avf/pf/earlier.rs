//! The state of a PF driver as versions wrote it before VFs could share addresses: there were no withheld VLANs either.
//! Left out: everything that is as today.

use super::mail::MailState;
use super::{Counters, Stage};
use crate::conduct::Monitor;
use crate::pf::{Link, PortVlan, VlanSet};
use ::avf::virtchnl::{Capabilities, Version};
use alloc::vec::Vec;
use i82576::MacAddress;
use serde::Deserialize;

#[derive(Debug, Clone, Copy, Deserialize)]
struct VfPolicy {
    mac: Option<MacAddress>,
    admin_mac: bool,
    vlan: Option<PortVlan>,
    vlans: Option<VlanSet>,
    spoofchk: bool,
    trust: bool,
    allmulti: bool,
    enabled: bool,
    state: Link,
    max_frame: u16,
    pairs: u16,
    most_pairs: u16,
    max_tx_rate: u32,
}

impl From<VfPolicy> for super::VfPolicy {
    fn from(policy: VfPolicy) -> Self {
        Self {
            mac: policy.mac,
            admin_mac: policy.admin_mac,
            vlan: policy.vlan,
            vlans: policy.vlans,
            spoofchk: policy.spoofchk,
            trust: policy.trust,
            allmulti: policy.allmulti,
            enabled: policy.enabled,
            state: policy.state,
            max_frame: policy.max_frame,
            pairs: policy.pairs,
            most_pairs: policy.most_pairs,
            max_tx_rate: policy.max_tx_rate,
            share_mac: false,
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
struct VfState {
    policy: VfPolicy,
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
            policy: state.policy.into(),
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

/// The state of a PF driver.
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
