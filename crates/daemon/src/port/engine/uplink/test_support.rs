//! Resources with which tests open uplinks.

use super::{ParentAddressRegistry, UplinkResources, WireRegistry, XdpPrograms};
use crate::config::HostConfig;
use crate::confine::ThreadSandboxes;
use crate::file_calls::FileCalls;
use crate::port::PortCommandInbox;
use crate::vault::{FileDescriptorStore, PortFileDescriptorStore};
use i82576::Time;
use std::path::Path;

/// Runs a part of a test with the resources of a port `pf0` whose host has no other port.
pub(in crate::port) fn with_resources<T>(run: impl FnOnce(&UplinkResources<'_>) -> T) -> T {
    let file = HostConfig::check(HostConfig::parse("").unwrap(), Path::new("/run")).unwrap();
    let threads = ThreadSandboxes::prepare(&file).unwrap();
    let (store, (inbox, _handle)) = (FileDescriptorStore::default(), PortCommandInbox::new().unwrap());
    run(&UplinkResources {
        vault: &PortFileDescriptorStore::new(&store, "pf0"),
        port: &inbox.waker,
        watcher: &threads.control,
        threads: &inbox.uplink_threads,
        files: &FileCalls::default(),
        wires: &WireRegistry::default(),
        parents: &ParentAddressRegistry::default(),
        programs: &XdpPrograms::default(),
        now: Time::ZERO,
    })
}
