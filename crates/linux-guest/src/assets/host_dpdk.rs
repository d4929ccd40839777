//! DPDK's testpmd on the host, with the drivers of the paths that a user would pick instead of a virtual function:
//! memif and vhost-user, and the null driver as their limit. Left out: a guest's testpmd (`dpdk`).

use std::path::PathBuf;
use std::process::Command;

use super::error::Result;
use super::{Kitchen, dpdk, libraries};

/// The packages that bring the drivers.
const DRIVER_PACKAGES: [&str; 4] =
    ["librte-net-memif23", "librte-net-null23", "librte-net-vhost23", "librte-net-virtio23"];
/// The drivers that testpmd is not linked to.
const DRIVERS: [&str; 5] = [
    "librte_mempool_ring.so.23.0",
    "librte_net_memif.so.23.0",
    "librte_net_null.so.23.0",
    "librte_net_vhost.so.23.0",
    "librte_net_virtio.so.23.0",
];

/// Debian's testpmd, unpacked into the cache.
#[derive(Clone, Debug)]
pub struct HostDpdk {
    root: PathBuf,
}

impl HostDpdk {
    /// Finds it in the cache, or downloads it: 30 MB.
    ///
    /// # Errors
    ///
    /// Those of [`Assets::prepare`](super::Assets::prepare).
    pub fn prepare() -> Result<Self> {
        let mut kitchen = Kitchen::open()?;
        let part = kitchen.cache.part("dpdk-host", &format!("1 {} {DRIVER_PACKAGES:?}", dpdk::recipe()));
        if kitchen.lacks(&part)? {
            let root = dpdk::unpack(&mut kitchen, &DRIVER_PACKAGES)?;
            kitchen.cache.publish(&root, &part)?;
        }
        kitchen.close()?;
        Ok(Self { root: part })
    }

    /// A command that runs testpmd with its own libraries and the drivers loaded, to which the arguments are appended.
    pub fn testpmd(&self) -> Command {
        let mut command = libraries::command(&self.root, dpdk::PROGRAM);
        for driver in DRIVERS {
            command.arg("-d").arg(self.root.join(dpdk::PLUGIN_FOLDER).join(driver));
        }
        command
    }
}
