//! Parses attributes of `link set PORT vf N`, and the setting that each changes. Several attributes are one change.

use super::ToolExit;
use super::set::not_supported;
use super::words::{IpCommandWords, invalid, matches, number};
use daemon::settings::{LinkState, VfSettings};
use policy::VLANS;
use std::net::Ipv4Addr;

/// VF settings that `ip link set` changes, and the rate limit under its older name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct VfAttributes {
    pub(super) settings: VfSettings,
    /// Value of `rate`, the older name of `max_tx_rate`, which overrides it.
    rate: Option<u32>,
}

/// Attributes of `vf N` in iproute2's order, which decides what an abbreviated word means.
const NAMES: [&str; 11] = [
    "mac",
    "vlan",
    "rate",
    "max_tx_rate",
    "min_tx_rate",
    "spoofchk",
    "query_rss",
    "trust",
    "state",
    "node_guid",
    "port_guid",
];

impl VfAttributes {
    /// Parses `ip link set` attributes until another word follows.
    pub(super) fn parse(words: &mut IpCommandWords<'_>) -> Result<Self, ToolExit> {
        let mut read = Self::default();
        if words.peek().is_none() {
            words.value()?;
        }
        while let Some(name) = words.peek().and_then(|word| NAMES.iter().find(|name| matches(word, name))) {
            words.next();
            read.attribute(name, words)?;
        }
        if read.settings.max_tx_rate.is_none() {
            read.settings.max_tx_rate = read.rate;
        }
        Ok(read)
    }

    /// Parses the value of an `ip link set` attribute.
    fn attribute(&mut self, name: &str, words: &mut IpCommandWords<'_>) -> Result<(), ToolExit> {
        let set = &mut self.settings;
        match name {
            "mac" => set.mac = Some(mac(words)?),
            "vlan" => vlan(set, words)?,
            "rate" => self.rate = Some(words.number("Invalid \"rate\" value\n")?),
            "max_tx_rate" => set.max_tx_rate = Some(words.number("Invalid \"max tx rate\" value\n")?),
            "min_tx_rate" => set.min_tx_rate = Some(words.number("Invalid \"min tx rate\" value\n")?),
            "spoofchk" => set.spoofchk = Some(words.on_off(name)?),
            "trust" => set.trust = Some(words.on_off(name)?),
            "state" => set.state = Some(state(words)?),
            "query_rss" => {
                words.on_off(name)?;
                return Err(not_supported("reading a VF's RSS key and table is not supported"));
            }
            _ => {
                check_guid(words.value()?)?;
                return Err(not_supported("only InfiniBand has GUIDs"));
            }
        }
        Ok(())
    }
}

/// Parses an Ethernet address as `ll_addr_a2n` does: bytes of one or two hexadecimal digits, in either case.
fn mac(words: &mut IpCommandWords<'_>) -> Result<String, ToolExit> {
    let word = words.value()?;
    let wrong_length = |bytes| ToolExit::new(format!("Invalid address length {bytes} - must be 6 bytes"), 1);
    if word.parse::<Ipv4Addr>().is_ok() {
        return Err(wrong_length(4));
    }
    let bytes: Option<Vec<u8>> = word.split(':').map(hexadecimal).collect();
    let bytes = bytes.ok_or_else(|| ToolExit::new(format!("\"{word}\" is invalid lladdr."), 1))?;
    if bytes.len() != 6 {
        return Err(wrong_length(bytes.len()));
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"))
}

fn hexadecimal(digits: &str) -> Option<u8> {
    let is_valid = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_valid.then(|| u8::from_str_radix(digits, 16).ok())?
}

/// Checks an InfiniBand GUID as `get_guid` does: eight bytes of two digits.
fn check_guid(word: &str) -> Result<(), ToolExit> {
    let is_valid =
        word.len() == 23 && word.split(':').all(|byte| byte.len() == 2 && hexadecimal(byte).is_some());
    if is_valid { Ok(()) } else { Err(invalid(word, "Invalid GUID format\n")) }
}

/// Parses `vlan ID [qos Q] [proto P]`. As in iproute2, omitted values become 0 and 802.1Q and do not stay as they
/// were.
fn vlan(set: &mut VfSettings, words: &mut IpCommandWords<'_>) -> Result<(), ToolExit> {
    let word = words.peek().unwrap_or_default();
    let wrong = "Invalid \"vlan\" value\n";
    let id = u16::try_from(words.number(wrong)?).ok().filter(|id| *id == 0 || VLANS.contains(id));
    set.vlan = Some(id.ok_or_else(|| invalid(word, wrong))?);
    set.qos = Some(0);
    if words.skip("qos") {
        let qos = words.number("Invalid \"qos\" value\n")?;
        set.qos = Some(u8::try_from(qos).unwrap_or(u8::MAX));
    }
    set.proto = Some("802.1Q".to_owned());
    if words.skip("proto") {
        set.proto = Some(protocol(words.value()?)?.to_owned());
    }
    Ok(())
}

/// Parses the protocol of a port VLAN, by name or number (`ll_proto_a2n`).
fn protocol(word: &str) -> Result<&'static str, ToolExit> {
    let known = [("802.1Q", 0x8100), ("802.1ad", 0x88a8)];
    if let Some((name, _)) = known.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
        return Ok(name);
    }
    let number = number(word).ok_or_else(|| invalid(word, "protocol is invalid\n"))?;
    let wrong = "Invalid \"vlan protocol\" value - supported 802.1Q, 802.1ad\n";
    let found = known.iter().find(|(_, known)| *known == number).map(|(name, _)| *name);
    found.ok_or_else(|| invalid(word, wrong))
}

fn state(words: &mut IpCommandWords<'_>) -> Result<LinkState, ToolExit> {
    let word = words.value()?;
    let states = [("auto", LinkState::Auto), ("enable", LinkState::Enable), ("disable", LinkState::Disable)];
    let state = states.into_iter().find(|(full, _)| matches(word, full));
    state.map(|(_, state)| state).ok_or_else(|| invalid(word, "Invalid \"state\" value\n"))
}
