//! DPDK's testpmd and Open vSwitch with DPDK inside, run on the host. Testpmd has the drivers that a user would choose
//! instead of a virtual function, memif and vhost-user, and the null driver as the upper limit of both. A guest's
//! testpmd is in `dpdk`; Open vSwitch has no kernel module here.

use std::path::PathBuf;
use std::process::Command;

use super::dpdk::DpdkSeries;
use super::error::Result;
use super::{AssetBuilder, dpdk, libraries, open_vswitch};

const SERIES: DpdkSeries = DpdkSeries::Bookworm2211;
/// Packages of the DPDK drivers that testpmd loads on the host.
const DRIVER_PACKAGES: [&str; 4] =
    ["librte-net-memif23", "librte-net-null23", "librte-net-vhost23", "librte-net-virtio23"];
/// Packages of Open vSwitch, fetched without their dependencies, which are an interpreter and services that would
/// start.
const SWITCH_PACKAGES: [&str; 3] = ["openvswitch-common", "openvswitch-switch", "openvswitch-switch-dpdk"];
const SWITCH: &str = "usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";
/// File name of the driver of DPDK's memory pools.
const POOL: &str = "librte_mempool_ring.so.23.0";
/// File names of the drivers that testpmd is not linked to.
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
    /// Finds testpmd and Open vSwitch in the cache, or downloads them: 40 MB.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`BootFiles::prepare`](super::BootFiles::prepare).
    pub fn prepare() -> Result<Self> {
        let mut builder = AssetBuilder::open()?;
        let libraries = [&DRIVER_PACKAGES[..], &open_vswitch::LIBRARY_PACKAGES].concat();
        let recipe = format!("2 {} {libraries:?} {SWITCH_PACKAGES:?}", dpdk::recipe(SERIES));
        let part = builder.cache.part("dpdk-host", &recipe);
        if builder.needs_build(&part)? {
            let root = dpdk::unpack(&mut builder, SERIES, &libraries, &SWITCH_PACKAGES)?;
            builder.cache.publish(&root, &part)?;
        }
        builder.close()?;
        Ok(Self { root: part })
    }

    /// Returns a command that runs testpmd with its own libraries and the drivers loaded; append its arguments.
    pub fn testpmd(&self) -> Command {
        let mut command = libraries::command(&self.root, dpdk::PROGRAM);
        for driver in DRIVERS {
            command.arg("-d").arg(self.plugin(driver));
        }
        command
    }

    /// Returns a command that runs Open vSwitch's switch with its own libraries. The switch's DPDK options have to load
    /// [`Self::pool`].
    pub fn switch(&self) -> Command {
        libraries::command(&self.root, SWITCH)
    }

    /// Returns a command that runs the program `program` of Open vSwitch, such as `usr/bin/ovs-vsctl`.
    pub fn switch_program(&self, program: &str) -> Command {
        libraries::command(&self.root, program)
    }

    /// Returns the path of the schema of the switch's database.
    pub fn switch_schema(&self) -> PathBuf {
        self.root.join(open_vswitch::SCHEMA)
    }

    /// Returns the path of DPDK's memory pool driver. No program is linked to it, so a program has to load it.
    pub fn pool(&self) -> PathBuf {
        self.plugin(POOL)
    }

    fn plugin(&self, name: &str) -> PathBuf {
        self.root.join(SERIES.plugin_folder()).join(name)
    }
}
