//! Changes a VF by `link set [dev] PORT vf N ATTRIBUTES`: one change of one VF, applied completely or not at all.
//! Errors are those of a kernel driver, with the reason on a line below.

use super::ToolExit;
use super::attributes::VfAttributes;
use super::words::{IpCommandWords, matches};
use daemon::control::client::{self, ControlClientError};
use daemon::control::protocol::{ControlRequest, SettingsCommand as Setting};
use daemon::control::status::VfStatus;
use daemon::settings::VfSettings;
use std::path::Path;

/// Change of a port by `link set`, and of one of its VFs if the command names a VF. A port is always set up, so `up`
/// changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LinkChange {
    port: String,
    vf: Option<(u32, VfAttributes)>,
}

#[cfg(test)]
impl LinkChange {
    /// Returns the VF settings that the `link set` command changes.
    pub(super) fn settings(&self) -> Option<&VfSettings> {
        self.vf.as_ref().map(|(_, attributes)| &attributes.settings)
    }
}

/// Returns `ip`'s message and exit code for an error of the kernel.
fn kernel_error(errno: &str) -> ToolExit {
    ToolExit::new(format!("RTNETLINK answers: {errno}"), 2)
}

/// Returns `ip`'s refusal to add, delete or rename a port.
pub(super) fn no_change_of_ports() -> ToolExit {
    not_supported("`softiov apply` adds and removes ports")
}

/// Returns `ip`'s refusal of a `link set` change that no port supports.
pub(super) fn not_supported(why: &str) -> ToolExit {
    kernel_error("Operation not supported").with_hint(why)
}

/// Attributes of `link set` that change the network device itself. A port has none of them: its link is its uplink's.
const DEVICE_ATTRIBUTES: [&str; 18] = [
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

/// Parses the words after `link set`; `None` if help is requested.
pub(super) fn parse(words: &mut IpCommandWords<'_>) -> Result<Option<LinkChange>, ToolExit> {
    let (mut port, mut vf) = (None, None);
    while let Some(word) = words.next() {
        match word {
            "up" => {}
            "vf" if vf.is_some() => {
                return Err(not_supported(
                    "only one VF per command, so that a change applies completely or not at all",
                ));
            }
            "vf" => {
                let number = words.number("Invalid \"vf\" value\n")?;
                if port.is_none() {
                    return Err(ToolExit::new("Error: argument \"dev\" is required", 255));
                }
                vf = Some((number, VfAttributes::parse(words)?));
            }
            word if DEVICE_ATTRIBUTES.contains(&word) => {
                return Err(not_supported(
                    "a port's link, MTU and address cannot be set; the port has the link of its uplink",
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
    let missing = || ToolExit::new("Not enough information: \"dev\" argument is required.", 255);
    Ok(Some(LinkChange { port: port.ok_or_else(missing)?, vf }))
}

/// Returns iproute2's refusal of a word that it does not know.
pub(super) fn garbage(word: &str) -> ToolExit {
    ToolExit::new(format!("Error: either \"dev\" is duplicate, or \"{word}\" is garbage."), 255)
}

/// Applies the change of `link set` to the running host.
///
/// # Errors
/// No host answers. A refusal by the host is part of the result.
pub(super) fn apply(change: LinkChange, socket: &Path) -> anyhow::Result<Result<(), ToolExit>> {
    let LinkChange { port, vf } = change;
    let ports = client::ports(socket)?;
    let Some(port) = ports.iter().find(|known| known.name == port) else {
        return Ok(Err(ToolExit::new(format!("Cannot find device \"{port}\""), 1)));
    };
    let Some((vf, attributes)) = vf else { return Ok(Ok(())) };
    let Some(vf) = port.vfs.iter().find(|known| u32::from(known.index) == vf) else {
        let why = format!("{} has {} VFs, counted from 0", port.name, port.vfs.len());
        return Ok(Err(kernel_error("Invalid argument").with_hint(&why)));
    };
    let set = attributes.settings;
    if let Err(exit) = check_rates(&set, vf) {
        return Ok(Err(exit));
    }
    // The error with which igb refuses a second VLAN protocol for a port VLAN.
    let errno = match set.proto.as_deref() {
        Some("802.1ad") => "Protocol not supported",
        _ => "Invalid argument",
    };
    match client::ask(socket, ControlRequest::VfSet { vf: vf.name.clone(), change: Setting::kept(set) }) {
        Ok(_) => Ok(Ok(())),
        Err(ControlClientError::Refused(why)) => Ok(Err(kernel_error(errno).with_hint(&why))),
        Err(error) => Err(error.into()),
    }
}

/// Refuses a minimum transmit rate above the maximum, as `ip` itself does. A rate that the command does not name keeps
/// its value.
fn check_rates(set: &VfSettings, vf: &VfStatus) -> Result<(), ToolExit> {
    if set.min_tx_rate.is_none() && set.max_tx_rate.is_none() {
        return Ok(());
    }
    let rate = |named: Option<u32>, is: Option<u32>| named.or(is).unwrap_or(0);
    let least = rate(set.min_tx_rate, vf.settings.min_tx_rate);
    let most = rate(set.max_tx_rate, vf.settings.max_tx_rate);
    if most > 0 && least > most {
        let text = format!("Invalid min_tx_rate {least} - must be <= max_tx_rate {most}");
        return Err(ToolExit::new(text, 1));
    }
    Ok(())
}
