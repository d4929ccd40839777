//! DPDK's testpmd on the host, with the drivers of the paths that a user would pick instead of a virtual function:
//! memif and vhost-user, and the null driver as their limit; and Open vSwitch with DPDK inside. Left out: a guest's
//! testpmd (`dpdk`), and the kernel's half of Open vSwitch.

use std::path::PathBuf;
use std::process::Command;

use super::dpdk::DpdkSeries;
use super::error::Result;
use super::{Kitchen, dpdk, libraries, open_vswitch};

const SERIES: DpdkSeries = DpdkSeries::Bookworm2211;
/// The packages that bring the drivers.
const DRIVER_PACKAGES: [&str; 4] =
    ["librte-net-memif23", "librte-net-null23", "librte-net-vhost23", "librte-net-virtio23"];
/// Open vSwitch, of which all but the programs themselves is left out: an interpreter, and services that would start.
const SWITCH_PACKAGES: [&str; 3] = ["openvswitch-common", "openvswitch-switch", "openvswitch-switch-dpdk"];
const SWITCH: &str = "usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";
/// Where DPDK's memory pools are kept.
const POOL: &str = "librte_mempool_ring.so.23.0";
/// The drivers that testpmd is not linked to.
const DRIVERS: [&str; 5] = [
    POOL,
    "librte_net_memif.so.23.0",
    "librte_net_null.so.23.0",
    "librte_net_vhost.so.23.0",
    "librte_net_virtio.so.23.0",
];

/// Debian's testpmd and Open vSwitch, unpacked into the cache.
#[derive(Clone, Debug)]
pub struct HostDpdk {
    root: PathBuf,
}

impl HostDpdk {
    /// Finds them in the cache, or downloads them: 40 MB.
    ///
    /// # Errors
    ///
    /// Those of [`Assets::prepare`](super::Assets::prepare).
    pub fn prepare() -> Result<Self> {
        let mut kitchen = Kitchen::open()?;
        let libraries = [&DRIVER_PACKAGES[..], &open_vswitch::LIBRARY_PACKAGES].concat();
        let recipe = format!("2 {} {libraries:?} {SWITCH_PACKAGES:?}", dpdk::recipe(SERIES));
        let part = kitchen.cache.part("dpdk-host", &recipe);
        if kitchen.lacks(&part)? {
            let root = dpdk::unpack(&mut kitchen, SERIES, &libraries, &SWITCH_PACKAGES)?;
            kitchen.cache.publish(&root, &part)?;
        }
        kitchen.close()?;
        Ok(Self { root: part })
    }

    /// A command that runs testpmd with its own libraries and the drivers loaded, to which the arguments are appended.
    pub fn testpmd(&self) -> Command {
        let mut command = libraries::command(&self.root, dpdk::PROGRAM);
        for driver in DRIVERS {
            command.arg("-d").arg(self.plugin(driver));
        }
        command
    }

    /// A command that runs Open vSwitch's switch with its own libraries. What DPDK is told in it has to load
    /// [`Self::pool`].
    pub fn switch(&self) -> Command {
        libraries::command(&self.root, SWITCH)
    }

    /// A command that runs another of Open vSwitch's programs, such as `usr/bin/ovs-vsctl`.
    pub fn switch_program(&self, program: &str) -> Command {
        libraries::command(&self.root, program)
    }

    /// What the switch's database looks like.
    pub fn switch_schema(&self) -> PathBuf {
        self.root.join(open_vswitch::SCHEMA)
    }

    /// The driver of DPDK's memory pools, which no program is linked to.
    pub fn pool(&self) -> PathBuf {
        self.plugin(POOL)
    }

    fn plugin(&self, name: &str) -> PathBuf {
        self.root.join(SERIES.plugin_folder()).join(name)
    }
}
