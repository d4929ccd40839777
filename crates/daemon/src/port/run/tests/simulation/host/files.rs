//! Files of a simulated host: its configuration, and the folder of its state and sockets.

use super::super::families::configured_mac;
use super::super::uplink::WIRE;
use super::SimulatedHost;
use crate::config::HostConfig;
use crate::config::file::DoorbellMode;
use crate::config::uplink::UplinkConfig;
use tempfile::TempDir;

/// Creates a folder in memory, if the machine has one: a disk is slow, and `faulty_disk` says what a disk keeps.
pub(super) fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

impl SimulatedHost {
    /// Returns true if the port's guests may map register pages.
    pub(in super::super) fn offers_pages(&self) -> bool {
        self.file.ports[0].wait == DoorbellMode::Mapped
    }
}

/// Checks the configuration of a host with its state in a folder.
pub(super) fn configuration(text: &str, folder: &TempDir, has_uplink: bool) -> HostConfig {
    let mut keys = HostConfig::parse(text).unwrap();
    keys.state_dir = Some(folder.path().join("state"));
    let mut config = HostConfig::check(keys, folder.path()).unwrap();
    for (guest, vf) in config.ports[0].vfs.iter_mut().enumerate() {
        // By default the address follows from the path of the state folder, which differs in each run.
        vf.own_mac = configured_mac(guest);
    }
    if has_uplink {
        // A configuration names both ends of a wire. The simulation has the other one.
        config.ports[0].uplink = UplinkConfig::Wire(WIRE.to_owned());
    }
    config
}
