//! Prints the text of `link show`, space for space as iproute2 prints a PF and its VFs.

use super::ToolExit;
use super::json::link_state;
use super::options::IpOutputFormat;
use super::set::garbage;
use super::statistics::{self, LinkStatistics};
use super::words::{IpCommandWords, invalid, matches, number};
use daemon::config::file::CardFamily;
use daemon::control::status::{PortStatus, VfStatus};
use daemon::port::PF_RID;
use std::fmt::Write;

/// Ports that `link show` prints, with or without their VFs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct IpLinkSelection {
    port: Option<String>,
    /// True if a filter excludes all ports: `down`, or a kind, group or master that ports do not have.
    none: bool,
    no_vfs: bool,
}

impl IpLinkSelection {
    /// Parses the words after `link show`; `None` if help is requested. For filters, a port is an interface that is set
    /// up, of no kind, without a master, in the default group.
    pub(super) fn parse(words: &mut IpCommandWords<'_>) -> Result<Option<Self>, ToolExit> {
        let mut which = Self::default();
        while let Some(word) = words.next() {
            let port = match word {
                "up" | "nomaster" => continue,
                "down" => {
                    which.none = true;
                    continue;
                }
                "novf" => {
                    which.no_vfs = true;
                    continue;
                }
                "type" => {
                    words.value()?;
                    which.none = true;
                    continue;
                }
                "group" => {
                    which.none |= !is_default_group(words.value()?)?;
                    continue;
                }
                "master" => return Err(invalid(words.value()?, "Device does not exist\n")),
                "vrf" => return Err(invalid(words.value()?, "Not a valid VRF name\n")),
                "dev" => words.value()?,
                help if matches(help, "help") => return Ok(None),
                port => port,
            };
            if which.port.is_some() {
                return Err(garbage(port));
            }
            which.port = Some(port.to_owned());
        }
        Ok(Some(which))
    }

    /// Returns the links that `link show` prints, each with its index among all ports.
    pub(super) fn choose(&self, all: &[PortStatus]) -> Result<Vec<IpLink>, ToolExit> {
        let named = |port: &PortStatus| self.port.as_ref().is_none_or(|name| *name == port.name);
        let numbered = (0..).zip(all).filter(|(_, port)| named(port));
        let links: Vec<IpLink> =
            numbered.map(|(domain, port)| IpLink::new(domain, port, self.no_vfs)).collect();
        match &self.port {
            Some(name) if links.is_empty() => {
                Err(ToolExit::new(format!("Device \"{name}\" does not exist."), 1))
            }
            _ if self.none => Ok(Vec::new()),
            _ => Ok(links),
        }
    }
}

/// Returns true if a word names the default group, of which all ports are members, by name or number
/// (`rtnl_group_a2n`).
fn is_default_group(word: &str) -> Result<bool, ToolExit> {
    match word {
        "default" => Ok(true),
        _ => number(word).map(|group| group == 0).ok_or_else(|| invalid(word, "Invalid \"group\" value\n")),
    }
}

/// Port as the network interface that `ip link show` prints.
#[derive(Debug, Clone)]
pub(super) struct IpLink {
    pub(super) index: u32,
    pub(super) name: String,
    pub(super) address: String,
    pub(super) mtu: u32,
    pub(super) up: bool,
    /// PCI address of the PF. Each port is a PCI domain.
    pub(super) parent: Option<String>,
    pub(super) statistics: LinkStatistics,
    pub(super) vfs: Vec<VfStatus>,
}

pub(super) const BROADCAST: &str = "ff:ff:ff:ff:ff:ff";
/// Queueing discipline of a port, which queues no frames.
pub(super) const QDISC: &str = "noqueue";
pub(super) const PARENT_BUS: &str = "pci";
/// MTU in bytes that is shown for a port whose uplink reports none.
const MTU: u32 = 1500;

impl IpLink {
    fn new(domain: u32, port: &PortStatus, no_vfs: bool) -> Self {
        Self {
            index: domain + 1,
            name: port.name.clone(),
            address: port.mac.clone(),
            mtu: port.uplink_status.as_ref().and_then(|status| status.mtu).unwrap_or(MTU),
            up: port.link,
            parent: (port.family != CardFamily::Virtio).then(|| format!("{domain:04x}:{PF_RID}")),
            statistics: LinkStatistics::of(port.uplink_status.as_ref()),
            vfs: if no_vfs { Vec::new() } else { port.vfs.clone() },
        }
    }

    /// Returns the link's interface flags, as of an interface that is set up, with or without a carrier.
    pub(super) fn flags(&self) -> &'static [&'static str] {
        match self.up {
            true => &["BROADCAST", "MULTICAST", "UP", "LOWER_UP"],
            false => &["NO-CARRIER", "BROADCAST", "MULTICAST", "UP"],
        }
    }

    pub(super) fn state(&self) -> &'static str {
        if self.up { "UP" } else { "DOWN" }
    }
}

/// Returns the text of `link show` for these links.
pub(super) fn print(links: &[IpLink], format: IpOutputFormat) -> String {
    let end = if format.oneline { "\\" } else { "\n" };
    let mut text = String::new();
    for link in links {
        if format.brief {
            print_brief(&mut text, link);
        } else {
            print_link(&mut text, link, end, format);
        }
    }
    text
}

fn print_brief(text: &mut String, link: &IpLink) {
    let (flags, IpLink { name, address, .. }) = (link.flags().join(","), link);
    let _ = writeln!(text, "{name:<16} {:<14} {address} <{flags}> ", link.state());
}

fn print_link(text: &mut String, link: &IpLink, end: &str, format: IpOutputFormat) {
    let (flags, IpLink { index, name, address, mtu, .. }) = (link.flags().join(","), link);
    let _ = write!(
        text,
        "{index}: {name}: <{flags}> mtu {mtu} qdisc {QDISC} state {} mode DEFAULT group default {end}    \
         link/ether {address} brd {BROADCAST}",
        link.state()
    );
    if format.details {
        text.push_str(" promiscuity 0 allmulti 0 ");
        if let Some(parent) = &link.parent {
            let _ = write!(text, "parentbus {PARENT_BUS} parentdev {parent} ");
        }
    }
    if format.statistics > 0 {
        link.statistics.print(text, end, format);
    }
    for vf in &link.vfs {
        print_vf(text, vf, end, format);
    }
    text.push('\n');
}

fn print_vf(text: &mut String, vf: &VfStatus, end: &str, format: IpOutputFormat) {
    let set = &vf.settings;
    let on = |value: Option<bool>| if value == Some(true) { "on" } else { "off" };
    let _ = write!(text, "{end}    vf {}     link/ether {} brd {BROADCAST}", vf.index, vf.mac);
    for (name, value) in [("vlan", set.vlan.map(u32::from)), ("qos", set.qos.map(u32::from))] {
        if let Some(value) = value.filter(|value| *value > 0) {
            let _ = write!(text, ", {name} {value}");
        }
    }
    if let Some(rate) = set.max_tx_rate.filter(|rate| *rate > 0) {
        let _ = write!(text, ", tx rate {rate} (Mbps), max_tx_rate {rate}Mbps");
    }
    if let Some(rate) = set.min_tx_rate.filter(|rate| *rate > 0) {
        let _ = write!(text, ", min_tx_rate {rate}Mbps");
    }
    let _ = write!(
        text,
        ", spoof checking {}, link-state {}, trust {}",
        on(set.spoofchk),
        link_state(set.state),
        on(set.trust)
    );
    if format.statistics > 0 {
        statistics::print_vf(text, vf, end, format);
    }
}
