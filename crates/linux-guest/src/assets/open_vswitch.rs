//! Open vSwitch on the host, for tests of hosts that a tunnel joins: its database, the switch and the tools to set it up.
//! Left out: DPDK inside (`host_dpdk`), and the kernel's half.

use std::path::PathBuf;
use std::process::Command;

use super::error::{AssetError, Result};
use super::sources::Archive;
use super::{Kitchen, apt, libraries};

/// The packages with the programs. Alone: they depend on an interpreter, and on services that would start.
const PACKAGES: [&str; 2] = ["openvswitch-common", "openvswitch-switch"];
/// The packages that bring what the programs are linked to.
pub(super) const LIBRARY_PACKAGES: [&str; 6] =
    ["libbpf1", "libcap-ng0", "libnuma1", "libssl3", "libunbound8", "libxdp1"];
pub(super) const SCHEMA: &str = "usr/share/openvswitch/vswitch.ovsschema";
const SWITCH: &str = "usr/lib/openvswitch-switch/ovs-vswitchd";
const DATABASE: &str = "usr/sbin/ovsdb-server";

/// Debian's Open vSwitch, unpacked into the cache.
#[derive(Clone, Debug)]
pub struct OpenVSwitch {
    root: PathBuf,
}

impl OpenVSwitch {
    /// Finds it in the cache, or downloads it: 10 MB.
    ///
    /// # Errors
    ///
    /// Those of [`Assets::prepare`](super::Assets::prepare).
    pub fn prepare() -> Result<Self> {
        let mut kitchen = Kitchen::open()?;
        let recipe = format!("1 bookworm {PACKAGES:?} {LIBRARY_PACKAGES:?}");
        let part = kitchen.cache.part("openvswitch", &recipe);
        if kitchen.lacks(&part)? {
            let apt = kitchen.apt(Archive::Bookworm)?;
            let mut packages = apt.fetch("Open vSwitch", &LIBRARY_PACKAGES, &mut kitchen.progress)?;
            for package in PACKAGES {
                packages.push(apt.fetch_alone(package)?);
            }
            let root = kitchen.cache.bench("openvswitch")?;
            for package in &packages {
                apt::unpack(package, &root)?;
            }
            if let Some(file) = [SWITCH, DATABASE, SCHEMA].iter().find(|file| !root.join(file).exists()) {
                return Err(AssetError::Contents(format!("no {file} in the packages {PACKAGES:?}")));
            }
            kitchen.cache.publish(&root, &part)?;
        }
        kitchen.close()?;
        Ok(Self { root: part })
    }

    /// A command that runs the switch, to which its database's socket is appended.
    pub fn switch(&self) -> Command {
        libraries::command(&self.root, SWITCH)
    }

    /// A command that runs the database.
    pub fn database(&self) -> Command {
        libraries::command(&self.root, DATABASE)
    }

    /// A command that runs one of the tools, such as `ovs-vsctl`.
    pub fn tool(&self, name: &str) -> Command {
        libraries::command(&self.root, &format!("usr/bin/{name}"))
    }

    /// What the database looks like.
    pub fn schema(&self) -> PathBuf {
        self.root.join(SCHEMA)
    }
}
