//! Lists the crates that others can depend on.

use crate::metadata::PREFIX;

/// Names of the crates that others can depend on, and of the crates below them.
pub(crate) const DOORS: [&str; 14] = [
    "units",
    "pcie",
    "plane",
    "offload",
    "rings",
    "i82576",
    "avf",
    "nic",
    "avf-nic",
    "policy",
    "driver",
    "vfio-user",
    "host",
    "vfio-client",
];

/// Returns the package name of a crate, for cargo's `--package`.
pub(crate) fn package_name(name: &str) -> String {
    let prefix = if DOORS.contains(&name) { PREFIX } else { "" };
    format!("{prefix}{name}")
}
