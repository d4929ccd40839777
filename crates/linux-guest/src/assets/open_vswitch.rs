//! Open vSwitch on the host, for tests of hosts that a tunnel connects: its database, the switch and the tools to
//! set it up. `host_dpdk` has the variant with DPDK; there is no kernel module.

use std::path::PathBuf;
use std::process::Command;

use super::error::{AssetError, Result};
use super::sources::DebianRelease;
use super::{AssetBuilder, apt, libraries};

/// Packages of Open vSwitch, fetched without their dependencies, which are an interpreter and services that would
/// start.
const PACKAGES: [&str; 2] = ["openvswitch-common", "openvswitch-switch"];
/// Packages of the libraries that Open vSwitch's programs are linked to.
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
    /// Finds Open vSwitch in the cache, or downloads it: 10 MB.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`BootFiles::prepare`](super::BootFiles::prepare).
    pub fn prepare() -> Result<Self> {
        let mut builder = AssetBuilder::open()?;
        let recipe = format!("1 bookworm {PACKAGES:?} {LIBRARY_PACKAGES:?}");
        let part = builder.cache.part("openvswitch", &recipe);
        if builder.needs_build(&part)? {
            let apt = builder.apt(DebianRelease::Bookworm)?;
            let mut packages = apt.fetch("Open vSwitch", &LIBRARY_PACKAGES, &mut builder.progress)?;
            for package in PACKAGES {
                packages.push(apt.fetch_alone(package)?);
            }
            let root = builder.cache.build_folder("openvswitch")?;
            for package in &packages {
                apt::unpack(package, &root)?;
            }
            if let Some(file) = [SWITCH, DATABASE, SCHEMA].iter().find(|file| !root.join(file).exists()) {
                return Err(AssetError::Contents(format!("no {file} in the packages {PACKAGES:?}")));
            }
            builder.cache.publish(&root, &part)?;
        }
        builder.close()?;
        Ok(Self { root: part })
    }

    /// Returns a command that runs the switch; append the socket of its database.
    pub fn switch(&self) -> Command {
        libraries::command(&self.root, SWITCH)
    }

    /// Returns a command that runs Open vSwitch's database.
    pub fn database(&self) -> Command {
        libraries::command(&self.root, DATABASE)
    }

    /// Returns a command that runs one of Open vSwitch's tools, such as `ovs-vsctl`.
    pub fn tool(&self, name: &str) -> Command {
        libraries::command(&self.root, &format!("usr/bin/{name}"))
    }

    /// Returns the path of the schema of Open vSwitch's database.
    pub fn schema(&self) -> PathBuf {
        self.root.join(SCHEMA)
    }
}
