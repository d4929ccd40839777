//! `link set [dev] PORT vf N ATTRIBUTES`: one change of one VF, made wholly or not at all. Errors are those that a kernel
//! driver would give, and a line that says why.

use super::Said;
use super::attributes::Attributes;
use super::words::{Words, matches};
use daemon::control::client::{self, ClientError};
use daemon::control::protocol::{Change as Setting, Request};
use daemon::control::status::VfStatus;
use daemon::settings::VfSettings;
use std::path::Path;

/// A change of a port, and of one of its VFs if one is named. A port is set up whatever is said, so `up` changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    port: String,
    vf: Option<(u32, Attributes)>,
}

#[cfg(test)]
impl Change {
    /// Returns the settings of the VF.
    pub(super) fn settings(&self) -> Option<&VfSettings> {
        self.vf.as_ref().map(|(_, attributes)| &attributes.settings)
    }
}

/// What `ip` says of an error of the kernel, and its exit code then.
fn answers(errno: &str) -> Said {
    Said::new(format!("RTNETLINK answers: {errno}"), 2)
}

/// Returns the refusal to add, delete or rename a port.
pub(super) fn no_change_of_ports() -> Said {
    not_supported("ports are added and taken away by `softiov apply`")
}

/// What no port can do.
pub(super) fn not_supported(why: &str) -> Said {
    answers("Operation not supported").because(why)
}

/// Words that change a device itself. A port has nothing of the kind: its link is its uplink's.
const OF_THE_PORT: [&str; 18] = [
    "down",
    "mtu",
    "address",
    "broadcast",
    "name",
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
    "alias",
    "carrier",
];

/// Reads the words after `set`; `None` asks for help.
pub(super) fn parse(words: &mut Words<'_>) -> Result<Option<Change>, Said> {
    let (mut port, mut vf) = (None, None);
    while let Some(word) = words.next() {
        match word {
            "up" => {}
            "vf" if vf.is_some() => {
                return Err(not_supported(
                    "one command changes one VF, so that it changes all that it says or nothing",
                ));
            }
            "vf" => {
                let number = words.number("Invalid \"vf\" value\n")?;
                if port.is_none() {
                    return Err(Said::new("Error: argument \"dev\" is required", 255));
                }
                vf = Some((number, Attributes::parse(words)?));
            }
            word if OF_THE_PORT.contains(&word) => {
                return Err(not_supported(
                    "a port's link, MTU and address are not set: its link is its uplink's",
                ));
            }
            word if matches(word, "help") => return Ok(None),
            word => {
                let name = if word == "dev" { words.value()? } else { word };
                if port.is_some() {
                    return Err(garbage(name));
                }
                port = Some(name.to_owned());
            }
        }
    }
    let missing = || Said::new("Not enough information: \"dev\" argument is required.", 255);
    Ok(Some(Change { port: port.ok_or_else(missing)?, vf }))
}

/// Returns iproute2's refusal of a word that it does not know.
pub(super) fn garbage(word: &str) -> Said {
    Said::new(format!("Error: either \"dev\" is duplicate, or \"{word}\" is garbage."), 255)
}

/// Makes the change.
///
/// # Errors
/// There is no host, or it does not answer. Why a host refuses is in the answer.
pub(super) fn apply(change: Change, socket: &Path) -> anyhow::Result<Result<(), Said>> {
    let Change { port, vf } = change;
    let ports = client::ports(socket)?;
    let Some(port) = ports.iter().find(|known| known.name == port) else {
        return Ok(Err(Said::new(format!("Cannot find device \"{port}\""), 1)));
    };
    let Some((vf, attributes)) = vf else { return Ok(Ok(())) };
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
