//! Check of the configuration key `vfs`, the number of VFs of a port.

use super::check::{ConfigError, value};
use super::file::CardFamily;

/// Number of VFs of a port without the key `vfs`.
const DEFAULT_VFS: u8 = 7;

/// Returns the configured number of VFs of a port, or an error if its card family does not support that number.
pub(super) fn vf_count(port: &str, family: CardFamily, set: Option<u8>) -> Result<usize, ConfigError> {
    let (count, most) = (usize::from(set.unwrap_or(DEFAULT_VFS)), family.limits().vfs);
    if (1..=most).contains(&count) {
        return Ok(count);
    }
    let remedy = match family {
        _ if count == 0 => format!("a port has at least one VF; leave vfs out for {DEFAULT_VFS}"),
        CardFamily::I82576 => format!("family = \"avf\" has up to {} VFs", CardFamily::Avf.limits().vfs),
        CardFamily::Avf | CardFamily::Virtio => "add a port for more VFs".to_owned(),
    };
    let name = family.name();
    let problem = format!("{count} is out of range (1-{most} with family = \"{name}\"); {remedy}");
    Err(value(format!("{port}.vfs"), problem))
}
