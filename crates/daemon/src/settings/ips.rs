//! Lists of IP addresses and prefixes in text, for the source guard of a VF.

use super::setting::{SettingError, refuse};
use policy::{MOST_IPS, SourceIps, VfPolicy};
use units::IpPrefix;

/// Parses the addresses of a source guard. The result `None` stands for "any". An empty list is refused: a reader may take it for
/// either "any" or "none".
pub(super) fn source_ips(list: &[String]) -> Result<Option<SourceIps>, SettingError> {
    if list == ["any"] {
        return Ok(None);
    }
    if list.is_empty() {
        return refuse("ips", "the list is empty; write any, or none, or addresses");
    }
    let list = if list == ["none"] { &[] } else { list };
    let parse = |text: &String| match text.trim().parse::<IpPrefix>() {
        Ok(prefix) => Ok(prefix),
        Err(error) => refuse(
            "ips",
            format!("{text:?} {error}; write addresses such as 10.0.0.5 or fd00:1::/64, or any, or none"),
        ),
    };
    let ips = list.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    match SourceIps::of(&ips) {
        Some(ips) => Ok(Some(ips)),
        None => {
            refuse("ips", format!("{} entries are too many (at most {MOST_IPS}); write prefixes", ips.len()))
        }
    }
}

/// Returns the addresses of a policy's source guard so that [`source_ips`] reads them back.
pub(super) fn printed_ips(policy: &VfPolicy) -> Vec<String> {
    let Some(ips) = policy.guards.ips else { return vec!["any".to_owned()] };
    let printed: Vec<_> = ips.iter().map(|ip| ip.to_string()).collect();
    if printed.is_empty() { vec!["none".to_owned()] } else { printed }
}
