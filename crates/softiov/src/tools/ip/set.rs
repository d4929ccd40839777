//! `link set [dev] PORT vf N ATTRIBUTES`: one change of one VF, made wholly or not at all. Errors are those that a kernel
//! driver would give, and a line that says why.

use super::Said;
use super::attributes::Attributes;
use super::words::Words;
use daemon::control::client::{self, ClientError};
use daemon::control::protocol::{Change as Setting, Request};
use daemon::control::status::VfStatus;
use daemon::settings::VfSettings;
use std::path::Path;

/// What is to be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    port: String,
    vf: u32,
    attributes: Attributes,
}

#[cfg(test)]
impl Change {
    /// What it sets.
    pub(super) fn settings(&self) -> &VfSettings {
        &self.attributes.settings
    }
}

/// What `ip` says of an error of the kernel, and its exit code then.
fn answers(errno: &str) -> Said {
    Said::new(format!("RTNETLINK answers: {errno}"), 2)
}

/// What no port can do.
pub(super) fn not_supported(why: &str) -> Said {
    answers("Operation not supported").because(why)
}

/// Words after a device that change it itself. A port has nothing of the kind: its link is its uplink's.
const OF_THE_PORT: [&str; 18] = [
    "up",
    "down",
    "mtu",
    "address",
    "broadcast",
    "name",
    "alias",
    "txqueuelen",
    "qlen",
    "promisc",
    "arp",
    "multicast",
    "allmulticast",
    "dynamic",
    "master",
    "nomaster",
    "netns",
    "group",
];

/// Reads what follows `set`.
pub(super) fn parse(words: &mut Words<'_>) -> Result<Change, Said> {
    let port = match words.value()? {
        "dev" => words.value()?,
        "vf" => return Err(Said::new("Error: argument \"dev\" is required", 255)),
        port => port,
    };
    match words.value()? {
        "vf" => {}
        word if OF_THE_PORT.contains(&word) => {
            return Err(not_supported(
                "a port's link, MTU and address are not set: its link is its uplink's",
            ));
        }
        word => return Err(garbage(word)),
    }
    let vf = words.number("Invalid \"vf\" value\n")?;
    let attributes = Attributes::parse(words)?;
    match words.next() {
        None => Ok(Change { port: port.to_owned(), vf, attributes }),
        Some("vf") => {
            Err(not_supported("one command changes one VF, so that it changes all that it says or nothing"))
        }
        Some(word) => Err(garbage(word)),
    }
}

fn garbage(word: &str) -> Said {
    Said::new(format!("Error: either \"dev\" is duplicate, or \"{word}\" is garbage."), 255)
}

/// Makes the change.
///
/// # Errors
/// There is no host, or it does not answer. Why a host refuses is in the answer.
pub(super) fn apply(change: Change, socket: &Path) -> anyhow::Result<Result<(), Said>> {
    let Change { port, vf, attributes } = change;
    let ports = client::ports(socket)?;
    let Some(port) = ports.iter().find(|known| known.name == port) else {
        return Ok(Err(Said::new(format!("Cannot find device \"{port}\""), 1)));
    };
    let Some(vf) = port.vfs.iter().find(|known| u32::from(known.index) == vf) else {
        let why = format!("{} has {} VFs, counted from 0", port.name, port.vfs.len());
        return Ok(Err(answers("Invalid argument").because(&why)));
    };
    let set = attributes.settings;
    if let Err(said) = check_rates(&set, vf) {
        return Ok(Err(said));
    }
    // An 82576 has no second VLAN protocol for a port VLAN, and igb says it so.
    let errno = match set.proto.as_deref() {
        Some("802.1ad") => "Protocol not supported",
        _ => "Invalid argument",
    };
    match client::ask(socket, Request::VfSet { vf: vf.name.clone(), change: Setting::kept(set) }) {
        Ok(_) => Ok(Ok(())),
        Err(ClientError::Refused(why)) => Ok(Err(answers(errno).because(&why))),
        Err(error) => Err(error.into()),
    }
}

/// A least rate above the most is refused by `ip` itself. A rate that is not named is the one that is set.
fn check_rates(set: &VfSettings, vf: &VfStatus) -> Result<(), Said> {
    if set.min_tx_rate.is_none() && set.max_tx_rate.is_none() {
        return Ok(());
    }
    let rate = |named: Option<u32>, is: Option<u32>| named.or(is).unwrap_or(0);
    let least = rate(set.min_tx_rate, vf.settings.min_tx_rate);
    let most = rate(set.max_tx_rate, vf.settings.max_tx_rate);
    if most > 0 && least > most {
        let text = format!("Invalid min_tx_rate {least} - must be <= max_tx_rate {most}");
        return Err(Said::new(text, 1));
    }
    Ok(())
}
