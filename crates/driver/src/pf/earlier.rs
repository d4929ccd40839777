//! Decodes PF driver state of versions in which VFs could not share addresses, and denied VLANs were not
//! remembered.

use super::moderate::VfPacketRateSampler;
use super::switch::{MulticastTable, ReceiveAddressTable, VlanFilterTable};
use super::{MailboxCounters, Pf, SavedPortPolicy};
use crate::conduct::VfConductMonitor;
use alloc::vec::Vec;
use i82576::ids::MAX_VFS;
use i82576::mailbox::MAX_MULTICAST;
use i82576::{MacAddress, Time};
use policy::{InterruptBounds, PortVlan, VfLinkPolicy, VlanSet};
use serde::Deserialize;

/// Policy of a VF in saved states of earlier versions.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct EarlierVfPolicy {
    mac: Option<MacAddress>,
    admin_mac: bool,
    vlan: Option<PortVlan>,
    vlans: Option<VlanSet>,
    spoofchk: bool,
    trust: bool,
    enabled: bool,
    state: VfLinkPolicy,
    allmulti: bool,
    max_mtu: Option<u16>,
    rss: bool,
    interrupts: InterruptBounds,
    max_tx_rate: u32,
}

impl From<EarlierVfPolicy> for ::policy::VfPolicy {
    fn from(policy: EarlierVfPolicy) -> Self {
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
            guards: ::policy::FrameGuards::default(),
            quotas: ::policy::FilterQuotas::default(),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
struct EarlierVfState {
    policy: EarlierVfPolicy,
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
    counters: MailboxCounters,
    monitor: VfConductMonitor,
    sampler: VfPacketRateSampler,
}

impl From<EarlierVfState> for super::VfState {
    fn from(state: EarlierVfState) -> Self {
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
pub struct EarlierPfState {
    mac: MacAddress,
    enabled: u8,
    vfs: [EarlierVfState; MAX_VFS],
    port_policy: SavedPortPolicy,
    storms: u64,
    filters: ReceiveAddressTable,
    vlans: VlanFilterTable,
    groups: MulticastTable,
    port_up: bool,
    removed: bool,
    wire_up: bool,
    turn: u8,
}

impl From<EarlierPfState> for super::PfState {
    fn from(state: EarlierPfState) -> Self {
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
            held: 0,
        })
    }
}
