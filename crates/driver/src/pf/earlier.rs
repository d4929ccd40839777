//! Saved PF driver state of versions before VFs could share addresses; these had no withheld VLANs
//! either.

use super::moderate::Sampler;
use super::switch::{Filters, Groups, Vlans};
use super::{Counters, Pf, SavedPortPolicy};
use crate::conduct::Monitor;
use alloc::vec::Vec;
use i82576::ids::MAX_VFS;
use i82576::mailbox::MAX_MULTICAST;
use i82576::{MacAddress, Time};
use policy::{InterruptBounds, Link, PortVlan, VlanSet};
use serde::Deserialize;

/// Policy of a VF, as earlier versions wrote it.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct VfPolicy {
    mac: Option<MacAddress>,
    admin_mac: bool,
    vlan: Option<PortVlan>,
    vlans: Option<VlanSet>,
    spoofchk: bool,
    trust: bool,
    enabled: bool,
    state: Link,
    allmulti: bool,
    max_mtu: Option<u16>,
    rss: bool,
    interrupts: InterruptBounds,
    max_tx_rate: u32,
}

impl From<VfPolicy> for ::policy::VfPolicy {
    fn from(policy: VfPolicy) -> Self {
        Self {
            mac: policy.mac,
            admin_mac: policy.admin_mac,
            vlan: policy.vlan,
            vlans: policy.vlans,
            spoofchk: policy.spoofchk,
            trust: policy.trust,
            enabled: policy.enabled,
            state: policy.state,
            allmulti: policy.allmulti,
            max_mtu: policy.max_mtu,
            rss: policy.rss,
            interrupts: policy.interrupts,
            max_tx_rate: policy.max_tx_rate,
            share_mac: false,
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
struct VfState {
    policy: VfPolicy,
    mac: Option<MacAddress>,
    clear_to_send: bool,
    last_nack: Option<Time>,
    hashes: [u16; MAX_MULTICAST],
    groups: usize,
    overflow: bool,
    all_multicast: bool,
    asked_length: Option<u32>,
    notice: Option<Time>,
    reply_until: Option<Time>,
    locked: u8,
    counters: Counters,
    monitor: Monitor,
    sampler: Sampler,
}

impl From<VfState> for super::VfState {
    fn from(state: VfState) -> Self {
        Self {
            policy: state.policy.into(),
            mac: state.mac,
            clear_to_send: state.clear_to_send,
            last_nack: state.last_nack,
            hashes: state.hashes,
            groups: state.groups,
            overflow: state.overflow,
            all_multicast: state.all_multicast,
            asked_length: state.asked_length,
            notice: state.notice,
            reply_until: state.reply_until,
            locked: state.locked,
            counters: state.counters,
            monitor: state.monitor,
            sampler: state.sampler,
            withheld: Vec::new(),
        }
    }
}

/// State of a PF driver, as earlier versions wrote it.
#[derive(Debug, Clone, Deserialize)]
pub struct PfState {
    mac: MacAddress,
    enabled: u8,
    vfs: [VfState; MAX_VFS],
    port_policy: SavedPortPolicy,
    storms: u64,
    filters: Filters,
    vlans: Vlans,
    groups: Groups,
    port_up: bool,
    removed: bool,
    wire_up: bool,
    turn: u8,
}

impl From<PfState> for super::PfState {
    fn from(state: PfState) -> Self {
        Self(Pf {
            mac: state.mac,
            enabled: state.enabled,
            vfs: state.vfs.map(super::VfState::from),
            port_policy: state.port_policy,
            storms: state.storms,
            filters: state.filters,
            vlans: state.vlans,
            groups: state.groups,
            port_up: state.port_up,
            removed: state.removed,
            wire_up: state.wire_up,
            turn: state.turn,
        })
    }
}
