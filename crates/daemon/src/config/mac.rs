//! Ethernet addresses of ports and VFs, configured or derived. `resolve` checks that no two are equal.

use super::{ConfigError, value};
use i82576::MacAddress;
use policy::PolicyError;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns the configured MAC address of a port or VF, or an address derived from the host and the name of the port or
/// VF.
pub(super) fn address(
    text: Option<&str>,
    key: &str,
    (runtime_dir, owner): (&Path, &str),
) -> Result<MacAddress, ConfigError> {
    let Some(text) = text else { return Ok(derived(runtime_dir, owner)) };
    let mac: MacAddress = text.parse().map_err(|error| value(key, format!("{text:?}: {error}")))?;
    if mac.is_valid_unicast() { Ok(mac) } else { Err(value(key, PolicyError::Mac(mac).to_string())) }
}

/// Derives a locally administered MAC address, always the same one, for a port or VF of the host. The address differs
/// from those of other machines, and from those of other host processes on this machine, which have other runtime
/// folders and may share a bridge.
pub(super) fn derived(runtime_dir: &Path, owner: &str) -> MacAddress {
    let machine = std::fs::read("/etc/machine-id").unwrap_or_default();
    let fnv1a = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    // No path and no name contains a zero byte, so different hosts and owners never give the same bytes.
    let bytes = [&machine[..], runtime_dir.as_os_str().as_bytes(), b"\0", owner.as_bytes()];
    let hash = bytes.into_iter().flatten().fold(0xcbf2_9ce4_8422_2325, fnv1a);
    // FNV barely changes the upper bytes for names that differ in their last letter, so mix once more.
    let mixed = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let [.., a, b, c, d, e] = mixed.to_le_bytes();
    MacAddress([0x02, a, b, c, d, e])
}
