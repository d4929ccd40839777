//! `link show` as text: what iproute2 prints of a PF and its VFs, space by space.

use super::json::link_state;
use super::words::Words;
use super::{Form, Said};
use daemon::control::status::{PortStatus, VfStatus};
use std::fmt::Write;

/// Which ports are to be shown, and whether with their VFs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Which {
    port: Option<String>,
    up: bool,
    no_vfs: bool,
}

impl Which {
    /// Reads what follows `show`.
    pub(super) fn parse(words: &mut Words<'_>) -> Result<Self, Said> {
        let mut which = Self::default();
        while let Some(word) = words.next() {
            let port = match word {
                "up" => {
                    which.up = true;
                    continue;
                }
                "novf" => {
                    which.no_vfs = true;
                    continue;
                }
                "dev" => words.value()?,
                port => port,
            };
            if which.port.is_some() {
                let text = format!("Error: either \"dev\" is duplicate, or \"{port}\" is garbage.");
                return Err(Said::new(text, 255));
            }
            which.port = Some(port.to_owned());
        }
        Ok(which)
    }

    /// The ports that are meant, each with its number among all.
    pub(super) fn choose(&self, all: &[PortStatus]) -> Result<Vec<Link>, Said> {
        let named = |port: &PortStatus| self.port.as_ref().is_none_or(|name| *name == port.name);
        let numbered = (1..).zip(all).filter(|(_, port)| named(port));
        let links: Vec<Link> = numbered.map(|(index, port)| Link::new(index, port, self.no_vfs)).collect();
        match &self.port {
            Some(name) if links.is_empty() => Err(Said::new(format!("Device \"{name}\" does not exist."), 1)),
            _ => Ok(links.into_iter().filter(|link| !self.up || link.up).collect()),
        }
    }
}

/// A port as an interface.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) index: u32,
    pub(super) name: String,
    pub(super) address: String,
    pub(super) mtu: u32,
    pub(super) up: bool,
    pub(super) vfs: Vec<VfStatus>,
}

pub(super) const BROADCAST: &str = "ff:ff:ff:ff:ff:ff";
/// Where frames go that leave a port: nothing queues them.
pub(super) const QDISC: &str = "noqueue";
/// The MTU of a port whose uplink says none.
const MTU: u32 = 1500;

impl Link {
    fn new(index: u32, port: &PortStatus, no_vfs: bool) -> Self {
        Self {
            index,
            name: port.name.clone(),
            address: port.mac.clone(),
            mtu: port.uplink_status.as_ref().and_then(|status| status.mtu).unwrap_or(MTU),
            up: port.link,
            vfs: if no_vfs { Vec::new() } else { port.vfs.clone() },
        }
    }

    /// The flags of an interface that its administrator has set up.
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

/// Prints links, with the end of a line that the form wants.
pub(super) fn print(links: &[Link], form: Form) -> String {
    let end = if form.oneline { "\\" } else { "\n" };
    let mut text = String::new();
    for link in links {
        let (flags, Link { index, name, address, mtu, .. }) = (link.flags().join(","), link);
        let _ = write!(
            text,
            "{index}: {name}: <{flags}> mtu {mtu} qdisc {QDISC} state {} mode DEFAULT group default {end}    \
             link/ether {address} brd {BROADCAST}",
            link.state()
        );
        for vf in &link.vfs {
            print_vf(&mut text, vf, end, form.statistics);
        }
        text.push('\n');
    }
    text
}

fn print_vf(text: &mut String, vf: &VfStatus, end: &str, statistics: bool) {
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
    if statistics {
        let (rx, tx) = (vf.rx, vf.tx);
        let _ = write!(
            text,
            "{end}    RX: bytes  packets  mcast   bcast   dropped {end}    {:<10} {:<8} {:<7} {:<7} {:<8} \
             {end}    TX: bytes  packets   dropped {end}    {:<10} {:<8} {:<8} ",
            rx.bytes, rx.packets, rx.multicast, rx.broadcast, rx.dropped, tx.bytes, tx.packets, tx.dropped
        );
    }
}
