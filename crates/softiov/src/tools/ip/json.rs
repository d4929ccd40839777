//! `-j link show`: the keys of iproute2 in their order, for parsers that know it.

use super::Form;
use super::show::{BROADCAST, Link, QDISC};
use daemon::control::status::{Traffic, VfStatus};
use daemon::settings::LinkState;
use serde::Serialize;

/// A port as an interface.
#[derive(Debug, Serialize)]
struct Interface<'a> {
    ifindex: u32,
    ifname: &'a str,
    flags: &'static [&'static str],
    mtu: u32,
    qdisc: &'static str,
    operstate: &'static str,
    linkmode: &'static str,
    group: &'static str,
    link_type: &'static str,
    address: &'a str,
    broadcast: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    vfinfo_list: Vec<Vf<'a>>,
}

#[derive(Debug, Serialize)]
struct Vf<'a> {
    vf: u8,
    link_type: &'static str,
    address: &'a str,
    broadcast: &'static str,
    vlan_list: [Vlan; 1],
    #[serde(skip_serializing_if = "is_zero")]
    tx_rate: u32,
    rate: Rate,
    spoofchk: bool,
    link_state: &'static str,
    trust: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Statistics>,
}

/// Empty without a port VLAN.
#[derive(Debug, Serialize)]
struct Vlan {
    #[serde(skip_serializing_if = "is_zero")]
    vlan: u16,
    #[serde(skip_serializing_if = "is_zero")]
    qos: u8,
}

#[derive(Debug, Serialize)]
struct Rate {
    max_tx: u32,
    min_tx: u32,
}

#[derive(Debug, Serialize)]
struct Statistics {
    rx: Received,
    tx: Sent,
}

#[derive(Debug, Serialize)]
struct Received {
    bytes: u64,
    packets: u64,
    multicast: u64,
    broadcast: u64,
    dropped: u64,
}

/// Two of its keys repeat the direction, in iproute2 too.
#[derive(Debug, Serialize)]
struct Sent {
    tx_bytes: u64,
    tx_packets: u64,
    dropped: u64,
}

fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Prints links as an array on one line, or on many.
pub(super) fn print(links: &[Link], form: Form) -> anyhow::Result<String> {
    let interfaces: Vec<_> = links.iter().map(|link| interface(link, form)).collect();
    let text = match form.pretty {
        true => serde_json::to_string_pretty(&interfaces),
        false => serde_json::to_string(&interfaces),
    };
    Ok(text? + "\n")
}

fn interface(link: &Link, form: Form) -> Interface<'_> {
    Interface {
        ifindex: link.index,
        ifname: &link.name,
        flags: link.flags(),
        mtu: link.mtu,
        qdisc: QDISC,
        operstate: link.state(),
        linkmode: "DEFAULT",
        group: "default",
        link_type: "ether",
        address: &link.address,
        broadcast: BROADCAST,
        vfinfo_list: link.vfs.iter().map(|vf| vf_info(vf, form)).collect(),
    }
}

fn vf_info(vf: &VfStatus, form: Form) -> Vf<'_> {
    let set = &vf.settings;
    let most = set.max_tx_rate.unwrap_or(0);
    Vf {
        vf: vf.index,
        link_type: "ether",
        address: &vf.mac,
        broadcast: BROADCAST,
        vlan_list: [Vlan { vlan: set.vlan.unwrap_or(0), qos: set.qos.unwrap_or(0) }],
        tx_rate: most,
        rate: Rate { max_tx: most, min_tx: set.min_tx_rate.unwrap_or(0) },
        spoofchk: set.spoofchk == Some(true),
        link_state: link_state(set.state),
        trust: set.trust == Some(true),
        stats: form.statistics.then(|| statistics(vf.rx, vf.tx)),
    }
}

fn statistics(rx: Traffic, tx: Traffic) -> Statistics {
    let Traffic { packets, bytes, multicast, broadcast, dropped } = rx;
    Statistics {
        rx: Received { bytes, packets, multicast, broadcast, dropped },
        tx: Sent { tx_bytes: tx.bytes, tx_packets: tx.packets, dropped: tx.dropped },
    }
}

/// A VF's link in iproute2's words.
pub(super) fn link_state(state: Option<LinkState>) -> &'static str {
    match state {
        None | Some(LinkState::Auto) => "auto",
        Some(LinkState::Enable) => "enable",
        Some(LinkState::Disable) => "disable",
    }
}
