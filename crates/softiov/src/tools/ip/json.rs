//! Prints the JSON of `-j link show`, with iproute2's keys in iproute2's order.

use super::options::IpOutputFormat;
use super::show::{BROADCAST, IpLink, PARENT_BUS, QDISC};
use super::statistics::{LinkStatisticsJson, VfStatisticsJson};
use daemon::control::status::VfStatus;
use daemon::settings::LinkState;
use serde::Serialize;

/// Port in the JSON of `ip link show`.
#[derive(Debug, Serialize)]
struct IpLinkJson<'a> {
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
    #[serde(flatten)]
    details: Option<LinkDetailsJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats64: Option<LinkStatisticsJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    vfinfo_list: Vec<IpVfJson<'a>>,
}

/// JSON fields of a link that `-d` adds.
#[derive(Debug, Serialize)]
struct LinkDetailsJson<'a> {
    promiscuity: u32,
    allmulti: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    parentbus: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parentdev: Option<&'a str>,
}

/// JSON fields of a link in brief format (`-br`).
#[derive(Debug, Serialize)]
struct BriefLinkJson<'a> {
    ifname: &'a str,
    operstate: &'static str,
    address: &'a str,
    flags: &'static [&'static str],
}

#[derive(Debug, Serialize)]
struct IpVfJson<'a> {
    vf: u8,
    link_type: &'static str,
    address: &'a str,
    broadcast: &'static str,
    vlan_list: [VfVlanJson; 1],
    #[serde(skip_serializing_if = "is_zero")]
    tx_rate: u32,
    rate: VfRateJson,
    spoofchk: bool,
    link_state: &'static str,
    trust: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<VfStatisticsJson>,
}

/// Port VLAN of a VF; an empty object if it has none.
#[derive(Debug, Serialize)]
struct VfVlanJson {
    #[serde(skip_serializing_if = "is_zero")]
    vlan: u16,
    #[serde(skip_serializing_if = "is_zero")]
    qos: u8,
}

#[derive(Debug, Serialize)]
struct VfRateJson {
    max_tx: u32,
    min_tx: u32,
}

fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Returns links as iproute2's JSON array, on one line or indented.
pub(super) fn print(links: &[IpLink], format: IpOutputFormat) -> anyhow::Result<String> {
    if format.brief {
        return array(links.iter().map(brief).collect::<Vec<_>>(), format);
    }
    array(links.iter().map(|link| interface(link, format)).collect::<Vec<_>>(), format)
}

fn array(links: impl Serialize, format: IpOutputFormat) -> anyhow::Result<String> {
    let text = match format.pretty {
        true => serde_json::to_string_pretty(&links),
        false => serde_json::to_string(&links),
    };
    Ok(text? + "\n")
}

fn brief(link: &IpLink) -> BriefLinkJson<'_> {
    BriefLinkJson { ifname: &link.name, operstate: link.state(), address: &link.address, flags: link.flags() }
}

fn interface(link: &IpLink, format: IpOutputFormat) -> IpLinkJson<'_> {
    IpLinkJson {
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
        details: format.details.then(|| LinkDetailsJson {
            promiscuity: 0,
            allmulti: 0,
            parentbus: link.parent.as_ref().map(|_| PARENT_BUS),
            parentdev: link.parent.as_deref(),
        }),
        stats64: (format.statistics > 0).then(|| LinkStatisticsJson::of(&link.statistics, format)),
        vfinfo_list: link.vfs.iter().map(|vf| vf_info(vf, format)).collect(),
    }
}

fn vf_info(vf: &VfStatus, format: IpOutputFormat) -> IpVfJson<'_> {
    let set = &vf.settings;
    let most = set.max_tx_rate.unwrap_or(0);
    IpVfJson {
        vf: vf.index,
        link_type: "ether",
        address: &vf.mac,
        broadcast: BROADCAST,
        vlan_list: [VfVlanJson { vlan: set.vlan.unwrap_or(0), qos: set.qos.unwrap_or(0) }],
        tx_rate: most,
        rate: VfRateJson { max_tx: most, min_tx: set.min_tx_rate.unwrap_or(0) },
        spoofchk: set.spoofchk == Some(true),
        link_state: link_state(set.state),
        trust: set.trust == Some(true),
        stats: (format.statistics > 0).then(|| VfStatisticsJson::of(vf.rx, vf.tx)),
    }
}

/// Returns a VF's link state in iproute2's words.
pub(super) fn link_state(state: Option<LinkState>) -> &'static str {
    match state {
        None | Some(LinkState::Auto) => "auto",
        Some(LinkState::Enable) => "enable",
        Some(LinkState::Disable) => "disable",
    }
}
